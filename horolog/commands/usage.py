"""An error of usage in two lines: the fault with the likely remedy, and the form that the command expects.

argparse prints every option of a command before the fault, which is twenty lines for some.
"""

import argparse
import re
from collections.abc import Iterator, Sequence

from horolog.commands.suggestions import option_like

MOST_NAMED = 12
"""Choices that fit into a line; of more, `--help` has the list."""
_MISSING = re.compile(r"the following arguments are required: (.+)")
_ABOUT_ONE = re.compile(r"argument (\S+): (.*)", re.DOTALL)
_NO_VALUE = re.compile(r"expected (?:one|at least one|\d+) arguments?")


def two_lines(parser: argparse.ArgumentParser, message: str) -> str:
    """What a parser prints for argparse's message."""
    return f"{parser.prog}: error: {plain(parser, message)}\n{second_line(parser)}\n"


def second_line(parser: argparse.ArgumentParser) -> str:
    """The line below every error of usage."""
    return f"usage: {form(parser)}   (more: {parser.prog} --help)"


def plain(parser: argparse.ArgumentParser, message: str) -> str:
    """Argparse's message as a sentence that names the argument first."""
    if missing := _MISSING.fullmatch(message):
        return _is_missing(parser, missing[1].split(", "))
    if about := _ABOUT_ONE.fullmatch(message):
        name = about[1].rpartition("/")[2]
        return f"{name} needs a value" if _NO_VALUE.fullmatch(about[2]) else f"{name}: {about[2]}"
    return message


def _is_missing(parser: argparse.ArgumentParser, names: list[str]) -> str:
    # argparse names optional arguments behind a missing one, too
    optional = {one.metavar for one in _positionals(parser) if one.nargs in ("*", "?")}
    (*others, last) = [one for one in names if one not in optional] or names
    if others:
        return f"{', '.join(others)} and {last} are missing"
    choices = next((list(one.choices) for one in _positionals(parser) if one.metavar == last and one.choices), None)
    advice = f"; expected one of {', '.join(map(str, choices))}" if choices and len(choices) <= MOST_NAMED else ""
    return f"{last} is missing{advice}"


def unknown(parser: argparse.ArgumentParser, words: Sequence[str]) -> str:
    """The message about words that a parser has no place for: an option that does not exist, or too many arguments."""
    word = next((one for one in words if one.startswith("-") and one != "-"), None)
    if word is None:
        return f"unexpected argument {' '.join(words)!r}"
    option = word.partition("=")[0]
    like = option_like(option, options(parser))
    return f"there is no option {option}" + (f"; do you mean {like}?" if like else "")


def options(parser: argparse.ArgumentParser) -> list[str]:
    """The options of a parser, each by all of its names."""
    return [name for one in _actions(parser) for name in one.option_strings]


def form(parser: argparse.ArgumentParser) -> str:
    """The command with its arguments and its required options: `horolog consume TOPIC [OPTIONS]`."""
    required = [
        f"{one.option_strings[-1]} {_name(one)}" for one in _actions(parser) if one.option_strings and one.required
    ]
    has_more = any(
        one.option_strings and not one.required and one.dest not in {"help", "version"} for one in _actions(parser)
    )
    words = [parser.prog, *map(_shape, _positionals(parser)), *required, *(["[OPTIONS]"] if has_more else [])]
    return " ".join(words)


def _shape(action: argparse.Action) -> str:
    name = _name(action)
    shapes = {"?": f"[{name}]", "*": f"[{name} ...]", "+": f"{name} [{name} ...]"}
    return shapes.get(str(action.nargs), name)


def _name(action: argparse.Action) -> str:
    if isinstance(action.metavar, str):
        return action.metavar
    return "|".join(map(str, action.choices)) if action.choices else action.dest.upper()


def chosen(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> argparse.ArgumentParser:
    """The parser of the action that was named, which is the parser itself for a command without actions."""
    for action in _positionals(parser):
        parsers = action.choices if isinstance(action.choices, dict) else {}
        named = parsers.get(str(getattr(arguments, action.dest, None)))
        if named is not None:
            return chosen(named, arguments)
    return parser


def _actions(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return parser._actions  # noqa: SLF001 -- argparse offers no other way to list them


def _positionals(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    return (one for one in _actions(parser) if not one.option_strings)
