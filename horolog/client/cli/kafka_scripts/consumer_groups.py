"""`kafka-consumer-groups`: list, describe, reset and delete consumer groups."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from horolog.client.cli.kafka_scripts.options import add_actions, add_bootstrap, add_unused
from horolog.commands.arguments import whole_number
from horolog.commands.console import Console
from horolog.commands.errors import CommandError, NotFoundError, UsageError
from horolog.commands.exit_codes import ExitCode
from horolog.commands.online.connecting import admin_of, partitions_of

if TYPE_CHECKING:
    from horolog.client.admin.admin import Admin
    from horolog.client.admin.admin_groups import GroupDescription, GroupListing
    from horolog.client.values.types import TopicPartition

ACTIONS = ("list", "describe", "reset-offsets", "delete", "delete-offsets")
NO_GROUP = "Dead"
OTHER_SCRIPTS = frozenset({"share", "streams"})
IDLE = ("Empty", "Dead")
MISSING = "-"
OFFSET_HEADINGS = (
    *("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    add_actions(parser, *ACTIONS)
    add_bootstrap(parser)
    parser.add_argument("--group", action="append", default=[], metavar="GROUP")
    parser.add_argument("--all-groups", action="store_true")
    parser.add_argument("--topic", action="append", default=[], metavar="TOPIC[:N,...]")
    parser.add_argument("--all-topics", action="store_true")
    shown = parser.add_mutually_exclusive_group()
    for name in ("offsets", "members", "state"):
        shown.add_argument(f"--{name}", dest="shown", action="store_const", const=name)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--dry-run", action="store_true", help="only show the new offsets (default)")
    parser.add_argument("--execute", action="store_true", help="set the new offsets")
    where = parser.add_mutually_exclusive_group()
    for name in ("to-earliest", "to-latest", "to-current"):
        where.add_argument(f"--{name}", dest="where", action="store_const", const=name)
    where.add_argument("--to-offset", type=whole_number, metavar="N")
    where.add_argument("--shift-by", type=int, metavar="N")
    where.add_argument("--to-datetime", metavar="TIME", help="2026-11-17T10:05:00.000")
    where.add_argument("--by-duration", metavar="DURATION", help="this long before now: PT30M, P1DT2H")
    add_unused(parser, "--timeout")


async def run(arguments: argparse.Namespace, console: Console) -> ExitCode:

    async with admin_of(arguments) as admin:
        if arguments.action == "list":
            for listed in await _listed(admin):
                console.print(f"{listed.group}\t{listed.state}" if arguments.shown == "state" else listed.group)
            return ExitCode.OK
        groups = await _groups(admin, arguments)
        for group in groups:
            await _must_exist(admin, group, arguments.action)
        await {
            "describe": _describe,
            "reset-offsets": _reset,
            "delete": _delete,
            "delete-offsets": _delete_offsets,
        }[arguments.action](admin, groups, arguments, console)
    return ExitCode.OK


async def _groups(admin: "Admin", arguments: argparse.Namespace) -> list[str]:
    if bool(arguments.group) == arguments.all_groups:
        raise UsageError(f"--{arguments.action} needs --group or --all-groups")
    return arguments.group or [listed.group for listed in await _listed(admin)]


async def _listed(admin: "Admin") -> "list[GroupListing]":
    """All groups but share groups and streams groups, for which Kafka has other scripts, by name."""
    return [listed for listed in await admin.list_groups() if listed.protocol_type not in OTHER_SCRIPTS]


async def _must_exist(admin: "Admin", group: str, action: str) -> None:
    described = (await admin.describe_groups([group]))[group]
    is_other = described.protocol_type in OTHER_SCRIPTS
    if is_other or (described.state == NO_GROUP and action != "reset-offsets" and not await admin.group_offsets(group)):
        raise NotFoundError(f"Consumer group '{group}' does not exist.")


# -- describe


async def _describe(admin: "Admin", groups: Sequence[str], arguments: argparse.Namespace, console: Console) -> None:
    for group in groups:
        described = (await admin.describe_groups([group]))[group]
        if not described.members and arguments.shown != "state":
            console.err.write(f"\nConsumer group '{group}' has no active members.\n")
        if arguments.shown == "members":
            _print_table(console, *_members(described, arguments.verbose))
        elif arguments.shown == "state":
            headings = ("GROUP", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS")
            row = (group, described.assignor or MISSING, described.state, str(len(described.members)))
            _print_table(console, headings, [row])
        else:
            _print_table(console, OFFSET_HEADINGS, await _offset_rows(admin, described, console.now_ms()))


def _members(described: "GroupDescription", verbose: bool) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    headings = ("GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "#PARTITIONS", *(("ASSIGNMENT",) if verbose else ()))
    rows = [
        (
            *(described.group, member.member_id, member.host, member.client_id, str(len(member.assignment))),
            *((",".join(map(str, sorted(member.assignment))) or MISSING,) if verbose else ()),
        )
        for member in described.members
    ]
    return headings, rows


async def _offset_rows(admin: "Admin", described: "GroupDescription", now_ms: int) -> list[tuple[str, ...]]:
    from horolog.client.moments.lagging import lag_of

    reader = {place: member for member in described.members for place in member.assignment}
    rows: list[tuple[str, ...]] = []
    for lag in await lag_of(admin, described.group, now_ms):
        member = reader.get(lag.partition)
        rows.append(
            (
                *(described.group, lag.partition.topic, str(lag.partition.partition)),
                *(
                    _number(lag.committed),
                    str(lag.end_offset),
                    MISSING if lag.committed is None else _number(lag.records),
                ),
                *((member.member_id, member.host, member.client_id) if member else (MISSING,) * 3),
            )
        )
    return rows


def _number(number: int | None) -> str:
    return MISSING if number is None else str(number)


def _print_table(console: Console, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns as wide as their content, after an empty line, as in Kafka's script."""
    widths = [max(len(row[column]) for row in (headings, *rows)) for column in range(len(headings))]
    console.print()
    for row in (headings, *rows):
        console.print(" ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


# -- reset and delete


async def _reset(admin: "Admin", groups: Sequence[str], arguments: argparse.Namespace, console: Console) -> None:
    from horolog.client.cli.kafka_scripts.new_offsets import new_offsets

    rows = []
    for group in groups:
        state = (await admin.describe_groups([group]))[group].state
        if state not in IDLE and arguments.execute:
            raise CommandError(f"Assignments can only be reset if the group '{group}' is inactive, but it is {state}.")
        committed = {place: found.offset for place, found in (await admin.group_offsets(group)).items() if found}
        places = await _places(admin, arguments, list(committed))
        offsets = await new_offsets(admin.client, places, committed, arguments, console.now_ms())
        if arguments.execute and offsets:
            await admin.alter_group_offsets(group, offsets)
        rows += [(group, place.topic, str(place.partition), str(offset)) for place, offset in sorted(offsets.items())]
    _print_table(console, ("GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"), rows)
    if not arguments.execute:
        console.err.write("Nothing was changed: --execute sets the new offsets.\n")


async def _places(
    admin: "Admin", arguments: argparse.Namespace, committed: "list[TopicPartition]"
) -> "list[TopicPartition]":
    if bool(arguments.topic) == arguments.all_topics:
        raise UsageError(f"--{arguments.action} needs --topic or --all-topics")
    if arguments.all_topics:
        return sorted(committed)
    places: list[TopicPartition] = []
    for text in arguments.topic:
        name, _, numbers = text.partition(":")
        wanted = [whole_number(number) for number in numbers.split(",")] if numbers else None
        places += await partitions_of(admin.client, name, wanted)
    return places


async def _delete(admin: "Admin", groups: Sequence[str], _arguments: argparse.Namespace, console: Console) -> None:
    await admin.delete_groups(groups)
    named = ", ".join(f"'{group}'" for group in groups)
    console.print(f"Deletion of requested consumer groups ({named}) was successful.")


async def _delete_offsets(
    admin: "Admin", groups: Sequence[str], arguments: argparse.Namespace, console: Console
) -> None:
    for group in groups:
        places = await _places(admin, arguments, list(await admin.group_offsets(group)))
        await admin.delete_group_offsets(group, places)
        console.print(f"Request succeed for deleting offsets from group {group}.")
