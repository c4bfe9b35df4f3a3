"""`horolog groups`: consumer groups, their lag in records and seconds, and resets by time."""

import argparse
from typing import TYPE_CHECKING, Any

from horolog.base.readable import counted
from horolog.commands.arguments import add_zone, duration, partitions, whole_number
from horolog.commands.console import Console
from horolog.commands.errors import CommandError, NotFoundError, UsageError
from horolog.commands.exit_codes import ExitCode
from horolog.commands.online.actions import Action, add_actions, add_yes, confirmed, run_action
from horolog.commands.online.connecting import admin_of, partitions_of
from horolog.commands.online.looked_at import NO_COMMIT, SHOWN, require_looked_at, why_no_group, without_lag

if TYPE_CHECKING:
    from horolog.client.admin.admin import Admin
    from horolog.client.admin.admin_groups import GroupDescription
    from horolog.client.admin.streams_view import StreamsView
    from horolog.client.moments.lagging import Lag
    from horolog.client.values.times import Moment
    from horolog.client.values.types import TopicPartition
    from horolog.protocol.messages.streams_groups import DescribedStreamsGroup

DEAD = "Dead"
IDLE_STATES = {"Empty", DEAD, ""}
WATCH_SECONDS = 5


def configure(parser: argparse.ArgumentParser) -> None:
    add_actions(parser, "List, describe, reset and delete groups, and show how far they are behind.", ACTIONS)


async def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    return await run_action(ACTIONS, arguments, console)


# -- list, describe


def _list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pattern", metavar="PATTERN", nargs="?", default="*", help="only matching names: 'bill*'")


async def _list(arguments: argparse.Namespace, console: Console) -> ExitCode:
    from fnmatch import fnmatchcase

    async with admin_of(arguments) as admin:
        groups = [each for each in await admin.list_groups() if fnmatchcase(each.group, arguments.pattern)]
    if console.as_json:
        console.json([{"group": each.group, "state": each.state, "kind": each.kind} for each in groups])
    else:
        console.table(("GROUP", "STATE", "KIND"), [(each.group, each.state, each.kind) for each in groups])
    return ExitCode.OK


def _names_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("groups", metavar="GROUP", nargs="+")


async def _describe(arguments: argparse.Namespace, console: Console) -> ExitCode:
    from horolog.client.admin.streams_view import streams_view

    async with admin_of(arguments) as admin:
        for group in arguments.groups:
            await _require(admin, group)
        described = list((await admin.describe_groups(arguments.groups)).values())
        streams = {
            each.group: None if (found := await _streams_of(admin, each)) is None else streams_view(found)
            for each in described
        }
    if console.as_json:
        console.json(
            [
                {
                    "group": each.group,
                    "state": each.state,
                    "kind": each.kind,
                    "protocol_type": each.protocol_type,
                    "assignor": each.assignor,
                    "members": [
                        {
                            "member_id": member.member_id,
                            "instance_id": member.instance_id,
                            "client_id": member.client_id,
                            "host": member.host,
                            "assignment": [place._asdict() for place in member.assignment],
                        }
                        for member in each.members
                    ],
                    "streams": None if (view := streams[each.group]) is None else _view_as_json(view),
                }
                for each in described
            ]
        )
        return ExitCode.OK
    for each in described:
        assignor = f", assignor {each.assignor}" if each.assignor else ""
        console.print(f"{console.style('bold', each.group)}  {each.state}  {each.kind} group{assignor}")
        if each.members:
            console.table(
                ("CLIENT", "HOST", "INSTANCE", "PARTITIONS", "MEMBER"),
                [
                    (member.client_id, member.host, member.instance_id, _spoken(member.assignment), member.member_id)
                    for member in each.members
                ],
            )
        else:
            console.print("no members")
        if (view := streams[each.group]) is not None:
            _print_streams(view, console)
    return ExitCode.OK


async def _streams_of(admin: "Admin", described: "GroupDescription") -> "DescribedStreamsGroup | None":
    """The topology and the tasks of a streams group; None for groups of other kinds."""
    from horolog.client.admin.admin_streams_groups import STREAMS_PROTOCOL

    return await admin.streams_group_of(described.group) if described.kind == STREAMS_PROTOCOL else None


