"""`horolog topics`: lists, creates, describes, alters, copies and deletes topics, and removes records from their beginning."""

import argparse
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from horolog.base.readable import counted
from horolog.commands.arguments import add_isolation, add_zone, duration, partitions, positive_number, whole_number
from horolog.commands.console import Console
from horolog.commands.errors import CommandError, NotFoundError, UsageError
from horolog.commands.exit_codes import ExitCode
from horolog.commands.online.actions import Action, Outcome, add_actions, add_yes, confirmed, run_action, show_outcomes
from horolog.commands.online.connecting import admin_of, connected, partitions_of, why_no_topic
from horolog.commands.online.decoding import add_decoding
from horolog.commands.online.looking_ahead import add_look_ahead
from horolog.commands.online.segments import access_of, add_http
from horolog.commands.online.setting_values import settings_of

if TYPE_CHECKING:
    from horolog.client.admin.admin import Admin
    from horolog.client.segments.retention import PartitionFacts
    from horolog.client.wire.client import Client
    from horolog.client.wire.cluster_view import PartitionView, TopicView


DAYS = 7
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
UNKNOWN_KEY = "horolog.settings.unknown"
UNKNOWN = (
    "settings unknown: the topic was found without settings. Nothing is deleted or compacted until you set retention.ms,"
    f" retention.bytes, cleanup.policy or {UNKNOWN_KEY}=false"
)


def configure(parser: argparse.ArgumentParser) -> None:
    add_actions(parser, "List, create, describe, alter, trim, copy and delete topics.", ACTIONS)


async def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    return await run_action(ACTIONS, arguments, console)


# -- list


def _list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pattern", metavar="PATTERN", nargs="?", default="*", help="only matching names: 'log*'")
    parser.add_argument("--internal", action="store_true", help="include internal topics")


async def _list(arguments: argparse.Namespace, console: Console) -> ExitCode:
    from fnmatch import fnmatchcase

    async with connected(arguments) as client:
        view = await client.metadata()
    topics = [
        topic
        for name, topic in sorted(view.topics.items())
        if fnmatchcase(name, arguments.pattern) and (arguments.internal or not topic.internal)
    ]
    if console.as_json:
        console.json([_listed(topic) for topic in topics])
    else:
        console.table(
            ("TOPIC", "PARTITIONS", "REPLICAS"),
            [(topic.name, len(topic.partitions), _replicas(topic)) for topic in topics],
        )
    return ExitCode.OK


def _listed(topic: "TopicView") -> dict[str, Any]:
    return {
        "topic": topic.name,
        "partitions": len(topic.partitions),
        "replicas": _replicas(topic),
        "internal": topic.internal,
    }


def _replicas(topic: "TopicView") -> int:
    return max((len(partition.replicas) for partition in topic.partitions.values()), default=0)


# -- create


def _create_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topics", metavar="TOPIC", nargs="+")
    parser.add_argument(
        "-p",
        "--partitions",
        type=positive_number,
        metavar="N",
        help="number of partitions (default: the broker's setting)",
    )
    parser.add_argument(
        "-r",
        "--replicas",
        type=positive_number,
        metavar="N",
        help="replicas of each partition (default: the broker's setting)",
    )
    parser.add_argument(
        "-c", "--config", metavar="KEY=VALUE", action="append", help="a setting (retention.ms=7d); repeatable"
    )
    parser.add_argument("--if-not-exists", action="store_true", help="do nothing if the topic exists")
    parser.add_argument("-n", "--dry-run", action="store_true", help="only validate the change")


async def _create(arguments: argparse.Namespace, console: Console) -> ExitCode:
    from horolog.client.admin.admin_topics import NewTopic
    from horolog.client.values.errors import KafkaError, PartialFailure
    from horolog.protocol.errors import ErrorCode

    configs = settings_of(arguments.config)
    new = [
        NewTopic(name, arguments.partitions or -1, arguments.replicas or -1, dict(configs)) for name in arguments.topics
    ]
    failures: dict[str, KafkaError] = {}
    async with admin_of(arguments) as admin:
        try:
            await admin.create_topics(new, validate_only=arguments.dry_run)
        except PartialFailure as error:
            failures = error.failures
        except KafkaError as error:
            if len(new) > 1:
                raise
            failures = {new[0].name: error}
        if not arguments.dry_run:
            await _until_known(admin.client, [name for name in arguments.topics if name not in failures])
    existed: set[str] = set()
    if arguments.if_not_exists:
        existed = {name for name, error in failures.items() if error.code == ErrorCode.TOPIC_ALREADY_EXISTS}
        failures = {name: error for name, error in failures.items() if name not in existed}
    done = "created" if not arguments.dry_run else "could be created"
    return _report(done, arguments.topics, failures, console, existed)


