"""`horolog _complete WORDS`: names for a shell that completes a command line; called only by the scripts of `horolog completion`.

The words are those after `horolog`, up to the one being typed, which may be empty. The command's parser says what that word
is; topics and groups come from the broker that the words, the profile or the environment name, settings from horolog's own
tables. A shell waits for the answer: a broker has a third of a second to respond, and errors print nothing.
"""

import argparse
import io
import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from horolog.commands.arguments import duration
from horolog.commands.console import Console
from horolog.commands.exit_codes import ExitCode

ANSWER_MS = 300
ANSWER_VARIABLE = "HOROLOG_COMPLETION_TIMEOUT"
"""A duration, for brokers that are far away."""
MOST_NAMES = 1000
CONNECTION = {
    "-b": "bootstrap",
    "--bootstrap": "bootstrap",
    "-P": "profile",
    "--profile": "profile",
    "--command-config": "command_config",
}
_BY_METAVAR = {
    "TOPIC": "topics",
    "GROUP": "groups",
    "TIME": "times",
    "DURATION": "durations",
    "KEY": "settings",
    "KEY=VALUE": "assignments",
    "RESOURCE": "resources",
}
_RESOURCES = {"topic": "topics", "group": "groups"}
DURATIONS = ("30s", "5m", "1h", "1d", "1w")


class Place(NamedTuple):
    """What the word being typed is."""

    kind: str
    """Empty: nothing can be named here."""
    choices: tuple[str, ...] = ()
    among: str = "topic"
    """Whose settings are meant."""


NOWHERE = Place("")


def answer(words: Sequence[str], console: Console) -> ExitCode:
    """Print the names that begin with the last word, one a line."""
    told, console.err = console.err, io.StringIO()  # warnings about profiles are for users who run a command
    try:
        found = sorted(set(candidates(words, console)), key=_numbers_last)
        for name in found[:MOST_NAMES]:
            if name.startswith(words[-1] if words else "") and name.isprintable():
                console.print(name)
    except (Exception, SystemExit):  # noqa: BLE001 - a traceback is of no use to a completion
        return ExitCode.FAILED
    finally:
        console.err = told
    return ExitCode.OK


def _numbers_last(name: str) -> tuple[bool, str]:
    """Sort internal topics last: they are wanted least."""
    return name.startswith("__"), name


def candidates(words: Sequence[str], console: Console) -> Iterable[str]:
    place = place_of(words)
    if place.kind in {"topics", "groups"}:
        return names_of(place.kind, words, console)
    if place.kind == "resources":
        kind, colon, _ = words[-1].partition(":")
        if not colon:
            return ("topic:", "group:", "transactional-id:", "cluster")
        return [f"{kind}:{name}" for name in names_of(_RESOURCES[kind], words, console)]
    if place.kind == "profiles":
        from horolog.commands.connection import profiles

        return profiles(console.environ)
    if place.kind in {"settings", "assignments"}:
        return settings(place, words[-1])
    if place.kind == "times":
        return times(console)
    return DURATIONS if place.kind == "durations" else place.choices


# -- which word it is


def kind_of(action: argparse.Action) -> str:
    """The kind of an argument or of an option's value, if its names can be looked up."""
    if action.dest == "profile":
        return "profiles"
    if action.dest == "pattern" and action.metavar == "PATTERN":
        return "pattern"
    if action.dest == "name" and action.metavar == "NAME":
        return "named"
    return _BY_METAVAR.get(action.metavar or "", "") if isinstance(action.metavar, str) else ""


def place_of(words: Sequence[str]) -> Place:
    """The place of the last word in the command."""
    from horolog.client.cli.commands import BY_NAME
    from horolog.client.cli.main import parser_of

    if len(words) < 2 or words[0] not in BY_NAME:
        return NOWHERE
    parser = parser_of(BY_NAME[words[0]])
    passed: list[str] = []
    waiting: argparse.Action | None = None
    action_name = ""
    for word in words[1:-1]:
        options, below = _options(parser), _actions(parser)
        if waiting is not None:
            waiting = None
        elif word in options:
            waiting = options[word] if options[word].nargs != 0 else None
        elif word in below:
            parser, passed, action_name = below[word], [], word
        elif not word.startswith("-"):
            passed.append(word)
    if waiting is not None:
        return _place(waiting, words[0], passed)
    positionals = [one for one in parser._get_positional_actions() if one.nargs != argparse.PARSER]  # noqa: SLF001
    if not positionals or words[-1].startswith("-"):
        return NOWHERE
    wanted = positionals[min(len(passed), len(positionals) - 1)]
    if len(passed) >= len(positionals) and wanted.nargs not in {"*", "+"}:
        return NOWHERE
    if (words[0], action_name) == ("topics", "create"):  # its names are new
        return NOWHERE
    return _place(wanted, words[0], passed)


