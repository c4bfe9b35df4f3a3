"""Commands with actions (`topics list`, `groups lag`): each action is a parser and a coroutine."""

import argparse
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, NamedTuple

from horolog.commands.arguments import Parser, add_output, describe
from horolog.commands.console import Console
from horolog.commands.exit_codes import ExitCode
from horolog.commands.online.connecting import add_connection

Run = Callable[[argparse.Namespace, Console], Coroutine[Any, Any, ExitCode]]


class Action(NamedTuple):
    name: str
    sentence: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Run
    examples: tuple[str, ...]


def add_actions(parser: argparse.ArgumentParser, description: str, actions: tuple[Action, ...]) -> None:
    """One parser for each action, all with `--bootstrap`, `--timeout` and `--output`."""
    describe(parser, description, *(action.examples[0] for action in actions))
    choices = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)
    for action in actions:
        own = choices.add_parser(action.name, help=action.sentence)
        describe(own, action.sentence[0].upper() + action.sentence[1:] + ".", *action.examples)
        action.add_arguments(own)
        add_connection(own)
        add_output(own)


async def run_action(actions: tuple[Action, ...], arguments: argparse.Namespace, console: Console) -> ExitCode:
    (action,) = (each for each in actions if each.name == arguments.action)
    return await action.run(arguments, console)


class Outcome(NamedTuple):
    """What came of one thing: its name in text, its members in JSON, and what was done, or the error."""

    name: str
    members: Mapping[str, Any]
    done: str
    error: str | None


def show_outcomes(outcomes: Sequence[Outcome], console: Console) -> ExitCode:
    """One line for each, or one JSON object; exit code 1 if any failed."""
    if console.as_json:
        console.json([{**one.members, "error": one.error} for one in outcomes])
    else:
        for one in outcomes:
            if one.error is None:
                console.print(f"{one.name}: {one.done}")
            else:
                console.error(f"{one.name}: {one.error.removeprefix(f'{one.name}: ')}")
    return ExitCode.FAILED if any(one.error is not None for one in outcomes) else ExitCode.OK


def assignments(texts: list[str] | None) -> dict[str, str]:
    """`KEY=VALUE` arguments as a mapping."""
    from horolog.commands.errors import UsageError

    found = {}
    for text in texts or ():
        key, sign, value = text.partition("=")
        if not sign or not key:
            raise UsageError(f"{text!r}: expected KEY=VALUE")
        found[key] = value
    return found


async def confirmed(arguments: argparse.Namespace, console: Console, what: str) -> bool:
    """Whether to do something irreversible: `--yes`, or a yes at the terminal.

    The answer is read outside of the event loop: a read inside it would also block Ctrl-C.
    """
    from horolog.commands.console import is_terminal
    from horolog.commands.errors import UsageError
    from horolog.commands.online.lines import STDIN, lines_of

    if arguments.yes:
        return True
    if not is_terminal(console.stdin):
        raise UsageError(f"{what} cannot be undone", "pass --yes without a terminal")
    console.err.write(f"{what}: continue? [y/N] ")
    console.err.flush()
    async for answers in lines_of(STDIN, console.stdin):
        return answers[0].strip().lower() in {b"y", b"yes"}
    return False


def add_yes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask for confirmation")
