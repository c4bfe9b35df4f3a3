"""The command `horolog`: finds the command in the table, runs it, and turns every outcome into an exit code."""

from horolog.base import interrupts

if __name__ == "__main__":  # also while the rest is imported
    interrupts.own_process()

import argparse
import os
import sys
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from importlib import import_module
from typing import Any, NoReturn

from horolog.client.cli.commands import BY_NAME, COMMANDS, Command
from horolog.commands.arguments import Parser
from horolog.commands.console import Console
from horolog.commands.errors import CommandError, UsageError
from horolog.commands.exit_codes import ExitCode

DESCRIPTION = "A message broker that speaks Kafka's protocol and finds records by time."
EPILOG = "`horolog COMMAND --help` shows the options of a command, with examples.\n\nexit codes: 0 success, 1 failed, 2 wrong arguments, 3 found lag or damage, 4 not found, 5 no broker answered,\n6 another process is running, 130 interrupted, 141 the output was closed, 143 terminated\n"
COMPLETE = "_complete"
"""A hidden command, called by the scripts of `horolog completion`."""


def main(argv: Sequence[str] | None = None, console: Console | None = None) -> int:
    """The exit code. Invalid arguments, `--help` and `--version` raise SystemExit, as in argparse."""
    words = list(sys.argv[1:] if argv is None else argv)
    console = console or Console()
    return int(guarded(partial(_run, words, console), console))


def _run(words: list[str], console: Console) -> ExitCode:
    if words[:1] == [COMPLETE]:
        from horolog.client.cli import completing

        return completing.answer(words[1:], console)
    command = BY_NAME.get(words[0]) if words else None
    if command is None:
        _no_command(words)
    console.command = f"horolog {command.name}"
    parser = parser_of(command)
    arguments = parser.parse_args(words[1:])
    console.usage = partial(_expected, parser, arguments)
    console.command = _spoken(command, arguments)
    console.as_json = getattr(arguments, "output", "") == "json"
    console.zone_name = getattr(arguments, "tz", None)
    if "profile" in arguments:
        from horolog.commands.connection import settle

        settle(arguments, console)
    run: Callable[..., ExitCode | Coroutine[Any, Any, ExitCode]] = import_module(command.module).run
    interrupts.raise_interrupts()
    try:
        result = run(arguments, console)
    finally:
        interrupts.end_at_once()
    if isinstance(result, Coroutine):
        from horolog.commands.running import run_until_done

        return run_until_done(result)
    return result


def parser_of(command: Command) -> argparse.ArgumentParser:
    """The parser of one command; imports its module. CommandError if that needs a missing package."""
    parser = Parser(prog=f"horolog {command.name}")
    try:
        import_module(command.module).configure(parser)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "horolog":
            raise
        advice = f"pip install 'horolog[{command.name}]' installs what it needs"
        raise CommandError(f"{error.name} is not installed", advice) from error
    return parser


def _spoken(command: Command, arguments: argparse.Namespace) -> str:
    """`horolog groups lag`: the words before a message on standard error."""
    action = getattr(arguments, "action", None)
    return f"horolog {command.name} {action}" if isinstance(action, str) else f"horolog {command.name}"


def _expected(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> str:
    """The form of the command and its action."""
    from horolog.commands import usage

    return usage.second_line(usage.chosen(parser, arguments))


def _no_command(words: list[str]) -> NoReturn:
    """Print help or the version, or report the invalid first word."""
    parser = build_parser()
    if words and not words[0].startswith("-"):
        advice = _advice_about(words[0])
        parser.error(f"there is no command {words[0]!r}" + (f"; do you mean {advice}?" if advice else ""))
    first = next((place for place, word in enumerate(words) if word in BY_NAME), 0)
    if first and words[0] not in {"-h", "--help", "--version"}:
        from shlex import join

        parser.error(f"options come after the command: horolog {join(words[first:] + words[:first])}")
    parser.parse_args(words)
    parser.error("the command is missing; horolog --help lists all commands")


def _advice_about(word: str) -> str:
    """The likely command, or the commands with an action of this name."""
    from horolog.commands.suggestions import command_elsewhere, known_elsewhere, nearest

    command = command_elsewhere(word, BY_NAME)
    if command is not None:
        return repr(command)
    found = []
    for command in ("topics", "groups", "configs", "acls", "users"):
        names = [action.name for action in import_module(BY_NAME[command].module).ACTIONS]
        action = known_elsewhere(word, names)
        if action is not None:
            found.append(f"'{command} {action}'")
    close = nearest(word, BY_NAME) if not found else None
    return " or ".join(found[:2]) if close is None else repr(close)


def build_parser() -> argparse.ArgumentParser:
    """The text of `horolog --help`; imports no command."""
    from horolog.version import __version__

    parser = Parser(prog="horolog", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument("--version", action="version", version=f"horolog {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True, title="commands")
    for command in COMMANDS:
        commands.add_parser(command.name, help=command.sentence, add_help=False)
    return parser


def guarded(run: Callable[[], ExitCode], console: Console) -> ExitCode:
    """Run a command; every error that is not a bug of ours becomes one sentence and an exit code.

    Below an error of usage stands the form that the command expects.
    """
    try:
        try:
            return run()
        finally:
            console.out.flush()  # while a broken pipe can still be distinguished from a bug
    except UsageError as error:
        console.usage_error(str(error))
        return error.code
    except CommandError as error:
        console.error(str(error))
        return error.code
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except RuntimeError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):  # raised while a class was created: Python 3.11 wraps it
            return ExitCode.INTERRUPTED
        raise
    except BrokenPipeError:
        _forget_output()
        return ExitCode.BROKEN_PIPE
    except OSError as error:
        console.error(_about(error))
        return ExitCode.NOT_FOUND if isinstance(error, FileNotFoundError) else ExitCode.FAILED


def _about(error: OSError) -> str:
    """The system's message, and the file that it is about."""
    reason = error.strerror or str(error) or type(error).__name__
    return f"{error.filename}: {reason}" if error.filename is not None else reason


def _forget_output() -> None:
    """Discard the rest of the buffer, which has no reader; without this Python would report an error at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