async def _until_known(client: "Client", names: list[str]) -> None:
    """Wait until the topics are known, so that the next command finds them: Kafka's brokers learn of a topic after the response."""
    from horolog.client.values.errors import KafkaError

    for name in names:
        with suppress(KafkaError):  # it was created, even if not known yet
            await client.topic(name)


def _report(
    done: str, names: list[str], failures: "dict[str, Any]", console: Console, existed: set[str] | None = None
) -> ExitCode:
    """One line for each name. `existed`: those that already existed, if that is fine."""
    outcomes = []
    for name in names:
        members = {"name": name, "done": name not in failures}
        if existed is not None:
            members["existed"] = name in existed
        error = failures[name].message if name in failures else None
        outcomes.append(Outcome(name, members, "exists already" if existed and name in existed else done, error))
    return show_outcomes(outcomes, console)


# -- describe


def _describe_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topics", metavar="TOPIC", nargs="+")
    parser.add_argument(
        "--days",
        type=whole_number,
        default=DAYS,
        metavar="N",
        help=f"number of days, up to the last one (default: {DAYS})",
    )
    parser.add_argument("--dir", metavar="DIR", help="read a data folder instead of a broker")
    add_http(parser)
    add_zone(parser)


async def _describe(arguments: argparse.Namespace, console: Console) -> ExitCode:
    from horolog.base.readable import setting_text

    if arguments.dir is not None:
        described = [_read(arguments.dir, name, arguments, console) for name in arguments.topics]
    else:
        async with admin_of(arguments) as admin:
            described = [await _described(admin, name, arguments, console) for name in arguments.topics]
    if console.as_json:
        console.json(described)
        return ExitCode.OK
    for topic in described:
        default = "default settings" if arguments.dir is None else "settings are not read from files"
        settings = (
            ", ".join(f"{key}={setting_text(key, value or '')}" for key, value in topic["configs"].items()) or default
        )
        console.print(console.style("bold", topic["topic"]) + f"  id {topic['id'] or '-'}  {settings}")
        if topic["settings_unknown"]:
            console.print(console.style("yellow", UNKNOWN))
        console.table(
            (
                "PARTITION",
                "LEADER",
                "REPLICAS",
                "FIRST",
                "END",
                "RECORDS",
                "BYTES",
                "A DAY",
                "FIRST TIME",
                "LARGEST TIME",
            ),
            [_partition_row(each, console) for each in topic["partitions"]],
        )
        if topic["days"]:
            console.table(("DAY", "RECORDS", "BYTES"), [_day_row(each, console) for each in topic["days"]])
            if topic["bytes_by_day"] != "exact":
                console.note(f"bytes by day are estimates, from the mean size of a record: {topic['bytes_by_day']}")
    return ExitCode.OK


async def _described(admin: "Admin", name: str, arguments: argparse.Namespace, console: Console) -> dict[str, Any]:
    from horolog.client.cli.retaining.retention_look import measure
    from horolog.client.segments.day_sizes import days_of
    from horolog.protocol.apis import ApiKey
    from horolog.protocol.uuids import show_uuid

    view = (await admin.client.metadata([name])).topics.get(name)
    if view is None or view.error_code:
        raise await why_no_topic(admin.client, name)
    facts = await measure(admin, await partitions_of(admin.client, name))
    http, at_most = access_of(arguments, console), arguments.days
    look_at = partial(days_of, now_ms=console.now_ms(), http=http, at_most=at_most)
    days = await look_at(admin, view, facts, console.zone) if at_most else None
    serves = (await admin.client.versions()).serves  # Kafka before 0.11 does not list them
    configs = await admin.describe_configs("topic", name) if serves(ApiKey.DESCRIBE_CONFIGS, 0) else {}
    return {
        "topic": name,
        "id": show_uuid(view.id) if any(view.id) else None,
        "internal": view.internal,
        "configs": {key: config.value for key, config in configs.items() if config.source == 1},
        "settings_unknown": UNKNOWN_KEY in configs and configs[UNKNOWN_KEY].value == "true",
        "partitions": [_facts(each, view.partitions[place.partition]) for place, each in facts.items()],
        "days": [one._asdict() for one in days.days] if days else [],
        "bytes_by_day": None if days is None else days.why or "exact",
    }


def _facts(each: "PartitionFacts", view: "PartitionView | None") -> dict[str, Any]:
    """A partition's facts; a data folder does not name its leader."""
    return {
        "partition": each.partition,
        "leader": None if view is None else view.leader,
        "replicas": [] if view is None else list(view.replicas),
        "in_sync": [] if view is None else list(view.in_sync),
        "first_offset": each.first_offset,
        "end_offset": each.end_offset,
        "records": each.records,
        "bytes": each.size_bytes,
        "first_timestamp": each.first_ms,
        "largest_timestamp": each.largest_ms,
        "bytes_a_day": None if each.bytes_a_day is None else round(each.bytes_a_day),
    }