def _view_as_json(view: "StreamsView") -> dict[str, Any]:
    return {
        "has_all_topics": view.is_complete,
        "subtopologies": [each._asdict() for each in view.subtopologies],
        "members": [each._asdict() for each in view.members],
    }


def _print_streams(view: "StreamsView", console: Console) -> None:
    if not view.is_complete:
        console.print("The application has no tasks: topics are missing, or their numbers of partitions do not match.")
    console.table(
        ("SUBTOPOLOGY", "READS", "WRITES", "CHANGELOGS", "TASKS"),
        [
            (one.name, *(" ".join(names) or "-" for names in (one.reads, one.writes, one.state)), one.tasks)
            for one in view.subtopologies
        ],
    )
    if view.members:
        console.table(
            ("PROCESS", "ACTIVE TASKS", "STANDBY", "WARMING UP"),
            [(one.process, *(tasks or "-" for tasks in (one.active, one.standby, one.warmup))) for one in view.members],
        )


def _spoken(places: "tuple[TopicPartition, ...]") -> str:
    return " ".join(str(place) for place in sorted(places)) or "-"


async def _require(admin: "Admin", group: str) -> str:
    """The state of an existing group; a group with only committed offsets exists too."""
    state = (await admin.describe_groups([group]))[group].state
    if state == DEAD and not await admin.group_offsets(group):
        raise await why_no_group(admin, group)
    return state


# -- lag


def _lag_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("groups", metavar="GROUP", nargs="*", help="only these groups (default: all)")
    parser.add_argument(
        "-t", "--topic", action="append", default=[], metavar="TOPIC", help="only this topic; repeatable"
    )
    parser.add_argument(
        "--alert", type=duration, metavar="DURATION", help="exit with 3 if a partition is further behind than this"
    )
    parser.add_argument("-w", "--watch", action="store_true", help="repeat until Ctrl-C or an alert")
    parser.add_argument(
        "--every",
        type=duration,
        default=f"{WATCH_SECONDS}s",
        metavar="DURATION",
        help=f"time between two checks (default: {WATCH_SECONDS}s)",
    )
    add_zone(parser)


async def _lag(arguments: argparse.Namespace, console: Console) -> ExitCode:
    import asyncio

    from horolog.client.moments.lagging import as_json, lag_of, longest, of_unknown_length

    async with admin_of(arguments) as admin:
        for group in arguments.groups:
            await _require(admin, group)
        while True:
            groups = arguments.groups or [each.group for each in await admin.list_groups()]
            lags = [lag for group in groups for lag in await lag_of(admin, group, console.now_ms(), arguments.topic)]
            if arguments.alert is not None or arguments.topic:
                await require_looked_at(admin, arguments.groups, arguments.topic, lags)
            alert = arguments.alert is not None and longest(lags) * 1000 > arguments.alert
            unknown = [] if arguments.alert is None else of_unknown_length(lags, arguments.alert)
            if console.as_json and arguments.watch:
                console.json_line([as_json(lag) for lag in lags])
                console.out.flush()
            elif console.as_json:
                console.json([as_json(lag) for lag in lags])
            else:
                _show_lag(lags, console)
            for sentence in without_lag(arguments.groups, lags):
                console.note(sentence)
            if alert:
                _say_alert(lags, arguments.alert, console)
            for sentence in unknown:
                console.warn(sentence)
            if alert or unknown:
                return ExitCode.ALERT
            if not arguments.watch:
                return ExitCode.OK
            await asyncio.sleep(arguments.every / 1000)


def _show_lag(lags: "list[Lag]", console: Console) -> None:
    console.table(
        (
            "GROUP",
            "TOPIC",
            "PARTITION",
            "COMMITTED",
            "END",
            "RECORDS BEHIND",
            "TIME BEHIND",
            "NEXT RECORD TIME",
            "READ BY",
        ),
        [
            (
                lag.group,
                *lag.partition,
                NO_COMMIT if lag.lacks_commit else lag.committed,
                lag.end_offset,
                f"up to {lag.most_records}" if lag.lacks_commit else lag.records,
                _behind(lag),
                None if lag.next_timestamp_ms is None else console.show_time(lag.next_timestamp_ms),
                lag.member,
            )
            for lag in lags
        ],
    )


