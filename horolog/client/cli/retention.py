"""`horolog retention`: what of a topic will be deleted next and when, what keeps it, and what other settings would leave."""

import argparse
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from horolog.commands.arguments import add_output, add_zone, describe, partitions
from horolog.commands.console import Console
from horolog.commands.errors import CommandError, NotFoundError, UsageError
from horolog.commands.exit_codes import ExitCode
from horolog.commands.online.connecting import add_connection, admin_of
from horolog.commands.online.segments import access_of, add_http

if TYPE_CHECKING:
    from horolog.client.cli.retaining.retention_look import TopicFacts
    from horolog.client.segments.retention import Next, PartitionFacts, RetentionResult

CHANGEABLE = ("cleanup.policy", "retention.ms", "retention.bytes", "segment.ms", "segment.bytes")


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Show what retention deletes next from each partition, when, and by which rule (time, size, start offset), and why\nrecords stay longer. The command changes nothing. It asks horolog's HTTP port for segments; without it, times are\nestimates. --dir reads the files of a data folder (a broker may run on it).",
        "horolog retention orders",
        "horolog retention orders --with retention.ms=7d --with retention.bytes=10GiB",
        "horolog retention orders --dir /var/lib/horolog -o json",
    )
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("-p", "--partition", type=partitions, metavar="N", help="only these partitions: 0,3,5-7")
    parser.add_argument("--dir", metavar="DIR", help="read a data folder instead of a broker")
    parser.add_argument(
        "--with",
        dest="changes",
        action="append",
        metavar="KEY=VALUE",
        help="show what would remain with this setting (7d, 10GiB); repeatable",
    )
    add_connection(parser)
    add_http(parser)
    add_zone(parser)
    add_output(parser)


def run(arguments: argparse.Namespace, console: Console) -> ExitCode | Coroutine[Any, Any, ExitCode]:
    """Reading a folder needs no event loop."""
    changes = changes_of(arguments.changes)
    if arguments.dir is None:
        return _ask(arguments, changes, console)
    return show(_from_folder(arguments, changes, console), changes, console)


def changes_of(texts: list[str] | None) -> dict[str, str]:
    """`retention.ms=7d` in Kafka's form. Raises UsageError."""
    from horolog.commands.online.setting_values import settings_of

    found = settings_of(texts)
    for key in found:
        if key not in CHANGEABLE:
            raise UsageError(f"--with {key}: not a setting of retention", f"give one of {', '.join(CHANGEABLE)}")
    return found


async def _ask(arguments: argparse.Namespace, changes: dict[str, str], console: Console) -> ExitCode:
    from horolog.client.cli.retaining.retention_look import look
    from horolog.client.segments.segments_look import NoSegments
    from horolog.client.segments.segments_look import look as look_at_segments
    from horolog.commands.online.connecting import partitions_of

    http = access_of(arguments, console)
    async with admin_of(arguments) as admin:
        places = await partitions_of(admin.client, arguments.topic, arguments.partition)
        try:
            topic = (await admin.client.metadata([arguments.topic])).topics[arguments.topic]
            segments = await look_at_segments(admin, topic, http, partitions=[one.partition for one in places])
        except NoSegments as error:
            segments = None
            console.note(f"times are estimates: {error}")
        try:
            facts = await look(admin, places, console.now_ms(), changes, segments)
        except ValueError as error:
            raise UsageError(f"--with {error}") from error
    return show(facts, changes, console)


def _from_folder(arguments: argparse.Namespace, changes: dict[str, str], console: Console) -> "TopicFacts":
    from horolog.broker.config.setting_types import SettingsError
    from horolog.broker.log.storage import ReadOnlyStorage
    from horolog.broker.on_record.cluster_file import NewerClusterFile
    from horolog.client.cli.charting.index_points import folders_of
    from horolog.client.cli.examining import segment_ages
    from horolog.client.cli.examining.given_folders import check_given
    from horolog.client.cli.retaining.retention_look import TopicFacts

    storage = ReadOnlyStorage()
    folder, topic, wanted = arguments.dir.rstrip("/") or "/", arguments.topic, arguments.partition
    check_given(storage, [folder])
    chosen = [one for one in folders_of(storage, folder, topic) if wanted is None or one[0] in wanted]
    if not chosen:
        raise NotFoundError(f"no partition of topic {topic} is in {folder}", "horolog doctor lists its partitions")
    try:
        config, other, is_known = segment_ages.settings_of(storage, folder, topic, changes)
    except SettingsError as error:
        raise UsageError(f"--with {error}") from error
    except NewerClusterFile as error:
        raise CommandError(f"{folder}: {error}") from error
    if not is_known:
        console.warn(f"{folder} does not have the settings of {topic}: defaults are used; use --with to change them")
    found = segment_ages.facts_of(
        storage, folder, topic, chosen, segment_ages.DeletionQuery(config, other, console.now_ms())
    )
    rules = segment_ages.rules_of(config)
    return TopicFacts(topic, "files", rules, None if other is None else segment_ages.rules_of(other), {}, tuple(found))


# -- showing it


