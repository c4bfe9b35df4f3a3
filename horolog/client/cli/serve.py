"""`horolog serve`: the broker, whose command line is its own."""

import argparse

from horolog.broker import interrupts, serve
from horolog.client.cli.common.console import Console
from horolog.client.cli.common.exit_codes import ExitCode


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description = "Run the broker."
    serve.configure(parser)


def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    interrupts.end_at_once()  # until the broker is ready, which takes signals by itself
    return ExitCode(serve.serve(arguments, console.environ))
