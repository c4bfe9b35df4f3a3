"""The command `horolog`: finds the subcommand and runs it; what a subcommand needs is imported only when it runs."""

import argparse
import os
import sys
from collections.abc import Sequence

from broker import __version__, serve


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code: what the subcommand says, 2 for arguments that cannot be read."""
    arguments = build_parser().parse_args(argv)
    return serve.serve(arguments, os.environ)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="horolog",
        description="The log that knows the hour: a Kafka-protocol broker with time as the way to find data.",
    )
    parser.add_argument("--version", action="version", version=f"horolog {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    serve.configure(commands.add_parser("serve", help="run the broker", description="Run the broker."))
    return parser


if __name__ == "__main__":
    sys.exit(main())