def _read(folder: str, name: str, arguments: argparse.Namespace, console: Console) -> dict[str, Any]:
    """From the files of a data folder."""
    from horolog.broker.log.storage import ReadOnlyStorage, StorageFault
    from horolog.broker.on_record.cluster_file import NewerClusterFile
    from horolog.client.cli.examining.folder_days import DayQuery, describe
    from horolog.client.cli.examining.given_folders import check_given

    folder = folder.rstrip("/") or "/"
    check_given(ReadOnlyStorage(), [folder])
    try:
        found = describe(folder, name, DayQuery(console.zone, console.now_ms(), arguments.days))
    except (NewerClusterFile, StorageFault) as error:
        raise CommandError(f"{folder}: {error}") from error
    if not found.facts:
        raise NotFoundError(f"no partition of topic {name} is in {folder}", "horolog doctor lists its partitions")
    return {
        "topic": name,
        "id": None,
        "internal": name.startswith("__"),
        "configs": {},
        "settings_unknown": False,
        "partitions": [_facts(each, None) for each in found.facts],
        "days": [one._asdict() for one in found.days.days],
        "bytes_by_day": found.days.why or "exact",
    }


def _partition_row(each: dict[str, Any], console: Console) -> tuple[str | int | None, ...]:
    first, largest = each["first_timestamp"], each["largest_timestamp"]
    return (
        each["partition"],
        each["leader"],
        ",".join(map(str, each["replicas"])),
        each["first_offset"],
        each["end_offset"],
        each["records"],
        each["bytes"],
        each["bytes_a_day"],
        None if first is None else console.show_time(first),
        None if largest is None else console.show_time(largest),
    )


def _day_row(each: dict[str, Any], console: Console) -> tuple[str | int | None, ...]:
    since, until = each["from_ms"], each["until_ms"]
    if since is None:
        day = f"before {_day(until, console)}"
    else:
        day = _day(since, console) if until is not None else f"from {_day(since, console)} on"
    return day, each["records"], each["size_bytes"]


def _day(time_ms: int, console: Console) -> str:
    return console.show_time(time_ms)[:10]


# -- alter


def _alter_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument(
        "-p", "--partitions", type=positive_number, metavar="N", help="the new number of partitions; it can only grow"
    )
    parser.add_argument(
        "-c", "--config", metavar="KEY=VALUE", action="append", help="a setting (retention.ms=7d); repeatable"
    )
    parser.add_argument(
        "-d", "--delete-config", metavar="KEY", action="append", help="reset this setting to its default; repeatable"
    )


async def _alter(arguments: argparse.Namespace, console: Console) -> ExitCode:

    changes: dict[str, str | None] = {**settings_of(arguments.config)}
    changes.update(dict.fromkeys(arguments.delete_config or ()))
    if not changes and arguments.partitions is None:
        raise UsageError("nothing to alter", "give --partitions, --config or --delete-config")
    async with admin_of(arguments) as admin:
        await partitions_of(admin.client, arguments.topic)
        if changes:
            await admin.alter_configs("topic", arguments.topic, changes)
        if arguments.partitions is not None:
            await admin.create_partitions({arguments.topic: arguments.partitions})
    return _report("altered", [arguments.topic], {}, console)


# -- delete, trim


def _delete_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topics", metavar="TOPIC", nargs="+")
    add_yes(parser)


async def _delete(arguments: argparse.Namespace, console: Console) -> ExitCode:
    from horolog.client.values.errors import KafkaError, PartialFailure

    failures: dict[str, KafkaError] = {}
    async with admin_of(arguments) as admin:
        known = (await admin.client.metadata()).topics
        for name in arguments.topics:
            if name not in known:
                raise await why_no_topic(admin.client, name)
        if not await confirmed(arguments, console, f"deleting {', '.join(arguments.topics)} and all records"):
            return ExitCode.FAILED
        try:
            await admin.delete_topics(arguments.topics)
        except PartialFailure as error:
            failures = error.failures
    return _report("deleted", arguments.topics, failures, console)


def _trim_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("--before", metavar="TIME", help="remove records before the first one at or after this time")
    parser.add_argument("--offset", type=whole_number, metavar="N", help="remove records before this offset")
    parser.add_argument("-p", "--partition", type=partitions, metavar="N", help="only these partitions: 0,3,5-7")
    parser.add_argument("-n", "--dry-run", action="store_true", help="only show what would be removed")
    add_yes(parser)
    add_zone(parser)


