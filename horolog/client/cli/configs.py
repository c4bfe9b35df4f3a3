"""`horolog configs`: the settings of topics, brokers and groups, and where each comes from."""

import argparse
from typing import TYPE_CHECKING, Any

from horolog.commands.console import Console
from horolog.commands.errors import NotFoundError, UsageError
from horolog.commands.exit_codes import ExitCode
from horolog.commands.online.actions import Action, add_actions, run_action
from horolog.commands.online.connecting import admin_of, partitions_of
from horolog.commands.online.setting_values import settings_of

if TYPE_CHECKING:
    from horolog.client.admin.admin import Admin
    from horolog.client.admin.admin_configs import Config

KINDS = ("topic", "broker", "group")
ALL_BROKERS = "all"
KNOWN_WITHIN_SECONDS, LOOK_AGAIN_SECONDS = 5.0, 0.05
"""How long a change that is accepted may take to reach the broker that shows it: in Kafka it comes there by a log."""


def configure(parser: argparse.ArgumentParser) -> None:
    add_actions(parser, "Show and change the settings of topics, brokers and groups.", ACTIONS)


async def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    return await run_action(ACTIONS, arguments, console)


def _add_resource(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", choices=KINDS, help="the kind of resource")
    parser.add_argument(
        "name", metavar="NAME", help=f"a topic, a broker id ({ALL_BROKERS!r} for all brokers), or a group"
    )


def _list_arguments(parser: argparse.ArgumentParser) -> None:
    _add_resource(parser)
    parser.add_argument("pattern", metavar="KEY", nargs="?", default="*", help="only matching keys: '*timestamp*'")
    parser.add_argument("-a", "--all", action="store_true", help="include settings that have their default value")
    parser.add_argument("--explain", action="store_true", help="show a description of each setting")


async def _list(arguments: argparse.Namespace, console: Console) -> ExitCode:
    from fnmatch import fnmatchcase

    async with admin_of(arguments) as admin:
        await _require(admin, arguments)
        found = await admin.describe_configs(arguments.kind, _name(arguments), documentation=arguments.explain)
        named = arguments.pattern != "*"
        if arguments.kind == "broker" and arguments.name == ALL_BROKERS and (named or arguments.all):
            found = await _of_each_broker(admin, arguments, console) | found
    shown = [
        config
        for key, config in sorted(found.items())
        if fnmatchcase(key, arguments.pattern) and (arguments.all or named or not config.is_default)
    ]
    if named and not shown:
        raise NotFoundError(f"no setting of a {arguments.kind} is called {arguments.pattern}")
    if console.as_json:
        console.json([_as_json(config) for config in shown])
        return ExitCode.OK
    headings = ["KEY", "VALUE", "FROM", *(["DESCRIPTION"] if arguments.explain else [])]
    console.table(
        headings,
        [
            [config.name, _value(config), _source(config), *([config.documentation] if arguments.explain else [])]
            for config in shown
        ],
    )
    if not shown:
        console.note("nothing is set; use --all to show the defaults")
    return ExitCode.OK


async def _of_each_broker(admin: "Admin", arguments: argparse.Namespace, console: Console) -> "dict[str, Config]":
    """The brokers' values, cluster-wide or not: if they differ, that of the first broker, with a warning."""
    from fnmatch import fnmatchcase

    found: dict[str, Config] = {}
    for number in sorted((await admin.client.metadata([])).nodes):
        configs = await admin.describe_configs("broker", str(number), documentation=arguments.explain)
        for key, config in configs.items():
            first = found.setdefault(key, config)
            if config.value != first.value and fnmatchcase(key, arguments.pattern):
                console.warn(f"{key} is {_value(config)} on broker {number}, not the value shown")
    return found


async def _require(admin: "Admin", arguments: argparse.Namespace) -> None:
    if arguments.kind == "topic":
        await partitions_of(admin.client, arguments.name)
    if arguments.kind == "broker" and not (arguments.name.isdigit() or arguments.name == ALL_BROKERS):
        raise UsageError(f"{arguments.name!r} is not a broker", f"give a number, or {ALL_BROKERS!r}")
    if arguments.kind == "broker" and arguments.name != ALL_BROKERS:
        brokers = (await admin.client.metadata([])).nodes
        if int(arguments.name) not in brokers:
            there = ", ".join(str(number) for number in sorted(brokers))
            raise NotFoundError(f"there is no broker {arguments.name}", f"the brokers are {there}")


def _name(arguments: argparse.Namespace) -> str:
    """The protocol's name: empty for the settings of all brokers."""
    return "" if arguments.kind == "broker" and arguments.name == ALL_BROKERS else str(arguments.name)


def _value(config: "Config") -> str | None:
    if config.sensitive and config.value is None:
        return "(secret)"
    return _shown(config.name, config.value)


def _shown(key: str, value: str | None) -> str | None:
    from horolog.base.readable import setting_text

    return None if value is None else setting_text(key, value)


def _source(config: "Config") -> str:
    from horolog.client.admin.admin_configs import SOURCES

    return SOURCES.get(config.source, "unknown")


def _as_json(config: "Config") -> dict[str, Any]:
    found: dict[str, Any] = {
        "key": config.name,
        "value": config.value,
        "source": _source(config),
        "read_only": config.read_only,
        "sensitive": config.sensitive,
    }
    if config.documentation:
        found["documentation"] = config.documentation
    return found


def _set_arguments(parser: argparse.ArgumentParser) -> None:
    _add_resource(parser)
    parser.add_argument("settings", metavar="KEY=VALUE", nargs="+")
    parser.add_argument("-n", "--dry-run", action="store_true", help="only validate the change")


async def _set(arguments: argparse.Namespace, console: Console) -> ExitCode:
    changes: dict[str, str | None] = {**settings_of(arguments.settings)}
    return await _change(arguments, changes, console)


def _unset_arguments(parser: argparse.ArgumentParser) -> None:
    _add_resource(parser)
    parser.add_argument("settings", metavar="KEY", nargs="+")
    parser.add_argument("-n", "--dry-run", action="store_true", help="only validate the change")


async def _unset(arguments: argparse.Namespace, console: Console) -> ExitCode:
    return await _change(arguments, dict.fromkeys(arguments.settings), console)


async def _change(arguments: argparse.Namespace, changes: dict[str, str | None], console: Console) -> ExitCode:
    """Show the values before and after."""
    kind, name = arguments.kind, _name(arguments)
    async with admin_of(arguments) as admin:
        await _require(admin, arguments)
        before = await admin.describe_configs(kind, name, list(changes))
        await admin.alter_configs(kind, name, changes, validate_only=arguments.dry_run)
        after = before if arguments.dry_run else await _once_known(admin, kind, name, changes)
    rows = [
        {
            "key": key,
            "from": before[key].value if key in before else None,
            "to": changes[key] if arguments.dry_run else (after[key].value if key in after else None),
        }
        for key in changes
    ]
    if console.as_json:
        console.json(rows)
    else:
        console.table(
            ("KEY", "FROM", "TO"),
            [(row["key"], _shown(str(row["key"]), row["from"]), _shown(str(row["key"]), row["to"])) for row in rows],
        )
    return ExitCode.OK


async def _once_known(admin: "Admin", kind: str, name: str, changes: dict[str, str | None]) -> dict[str, "Config"]:
    """The settings that were changed; the broker that answers may hear of the change a moment after it is accepted."""
    import asyncio
    import time

    from horolog.client.admin.admin_configs import own_source

    own = own_source(kind, name)

    def is_known(key: str, value: str | None) -> bool:
        config = found.get(key)
        if config is None:
            return value is None
        return config.source != own if value is None else config.sensitive or config.value == value

    deadline = time.monotonic() + KNOWN_WITHIN_SECONDS
    while True:
        found = await admin.describe_configs(kind, name, list(changes))
        if all(is_known(key, value) for key, value in changes.items()) or time.monotonic() > deadline:
            return found
        await asyncio.sleep(LOOK_AGAIN_SECONDS)


ACTIONS = (
    Action(
        "list",
        "show settings and the source of each",
        _list_arguments,
        _list,
        ("horolog configs list topic logs", "horolog configs list broker 1 '*timestamp*' --explain"),
    ),
    Action(
        "set",
        "change settings without a restart",
        _set_arguments,
        _set,
        (
            "horolog configs set topic logs retention.ms=7d",
            "horolog configs set broker all log.retention.hours=48",
        ),
    ),
    Action(
        "unset",
        "reset settings to their defaults",
        _unset_arguments,
        _unset,
        ("horolog configs unset topic logs retention.ms",),
    ),
)
