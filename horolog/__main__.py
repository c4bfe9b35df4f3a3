"""The command `horolog`, as a script and as `python -m horolog`: quiet about Ctrl-C from the first instruction on."""

import sys

from horolog.base import interrupts


def main() -> int:
    interrupts.own_process()

    from horolog.client.cli.main import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