async def _trim(arguments: argparse.Namespace, console: Console) -> ExitCode:
    from horolog.client.values.types import EARLIEST, LATEST
    from horolog.client.wire.offsets import ends
    from horolog.commands.online.reading import at_times

    if (arguments.before is None) == (arguments.offset is None):
        raise UsageError("--before or --offset is needed", "give one of them")
    moment = None if arguments.before is None else console.time(arguments.before, "--before", ends=True)
    if moment is not None:
        console.note(f"--before is {moment.understood}")
    async with admin_of(arguments) as admin:
        places = await partitions_of(admin.client, arguments.topic, arguments.partition)
        first = await ends(admin.client, dict.fromkeys(places, EARLIEST))
        last = await ends(admin.client, dict.fromkeys(places, LATEST))
        if moment is not None:
            cut = await at_times(admin.client, places, moment.ms, last, 0)
        else:
            cut = dict.fromkeys(places, arguments.offset)
            beyond = [place for place in places if cut[place] > last[place]]
            if beyond:
                raise CommandError(f"{beyond[0]} ends at {last[beyond[0]]}, before offset {arguments.offset}")
        cut = {place: max(offset, first[place]) for place, offset in cut.items()}
        removed = sum(cut[place] - first[place] for place in places)
        if not arguments.dry_run:
            if not await confirmed(arguments, console, f"removing {counted(removed, 'offset')} of {arguments.topic}"):
                return ExitCode.FAILED
            await admin.delete_records(cut)
    if console.as_json:
        console.json(
            [
                {"topic": place.topic, "partition": place.partition, "from": first[place], "to": cut[place]}
                for place in places
            ]
        )
    else:
        console.table(
            ("PARTITION", "FIRST BEFORE", "FIRST NOW" if not arguments.dry_run else "FIRST THEN", "REMOVED"),
            [(place.partition, first[place], cut[place], cut[place] - first[place]) for place in places],
        )
    return ExitCode.OK


# -- copy


def _copy_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="SOURCE", help="the topic whose records are copied")
    parser.add_argument("target", metavar="TARGET", help="the topic to write to; created if it does not exist")
    parser.add_argument("--since", metavar="TIME", help="only records from this time on (default: the beginning)")
    parser.add_argument("--until", metavar="TIME", help="only records before this time (default: the end)")
    parser.add_argument("--for", dest="length", type=duration, metavar="DURATION", help="the length from --since")
    parser.add_argument("-p", "--partition", type=partitions, metavar="N", help="only these partitions: 0,3,5-7")
    parser.add_argument(
        "--times", choices=("keep", "now"), default="keep", help="the records' own times (default), or now"
    )
    parser.add_argument(
        "--by-key",
        action="store_true",
        help="choose partitions by the key (default: the same partitions as in the source)",
    )
    parser.add_argument("-n", "--max", type=positive_number, metavar="N", help="stop after this many records")
    parser.add_argument("-z", "--codec", choices=CODECS, default="none", help="compression (default: none)")
    parser.add_argument("--no-create", action="store_true", help="fail if the target does not exist")
    parser.add_argument("--dry-run", action="store_true", help="only count the records")
    parser.add_argument("--late", action="store_true", help="read to the end of the partitions for late records")
    add_look_ahead(parser)
    add_isolation(parser)
    add_decoding(parser)
    add_zone(parser)


async def _copy(arguments: argparse.Namespace, console: Console) -> ExitCode:
    from horolog.client.cli.copying import topic_copy

    return await topic_copy.run(arguments, console)


ACTIONS = (
    Action(
        "list", "list topics", _list_arguments, _list, ("horolog topics list", "horolog topics list 'log*' -o json")
    ),
    Action(
        "create",
        "create topics",
        _create_arguments,
        _create,
        ("horolog topics create logs --partitions 3 --config retention.ms=604800000",),
    ),
    Action(
        "describe",
        "show settings, offsets, sizes and times of topics",
        _describe_arguments,
        _describe,
        ("horolog topics describe logs",),
    ),
    Action(
        "alter",
        "change settings, or add partitions",
        _alter_arguments,
        _alter,
        ("horolog topics alter logs --config message.timestamp.type=LogAppendTime", "horolog topics alter logs -p 6"),
    ),
    Action(
        "delete", "delete topics with all their records", _delete_arguments, _delete, ("horolog topics delete logs",)
    ),
    Action(
        "trim",
        "remove records from the beginning of a topic's partitions, by time or offset",
        _trim_arguments,
        _trim,
        ("horolog topics trim logs --before 30d-ago --dry-run",),
    ),
    Action(
        "copy",
        "copy the records of a topic, or of a range of times, to another topic",
        _copy_arguments,
        _copy,
        (
            "horolog topics copy orders orders-test --since yesterday --until today",
            "horolog topics copy orders replay --since 'monday 10:05' --for 5m --times now",
            "horolog topics copy orders big --where 'value.total > 100' --dry-run",
        ),
    ),
)