def show(facts: "TopicFacts", changes: dict[str, str], console: Console) -> ExitCode:
    if console.as_json:
        console.json(document(facts, changes))
        return ExitCode.OK
    console.print(f"{facts.topic}: {sentence_of(facts)}")
    console.table(
        ("PARTITION", "RECORDS", "BYTES", "OLDEST", "LARGEST TIME", "DELETED NEXT", "WHEN"),
        [_row(each, console) for each in facts.partitions],
    )
    for text, names in _grouped([(each.partition, line) for each in facts.partitions for line in each.held_by]):
        console.print(f"kept: {names}: {text}")
    for text, names in _grouped([(each.partition, line) for each in facts.partitions for line in each.unknown]):
        console.print(f"unknown: {names}: {text}")
    if changes:
        _show_other(facts, changes, console)
    return ExitCode.OK


def sentence_of(facts: "TopicFacts") -> str:
    """The rules in words."""
    from horolog.client.values.times import format_duration

    rules = facts.rules
    if not rules.deletes:
        return "compacted: no record is deleted by age or size"
    age = f"{format_duration(rules.retention_ms)} (retention.ms)" if rules.retention_ms >= 0 else "forever"
    size = (
        f", at most {rules.retention_bytes} bytes a partition (retention.bytes)" if rules.retention_bytes >= 0 else ""
    )
    return f"kept {age}{size}{', compacted' if rules.compacts else ''}"


def _row(each: "PartitionFacts", console: Console) -> tuple[str | int | None, ...]:
    oldest, largest = (None if one is None else console.show_time(one) for one in (each.first_ms, each.largest_ms))
    return each.partition, each.records, each.size_bytes, oldest, largest, _going(each), when(each.next, console)


def _going(each: "PartitionFacts") -> str:
    if each.next is None:
        return "nothing"
    if each.next.up_to_offset is None:
        return f"from offset {each.first_offset}, by {each.next.cause}"
    return f"offsets {each.first_offset} to {each.next.up_to_offset - 1}, by {each.next.cause}"


def when(coming: "Next | None", console: Console) -> str:
    from horolog.client.segments.retention import FOR_EVER_MS

    if coming is None:
        return "-"
    now_ms = console.now_ms()
    if coming.until_ms <= now_ms:
        return "at the next check"
    begins = "from now on" if coming.from_ms <= now_ms else console.show_time(coming.from_ms)
    if coming.until_ms == coming.from_ms or coming.until_ms >= FOR_EVER_MS:
        return begins
    return f"{begins} to {console.show_time(coming.until_ms)}"


def _grouped(lines: list[tuple[int, str]]) -> list[tuple[str, str]]:
    """Each sentence once, with its partitions."""
    by_text: dict[str, list[int]] = {}
    for partition, text in lines:
        by_text.setdefault(text, []).append(partition)
    return [
        (text, f"partition{'s' if len(found) > 1 else ''} {', '.join(map(str, found))}")
        for text, found in by_text.items()
    ]


def _show_other(facts: "TopicFacts", changes: dict[str, str], console: Console) -> None:
    from horolog.base.readable import setting_text

    said = ", ".join(f"{key}={setting_text(key, value)}" for key, value in changes.items())
    console.print()
    console.print(f"with {said}:")
    console.table(
        ("PARTITION", "RECORDS LEFT", "BYTES LEFT", "FIRST OFFSET", "RECORDS FEWER"),
        [
            (
                each.partition,
                each.left.records,
                each.left.size_bytes,
                each.left.first_offset,
                each.records - each.left.records,
            )
            for each in facts.partitions
            if each.left is not None
        ],
    )
    if any(each.left is not None and not each.left.exact for each in facts.partitions):
        console.print(
            "whole segments are deleted, so each partition may keep up to one segment more; the bytes are estimates"
        )


def document(facts: "TopicFacts", changes: dict[str, str]) -> dict[str, Any]:
    """The document of `-o json`."""
    from dataclasses import asdict

    return {
        "topic": facts.topic,
        "source": facts.source,
        "rules": asdict(facts.rules),
        "with": changes,
        "partitions": [
            {
                "partition": each.partition,
                "first_offset": each.first_offset,
                "end_offset": each.end_offset,
                "bytes": each.size_bytes,
                "first_timestamp": each.first_ms,
                "largest_timestamp": each.largest_ms,
                "next": _next_document(each.next),
                "kept": each.held_by,
                "unknown": each.unknown,
                "left": _left_document(each.left),
            }
            for each in facts.partitions
        ],
    }


def _next_document(coming: "Next | None") -> dict[str, Any] | None:
    from horolog.client.segments.retention import FOR_EVER_MS

    if coming is None:
        return None
    return {
        "cause": str(coming.cause),
        "from_timestamp": coming.from_ms,
        "until_timestamp": None if coming.until_ms >= FOR_EVER_MS else coming.until_ms,
        "up_to_offset": coming.up_to_offset,
        "bytes": coming.size_bytes,
    }


def _left_document(left: "RetentionResult | None") -> dict[str, Any] | None:
    if left is None:
        return None
    return {
        "first_offset": left.first_offset,
        "records": left.records,
        "bytes": left.size_bytes,
        "first_timestamp": left.first_ms,
        "exact": left.exact,
    }