def _options(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    return parser._option_string_actions  # noqa: SLF001 - argparse has no public way


def _actions(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    found: dict[str, argparse.ArgumentParser] = {}
    for one in parser._actions:  # noqa: SLF001
        if isinstance(one, argparse._SubParsersAction):  # noqa: SLF001
            found |= one.choices
    return found


def _place(action: argparse.Action, command: str, passed: Sequence[str]) -> Place:
    """The place, refined by the words before it: whose setting or name the word is."""
    among = passed[0] if command == "configs" and passed else "topic"
    kind = kind_of(action)
    if kind == "named":
        kind = {"topic": "topics", "group": "groups"}.get(among, "")
        return Place(kind, ("all", "0") if among == "broker" else (), among)
    if kind == "pattern":
        kind = "groups" if command == "groups" else "topics"
    return Place(kind, tuple(str(one) for one in action.choices or ()), among)


# -- names


class Setting(NamedTuple):
    """The possible values of a setting, as far as known."""

    words: Sequence[str] = ()
    is_list: bool = False
    """Whether several values may be joined by commas."""


def settings(place: Place, written: str) -> list[str]:
    """Keys; for assignments with `=`, and after it the possible values."""
    known = settings_of(place.among)
    if place.kind == "settings":
        return list(known)
    key, sign, value = written.partition("=")
    if not sign:
        return [f"{each}=" for each in known]
    setting = known.get(key, Setting())
    *taken, _ = value.split(",") if setting.is_list else [""]
    if not all(word in setting.words for word in taken):
        return []
    before = "".join(f"{word}," for word in taken)
    return [f"{key}={before}{word}" for word in setting.words if word not in taken]


def settings_of(kind: str) -> dict[str, Setting]:
    """Of topics, of brokers or of groups."""
    from horolog.broker.config.settings import SPECS
    from horolog.broker.config.topic_settings import ROWS
    from horolog.client.security.options import MECHANISMS
    from horolog.client.values.group_settings import GROUP_SETTINGS

    if kind == "group":
        return {key: Setting(words) for key, words in GROUP_SETTINGS.items()}
    specs = SPECS if kind == "broker" else {key: row.spec for key, row in ROWS.items()}
    found = {}
    for key, spec in specs.items():
        words = MECHANISMS if key == "sasl.enabled.mechanisms" else spec.choices
        words = ("true", "false") if spec.type.name == "BOOLEAN" else words
        found[key] = Setting(words, is_list=spec.type.name == "LIST")
    return found


def times(console: Console) -> list[str]:
    """Examples of the time grammar, close to now."""
    from datetime import UTC, datetime, timedelta

    now = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=console.now_ms())).astimezone(console.zone)
    return [
        *("5m", "1h", "1d", "now", "now-1h", "today", "yesterday", "monday", "last monday"),
        f"{now:%H}:00",
        f"yesterday {now:%H}:00",
        f"{now:%Y-%m-%d}",
        f"{now:%Y-%m-%dT%H:%M}",
        f"@{console.now_ms()}",
    ]


def names_of(kind: str, words: Sequence[str], console: Console) -> list[str]:
    """Topics or groups of the broker that the words name."""
    from horolog.commands.connection import settle
    from horolog.commands.running import run_until_done

    arguments = connection_of(words)
    settle(arguments, console)
    given = console.environ.get(ANSWER_VARIABLE)
    timeout_ms = duration(given) if given else ANSWER_MS
    found: list[str] = []

    async def ask() -> ExitCode:
        import asyncio

        async with asyncio.timeout(timeout_ms / 1000):
            found.extend(await _asked(kind, arguments, timeout_ms))
        return ExitCode.OK

    run_until_done(ask())
    return found


def connection_of(words: Sequence[str]) -> argparse.Namespace:
    """Where the command would connect to; the rest of it need not be valid yet."""
    from pathlib import Path

    found: dict[str, str | Path | None] = dict.fromkeys(CONNECTION.values())
    for word, following in itertools.pairwise(words[:-1]):
        if word in CONNECTION:
            found[CONNECTION[word]] = following
    for word in words[:-1]:
        name, sign, value = word.partition("=")
        if sign and name in CONNECTION:
            found[CONNECTION[name]] = value
    if found["command_config"] is not None:
        found["command_config"] = Path(found["command_config"])
    return argparse.Namespace(**found)


async def _asked(kind: str, arguments: argparse.Namespace, timeout_ms: int) -> list[str]:
    from horolog.client.admin.admin import Admin
    from horolog.client.wire.client import Client
    from horolog.client.wire.retry import RetryPolicy

    async with Client(
        arguments.bootstrap,
        security=arguments.security,
        client_id="horolog-completion",
        connect_timeout_ms=timeout_ms,
        request_timeout_ms=timeout_ms,
        retry=RetryPolicy(timeout_ms=timeout_ms),
    ) as client:
        if kind == "topics":
            return list((await client.metadata()).topics)
        async with Admin(client) as admin:
            return [one.group for one in await admin.list_groups()]
