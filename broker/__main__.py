"""Runs the broker: `python -m broker` is `horolog serve`."""

import sys

from broker import interrupts

if __name__ == "__main__":
    interrupts.own_process()

    from broker.serve import main

    sys.exit(main())
