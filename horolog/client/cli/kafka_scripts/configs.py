"""`kafka-configs`: show and change the settings of topics, brokers and groups."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from horolog.client.cli.kafka_scripts.options import add_actions, add_bootstrap, add_unused, assignments
from horolog.commands.console import Console
from horolog.commands.errors import NotFoundError, UsageError
from horolog.commands.exit_codes import ExitCode
from horolog.commands.online.connecting import admin_of

if TYPE_CHECKING:
    from horolog.client.admin.admin import Admin
    from horolog.client.admin.admin_configs import Config

KINDS = {"topics": "topic", "brokers": "broker", "groups": "group"}
NOT_SERVED = ("users", "clients", "ips", "client-metrics", "broker-loggers")
SOURCES = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
    7: "DYNAMIC_CLIENT_METRICS_CONFIG",
    8: "DYNAMIC_GROUP_CONFIG",
}
OWN_SOURCES = {"topic": (1,), "broker": (2, 3), "group": (8,)}
"""The source of a setting that was set on the entity itself."""


def configure(parser: argparse.ArgumentParser) -> None:
    add_actions(parser, "describe", "alter")
    add_bootstrap(parser)
    parser.add_argument("--entity-type", choices=(*KINDS, *NOT_SERVED), metavar="TYPE")
    parser.add_argument("--entity-name", metavar="NAME")
    parser.add_argument("--entity-default", action="store_true", help="the defaults of all brokers")
    for kind in KINDS.values():
        parser.add_argument(f"--{kind}", metavar="NAME", help=f"for --entity-type {kind}s --entity-name NAME")
    parser.add_argument("--broker-defaults", action="store_true", help="for --entity-type brokers --entity-default")
    parser.add_argument("--all", action="store_true", help="include settings that have their default value")
    parser.add_argument("--add-config", metavar="KEY=VALUE,...")
    parser.add_argument("--add-config-file", type=Path, metavar="FILE")
    parser.add_argument("--delete-config", metavar="KEY,...")
    add_unused(parser, "--force", takes_value=False)


async def run(arguments: argparse.Namespace, console: Console) -> ExitCode:

    kind, name = _entity(arguments)
    changes = _changes(arguments) if arguments.action == "alter" else {}
    async with admin_of(arguments) as admin:
        if arguments.action == "describe":
            for each in [name] if name is not None else await _all_names(admin, kind):
                await _describe(admin, kind, each, arguments, console)
            return ExitCode.OK
        if name is None:
            raise UsageError("--alter needs --entity-name or --entity-default")
        await _must_exist(admin, kind, name)
        await admin.alter_configs(kind, name, changes)
    console.print(
        f"Completed updating {f'config for {kind} {name}' if name else f'default config for {kind}s in the cluster'}."
    )
    return ExitCode.OK


def _entity(arguments: argparse.Namespace) -> tuple[str, str | None]:
    """The entity's kind and name; no name: all of the kind, an empty name: the default of all brokers."""
    named = [(kind, name) for kind in KINDS.values() if (name := getattr(arguments, kind)) is not None]
    if arguments.broker_defaults:
        named.append(("broker", ""))
    if len(named) + (arguments.entity_type is not None) != 1:
        raise UsageError("expected one of --entity-type, --topic, --broker, --broker-defaults and --group")
    if named:
        return named[0]
    if arguments.entity_type in NOT_SERVED:
        raise UsageError(f"--entity-type {arguments.entity_type} is not supported", f"use {', '.join(KINDS)}")
    if arguments.entity_default:
        if arguments.entity_type != "brokers":
            raise UsageError("--entity-default is for --entity-type brokers")
        return "broker", ""
    return KINDS[arguments.entity_type], arguments.entity_name


def _changes(arguments: argparse.Namespace) -> dict[str, str | None]:
    changes: dict[str, str | None] = {}
    if arguments.add_config_file is not None:
        from horolog.base.properties_file import PropertiesError, parse

        try:
            changes.update(parse(arguments.add_config_file.read_bytes()))
        except PropertiesError as error:
            raise UsageError(f"{arguments.add_config_file}: {error}") from error
    changes.update(assignments([arguments.add_config] if arguments.add_config else []))
    changes.update(dict.fromkeys(key.strip() for key in (arguments.delete_config or "").split(",") if key.strip()))
    if not changes:
        raise UsageError("nothing to alter", "give --add-config, --add-config-file or --delete-config")
    return changes


async def _must_exist(admin: "Admin", kind: str, name: str) -> None:
    if kind == "topic" and name not in (await admin.client.metadata()).topics:
        raise NotFoundError(f"The topic '{name}' does not exist and dynamic config must be set on an existing topic")


async def _all_names(admin: "Admin", kind: str) -> list[str]:
    if kind == "topic":
        return sorted((await admin.client.metadata()).topics)
    if kind == "broker":
        return ["", *map(str, sorted((await admin.client.metadata()).nodes))]
    return sorted(listed.group for listed in await admin.list_groups())


async def _describe(admin: "Admin", kind: str, name: str, arguments: argparse.Namespace, console: Console) -> None:
    await _must_exist(admin, kind, name)
    configs = await admin.describe_configs(kind, name)
    own = OWN_SOURCES[kind] if name else (3,)
    if name:
        console.print(f"{'All' if arguments.all else 'Dynamic'} configs for {kind} {name} are:")
    else:
        console.print(f"Default configs for {kind}s in the cluster are:")
    for key, config in sorted(configs.items()):
        if arguments.all or config.source in own:
            console.print(
                f"  {key}={_value(config.value)} sensitive={_flag(config.sensitive)} synonyms={_synonyms(config)}"
            )


def _synonyms(config: "Config") -> str:
    told = (f"{SOURCES.get(source, 'UNKNOWN')}:{key}={_value(value)}" for key, value, source in config.synonyms)
    return "{" + ", ".join(told) + "}"


def _value(value: str | None) -> str:
    return "null" if value is None else value


def _flag(flag: bool) -> str:
    return "true" if flag else "false"