def _behind(lag: "Lag") -> str | None:
    if lag.lacks_commit and lag.most_seconds is not None:
        return f"up to {_in_time(lag.most_seconds)}"
    return None if lag.seconds is None else _in_time(lag.seconds)


def _in_time(seconds: float) -> str:
    from horolog.client.values.times import format_duration

    return format_duration(round(seconds) * 1000) if seconds >= 10 else f"{seconds:.1f}s"


def _say_alert(lags: "list[Lag]", limit_ms: int, console: Console) -> None:
    from horolog.client.values.times import format_duration

    late = [lag for lag in lags if (lag.seconds or 0) * 1000 > limit_ms]
    worst = max(late, key=lambda lag: lag.seconds or 0)
    console.warn(
        f"{counted(len(late), 'partition')} more than {format_duration(limit_ms)} behind, the most {worst.partition} of group"
        f" {worst.group}: {_behind(worst)}"
    )


# -- reset


def _reset_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("group", metavar="GROUP")
    parser.add_argument(
        "-t",
        "--topic",
        action="append",
        default=[],
        metavar="TOPIC",
        help="only this topic (default: all topics with committed offsets; for a streams group, all its source topics)",
    )
    parser.add_argument(
        "-p", "--partition", type=partitions, metavar="N", help="only these partitions of the topic: 0,3,5-7"
    )
    parser.add_argument(
        "--to", metavar="TIME", help="continue at the first record at or after this time; also earliest or latest"
    )
    parser.add_argument("--to-offset", type=whole_number, metavar="N", help="continue at this offset")
    parser.add_argument("--by", metavar="N", help="move by this many offsets; --by=-100 moves back")
    parser.add_argument("--share", action="store_true", help="create a share group if the group does not exist")
    parser.add_argument("-n", "--dry-run", action="store_true", help="only show the new offsets")
    add_zone(parser)


async def _reset(arguments: argparse.Namespace, console: Console) -> ExitCode:
    from horolog.client.moments.lagging import targets

    given = [name for name in ("to", "to_offset", "by") if getattr(arguments, name) is not None]
    if len(given) != 1:
        fault = "the new position is missing" if not given else "the new position is given more than once"
        raise UsageError(fault, "give one of --to, --to-offset and --by")
    moment = _moment_to_go_to(arguments, console)
    async with admin_of(arguments) as admin:
        group = await _group_to_reset(admin, arguments)
        before = {place: found.offset for place, found in (await admin.positions_of(group)).items()}
        streams = await _streams_of(admin, group)
        places = await _places(admin, arguments, list(before), streams)
        if moment is not None:
            after = await targets(admin.client, places, moment.ms)
        else:
            after = await _where_to(admin, arguments, places, before, console)
        if not arguments.dry_run and after:
            await admin.move_group(group, {place: offset for place, (offset, _) in after.items()})
    if group.state not in IDLE_STATES:
        console.warn(f"the group is {group.state}: its offsets can only be set while it has no members")
    _show_reset(arguments.group, places, before, after, console)
    if streams is not None:
        _note_internal_topics(streams, "the application continues with its old state", console)
    if arguments.dry_run:
        console.note("nothing was changed (--dry-run)")
    return ExitCode.OK


def _moment_to_go_to(arguments: argparse.Namespace, console: Console) -> "Moment | None":
    """The moment of `--to`; a group stores only where to continue, so a range is refused."""
    from horolog.client.values.times import RANGE_SEPARATOR

    if arguments.to is None:
        return None
    since = arguments.to.partition(RANGE_SEPARATOR)[0].strip()
    if since != arguments.to.strip():
        raise UsageError(
            f"--to {arguments.to!r} is a range: a group stores where to continue, not where to stop",
            f"use --to {since!r} for its start" if since else "give one time",
        )
    moment = console.time(arguments.to, "--to", ends=True)
    console.note(f"--to is {moment.understood}")
    return moment


