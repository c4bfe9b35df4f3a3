"""The command `horolog`, as a script and as `python -m client.cli`: quiet about Ctrl-C from the first instruction on."""

import sys

from broker import interrupts


def main() -> int:
    interrupts.own_process()

    from client.cli.main import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
