"""Command line: `python -m horolog.client.cli.kafka_scripts kafka-topics.sh --list`; the first word is the name of Kafka's script."""

from horolog.base import interrupts

if __name__ == "__main__":  # also while the rest is imported
    interrupts.own_process()

import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module

from horolog.client.cli.kafka_scripts import SCRIPTS
from horolog.client.cli.kafka_scripts.options import add_version, check_connection
from horolog.client.cli.main import guarded
from horolog.commands.arguments import Parser
from horolog.commands.console import Console
from horolog.commands.errors import UsageError
from horolog.commands.exit_codes import ExitCode
from horolog.commands.usage import second_line

REFUSALS = frozenset({ExitCode.USAGE, ExitCode.NOT_FOUND, ExitCode.UNREACHABLE})


def main(words: Sequence[str], console: Console | None = None) -> int:
    """The exit code: 1 for every error, as in Kafka's scripts."""
    console = console or Console()
    try:
        code = guarded(partial(_run, list(words), console), console)
    except SystemExit as ended:  # argparse: help, version, unknown words
        return min(int(ended.code or 0), int(ExitCode.FAILED))
    return int(ExitCode.FAILED if code in REFUSALS else code)


def _run(words: list[str], console: Console) -> ExitCode:
    from horolog.commands.running import run_until_done

    name = words[0].rpartition("/")[2].removesuffix(".sh") if words else ""
    if name not in SCRIPTS:
        raise UsageError(f"horolog has no script {name!r}", f"its scripts are {', '.join(SCRIPTS)}")
    console.command = name
    script = import_module(SCRIPTS[name])
    parser = Parser(prog=name, allow_abbrev=True)
    add_version(parser)
    script.configure(parser)
    arguments = parser.parse_args(words[1:])
    console.usage = partial(second_line, parser)
    check_connection(arguments, console)
    return run_until_done(script.run(arguments, console))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