async def _group_to_reset(admin: "Admin", arguments: argparse.Namespace) -> "GroupDescription":
    """The group; one that does not exist may be reset if topics are named: then it begins at the given place."""
    from dataclasses import replace

    group = (await admin.describe_groups([arguments.group]))[arguments.group]
    if group.state not in IDLE_STATES and not arguments.dry_run:
        raise CommandError(
            f"group {arguments.group} is {group.state}: it has members",
            "stop them first, or preview the reset with --dry-run",
        )
    if group.state != DEAD:
        return group
    if not arguments.topic:
        await _require(admin, arguments.group)
    return replace(group, protocol_type="share") if arguments.share else group


async def _places(
    admin: "Admin",
    arguments: argparse.Namespace,
    committed: "list[TopicPartition]",
    streams: "DescribedStreamsGroup | None",
) -> "list[TopicPartition]":
    """The partitions to reset. What a streams group reads of its internal topics is its own affair, as with Kafka's tool."""
    from horolog.client.admin.admin_streams_groups import source_topics

    if arguments.partition is not None and len(arguments.topic) != 1:
        raise UsageError("--partition needs a single topic", "name it with --topic")
    topics = arguments.topic
    if not topics:
        known = (await admin.client.metadata()).topics
        if streams is None:
            return sorted(place for place in committed if place.topic in known)
        topics = [topic for topic in source_topics(streams) if topic in known]
    return [place for topic in topics for place in await partitions_of(admin.client, topic, arguments.partition)]


async def _where_to(
    admin: "Admin",
    arguments: argparse.Namespace,
    places: "list[TopicPartition]",
    before: "dict[TopicPartition, int | None]",
    console: Console,
) -> "dict[TopicPartition, tuple[int, int | None]]":
    """The offset for each partition, for resets by offset."""
    from horolog.client.values.types import EARLIEST, LATEST
    from horolog.client.wire.offsets import ends
    from horolog.commands.online.reading import within

    first = await ends(admin.client, dict.fromkeys(places, EARLIEST))
    last = await ends(admin.client, dict.fromkeys(places, LATEST))
    if arguments.to_offset is not None:
        wanted = dict.fromkeys(places, arguments.to_offset)
    else:
        step = _step(arguments.by)
        wanted = {place: at + step for place in places if (at := before.get(place)) is not None}
    return {place: (offset, None) for place, offset in within(first, last, wanted, console).items()}


def _note_internal_topics(streams: "DescribedStreamsGroup", consequence: str, console: Console) -> None:
    """State outlives the offsets that led to it: say how to begin without."""
    from horolog.client.admin.admin_streams_groups import internal_topics

    if topics := internal_topics(streams):
        console.note(
            f"the internal topics keep their records: {consequence};"
            f" to begin without it: horolog topics delete {' '.join(topics)}"
        )


