"""Runs the broker: `python -m horolog.broker` is `horolog serve`."""

import sys

from horolog.base import interrupts

if __name__ == "__main__":
    interrupts.own_process()

    from horolog.broker.workers.serve import main

    sys.exit(main())