def _step(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise UsageError(f"--by {text!r}: expected a whole number") from error


def _show_reset(
    group: str,
    places: "list[TopicPartition]",
    before: "dict[TopicPartition, int | None]",
    after: "dict[TopicPartition, tuple[int, int | None]]",
    console: Console,
) -> None:
    rows: list[dict[str, Any]] = [
        {
            "group": group,
            "topic": place.topic,
            "partition": place.partition,
            "from": before.get(place),
            "to": after[place][0],
            "timestamp": after[place][1],
        }
        for place in places
        if place in after
    ]
    if console.as_json:
        console.json(rows)
        return
    console.table(
        ("TOPIC", "PARTITION", "FROM", "TO", "DIFFERENCE", "RECORD TIME"),
        [
            (
                row["topic"],
                row["partition"],
                row["from"],
                row["to"],
                None if row["from"] is None else f"{row['to'] - row['from']:+d}",
                None if row["timestamp"] is None else console.show_time(row["timestamp"]),
            )
            for row in rows
        ],
    )


# -- delete


def _delete_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("groups", metavar="GROUP", nargs="+")
    parser.add_argument(
        "-t", "--topic", action="append", default=[], metavar="TOPIC", help="only the group's offsets for this topic"
    )
    add_yes(parser)


async def _delete(arguments: argparse.Namespace, console: Console) -> ExitCode:

    async with admin_of(arguments) as admin:
        for group in arguments.groups:
            await _require(admin, group)
        what = f"the offsets for {', '.join(arguments.topic)} of" if arguments.topic else "all offsets of"
        if not await confirmed(arguments, console, f"deleting {what} {', '.join(arguments.groups)}"):
            return ExitCode.FAILED
        if arguments.topic:
            shares = {
                each.group
                for each in (await admin.describe_groups(arguments.groups)).values()
                if each.protocol_type == "share"
            }
            for group in arguments.groups:
                if group in shares:
                    await admin.delete_share_group_offsets(group, arguments.topic)
                    continue
                places = [place for place in await admin.group_offsets(group) if place.topic in arguments.topic]
                await admin.delete_group_offsets(group, places)
        else:
            described = await admin.describe_groups(arguments.groups)
            streams = [found for each in described.values() if (found := await _streams_of(admin, each)) is not None]
            await admin.delete_groups(arguments.groups)
            for each in streams:
                _note_internal_topics(each, "an application of the same name continues with its old state", console)
    if console.as_json:
        console.json(
            [{"group": group, "deleted": True, "topics": arguments.topic or None} for group in arguments.groups]
        )
    else:
        for group in arguments.groups:
            console.print(f"{group}: deleted")
    return ExitCode.OK


def _delete_offsets_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("group", metavar="GROUP")
    parser.add_argument("-t", "--topic", required=True, metavar="TOPIC", help="the topic")
    parser.add_argument("-p", "--partition", type=partitions, metavar="N", help="only these partitions: 0,3,5-7")
    add_yes(parser)


async def _delete_offsets(arguments: argparse.Namespace, console: Console) -> ExitCode:
    """Of a consumer group, for single partitions; `delete --topic` also serves share groups."""
    async with admin_of(arguments) as admin:
        await _require(admin, arguments.group)
        committed = {place: at.offset for place, at in (await admin.group_offsets(arguments.group)).items() if at}
        wanted = arguments.partition
        places = [
            place
            for place in sorted(committed)
            if place.topic == arguments.topic and (wanted is None or place.partition in wanted)
        ]
        if not places:
            raise NotFoundError(f"group {arguments.group!r} has no committed offsets there", SHOWN)
        what = f"deleting {counted(len(places), 'offset')} of {arguments.group} for {arguments.topic}"
        if not await confirmed(arguments, console, what):
            return ExitCode.FAILED
        await admin.delete_group_offsets(arguments.group, places)
    if console.as_json:
        console.json([{"topic": one.topic, "partition": one.partition, "deleted": committed[one]} for one in places])
    else:
        for place in places:
            console.print(f"{place}: deleted")
    return ExitCode.OK


ACTIONS = (
    Action("list", "list groups", _list_arguments, _list, ("horolog groups list",)),
    Action(
        "describe",
        "show the members of a group and their partitions",
        _names_arguments,
        _describe,
        ("horolog groups describe billing",),
    ),
    Action(
        "lag",
        "show how far groups are behind, in records and in time",
        _lag_arguments,
        _lag,
        ("horolog groups lag billing --alert 5m", "horolog groups lag --watch --every 2s"),
    ),
    Action(
        "reset",
        "set the offset or time where a group continues",
        _reset_arguments,
        _reset,
        (
            "horolog groups reset billing --to 30m-ago --dry-run",
            "horolog groups reset billing --topic orders --to 'yesterday 10:00'",
            "horolog groups reset billing --by=-100",
        ),
    ),
    Action(
        "delete",
        "delete groups, or their offsets for some topics",
        _delete_arguments,
        _delete,
        ("horolog groups delete billing --yes",),
    ),
    Action(
        "delete-offsets",
        "delete the offsets of a group for a topic or some of its partitions",
        _delete_offsets_arguments,
        _delete_offsets,
        ("horolog groups delete-offsets billing --topic orders --partition 3",),
    ),
)
