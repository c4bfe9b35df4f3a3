"""`horolog timeline`: record counts over time, from time indexes or lookups alone; no record is read."""

import argparse
from collections.abc import Coroutine, Sequence
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any

from horolog.base.readable import counted
from horolog.commands.arguments import add_output, add_zone, describe, duration, partitions
from horolog.commands.console import Console
from horolog.commands.errors import NotFoundError, UsageError
from horolog.commands.exit_codes import ExitCode
from horolog.commands.online.connecting import add_connection

if TYPE_CHECKING:
    from horolog.client.charting.buckets import Timeline
    from horolog.client.cli.charting.index_points import PartitionTimes
    from horolog.client.values.time_ranges import TimeRange

ROWS = 32
COLUMNS_OF_PICTURE = 240
GAPS_SHOWN = 5
DISORDER_SHOWN = 5
LARGEST_BORDER = 2**63 - 1
"""Later than any record: the lookup gives the end of a partition."""


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Draw the number of records over time. With --dir the command reads only the time indexes of a data folder; counts are\naccurate to one index interval (4 KiB of records). Otherwise it asks a broker for the offset at the start of every bar;\ncounts are exact if times are in order.",
        "horolog timeline orders --since 24h",
        "horolog timeline orders --dir /var/lib/horolog --bucket 1h",
        "horolog timeline orders --since monday --png orders.png",
    )
    parser.add_argument("topic", metavar="TOPIC", help="the topic")
    parser.add_argument("--dir", metavar="DIR", help="read a data folder instead of a broker")
    parser.add_argument("--partition", type=partitions, metavar="N", help="only these partitions: 0,3,5-7")
    parser.add_argument("--since", metavar="TIME", help="start at this time (default: the first record)")
    parser.add_argument("--until", metavar="TIME", help="stop before this time (default: after the last record)")
    parser.add_argument(
        "--for", dest="length", type=duration, metavar="DURATION", help="the length of the range from --since"
    )
    parser.add_argument(
        "--bucket", type=duration, metavar="DURATION", help="the length of a bar (default: fits the screen)"
    )
    parser.add_argument("--png", metavar="FILE", help="write a picture to this file")
    add_connection(parser)
    add_output(parser)
    add_zone(parser)


def run(arguments: argparse.Namespace, console: Console) -> ExitCode | Coroutine[Any, Any, ExitCode]:
    """Reading a folder needs no event loop, which costs time to import."""
    if arguments.bucket == 0:
        raise UsageError("--bucket must be longer than zero")
    asked = console.range(arguments.since, arguments.until, length_ms=arguments.length)
    if arguments.dir is None:
        return _ask(arguments, asked, console)
    return _finish(arguments, console, _from_folder(arguments, asked, console))


async def _ask(arguments: argparse.Namespace, asked: "TimeRange", console: Console) -> ExitCode:
    return _finish(arguments, console, await _from_broker(arguments, asked, console))


def _finish(arguments: argparse.Namespace, console: Console, document: dict[str, Any]) -> ExitCode:
    if arguments.png is not None:
        Path(arguments.png).write_bytes(_picture(document, console.zone))
    if console.as_json:
        console.json(document)
    else:
        _show(document, console, bars=arguments.png is None)
    return ExitCode.OK


# -- where the counts come from


def _from_folder(arguments: argparse.Namespace, asked: "TimeRange", console: Console) -> dict[str, Any]:
    from horolog.broker.log.storage import ReadOnlyStorage
    from horolog.client.charting.buckets import fill, future, last_until, span

    storage = ReadOnlyStorage()
    found = _read_folder(storage, arguments)
    stretches = [stretch for one in found for stretch in one.stretches]
    now_ms = console.now_ms()
    times = span(stretches)
    if times is not None and times[1] > now_ms:
        times = times[0], last_until(stretches, now_ms) or times[1]
    timeline = _frame(arguments, asked, console, times)
    if timeline is not None:
        for one in found:
            fill(timeline, one.stretches)
    document = _document(arguments.topic, "time indexes", timeline, now_ms, future(stretches, now_ms))
    document["largest_timestamp"] = max((one.latest for one in found if one.latest >= 0), default=None)
    document["partitions"] = [
        {
            "partition": one.name,
            "segments": one.segments,
            "largest_timestamp": one.latest if one.latest >= 0 else None,
            "records_behind_latest": one.behind_latest,
            "records_untold": one.untold,
        }
        for one in found
    ]
    document["disorder"] = [each._asdict() for one in found for each in one.disorder]
    document["files_read"] = len(storage.bytes_read)
    document["bytes_read"] = sum(storage.bytes_read.values())
    return document


def _read_folder(storage: Any, arguments: argparse.Namespace) -> "list[PartitionTimes]":
    from horolog.broker.cluster.left_folders import as_left
    from horolog.broker.log.files import checkpoints
    from horolog.client.cli.charting.index_points import folders_of, read_partition
    from horolog.client.cli.examining.given_folders import check_given

    folder, topic, wanted = arguments.dir.rstrip("/") or "/", arguments.topic, arguments.partition
    check_given(storage, [folder])
    chosen = [one for one in folders_of(storage, folder, topic) if wanted is None or one[0] in wanted]
    if not chosen:
        raise NotFoundError(f"no partition of topic {topic} is in {folder}", "horolog doctor lists its partitions")
    names = (checkpoints.RECOVERY_POINTS, checkpoints.HIGH_WATERMARKS)
    left = as_left(storage, [folder])
    points = [checkpoints.load_offsets(left, f"{folder}/{name}").offsets for name in names]
    ends = {key: max(one.get(key, 0) for one in points) for one in points for key in one}
    return [read_partition(storage, f"{topic}-{index}", path, ends.get((topic, index))) for index, path in chosen]


async def _from_broker(arguments: argparse.Namespace, asked: "TimeRange", console: Console) -> dict[str, Any]:
    from horolog.client.charting.buckets import from_lookups
    from horolog.client.charting.lookups import offsets_at, time_range
    from horolog.commands.online.connecting import connected, partitions_of

    now_ms = console.now_ms()
    async with connected(arguments) as client:
        chosen = await partitions_of(client, arguments.topic, arguments.partition)
        times = await time_range(client, chosen)
        largest = None if times is None else times[1]
        if times is not None and times[0] <= now_ms < times[1]:
            times = times[0], now_ms
        timeline = _frame(arguments, asked, console, times)
        later = await offsets_at(client, chosen, [now_ms + 1, LARGEST_BORDER])
        if timeline is not None:
            borders = [timeline.border(number) for number in range(len(timeline.counts) + 1)]
            for offsets in (await offsets_at(client, chosen, borders)).values():
                from_lookups(timeline, offsets)
    future = sum(after - before for before, after in later.values())
    document = _document(arguments.topic, "lookups", timeline, now_ms, future)
    document["largest_timestamp"] = largest
    document["partitions"] = [{"partition": f"{one.topic}-{one.partition}"} for one in chosen]
    document["disorder"] = []
    return document


def _frame(
    arguments: argparse.Namespace, asked: "TimeRange", console: Console, times: tuple[int, int] | None
) -> "Timeline | None":
    """The requested timeline, still empty; None if there are no records and no bounds were given."""
    from horolog.client.charting.buckets import bucket_length, frame

    since, until = asked.since_ms, asked.until_ms
    if since is None or until is None:
        if times is None:
            return None
        since = times[0] if since is None else since
        until = max(times[1], since) + 1 if until is None else until
    if until <= since:
        raise UsageError("--until is not later than --since", "swap them")
    wanted = COLUMNS_OF_PICTURE if arguments.png is not None else ROWS
    try:
        return frame(since, until - 1, arguments.bucket or bucket_length(until - since, wanted - 1), console.zone)
    except ValueError as error:
        raise UsageError(f"--bucket: {error}", "use a longer --bucket or a shorter range") from error


def _document(topic: str, source: str, timeline: "Timeline | None", now_ms: int, future: int) -> dict[str, Any]:
    """The document of `-o json`; the source adds partitions and disorder."""
    counts = [] if timeline is None else timeline.rounded()
    buckets = (
        []
        if timeline is None
        else [{"timestamp": timeline.border(number), "records": count} for number, count in enumerate(counts)]
    )
    return {
        "topic": topic,
        "source": source,
        "bucket_ms": None if timeline is None else timeline.bucket_ms,
        "records": sum(counts),
        "buckets": buckets,
        "gaps": []
        if timeline is None
        else [{"from_timestamp": one, "to_timestamp": other} for one, other in timeline.gaps()],
        "largest_timestamp": None,
        "future": {"now_timestamp": now_ms, "records_at_most": future},
    }


# -- showing it


def _show(document: dict[str, Any], console: Console, *, bars: bool) -> None:
    from horolog.client.values.times import format_duration

    if not document["records"]:
        console.print(f"{document['topic']} has no records with a timestamp")
        _show_facts(document, console)
        return
    if bars:
        _draw(document, console)
    length = format_duration(document["bucket_ms"])
    console.print(f"{counted(document['records'], 'record')}, {length} a bar, from {document['source']}")
    _show_facts(document, console)


def _draw(document: dict[str, Any], console: Console) -> None:
    from horolog.client.values.times import format_duration
    from horolog.commands.charting.drawing import draw

    counts = [one["records"] for one in document["buckets"]]
    starts = [one["timestamp"] for one in document["buckets"]]
    bucket_ms, now_ms = document["bucket_ms"], document["future"]["now_timestamp"]
    marks = ["future" if count and start > now_ms else "" for start, count in zip(starts, counts, strict=True)]

    def folded(first: int, last: int) -> str:
        return f"no records for {format_duration((last - first + 1) * bucket_ms)}"

    for line in draw(_labels(starts, bucket_ms, console.zone), counts, console.width, folded, marks):
        console.print(line)
    console.print()


def _show_facts(document: dict[str, Any], console: Console) -> None:
    """Facts besides the bars: gaps, disorder, future times, records without known times."""
    from horolog.client.values.times import format_duration

    gaps = sorted(document["gaps"], key=lambda one: one["from_timestamp"] - one["to_timestamp"])
    for gap in gaps[:GAPS_SHOWN]:
        length = format_duration(gap["to_timestamp"] - gap["from_timestamp"])
        console.print(
            f"gap: {console.show_time(gap['from_timestamp'])} to {console.show_time(gap['to_timestamp'])}, {length}"
        )
    if len(gaps) > GAPS_SHOWN:
        console.print(f"gap: {len(gaps) - GAPS_SHOWN} more")
    for one in document["disorder"][:DISORDER_SHOWN]:
        behind = format_duration(one["behind_ms"])
        console.print(
            f"disorder: {one['partition']}: from offset {one['offset']} on, times go back by {behind}, to {console.show_time(one['timestamp'])}"
        )
    if len(document["disorder"]) > DISORDER_SHOWN:
        console.print(
            f"disorder: {len(document['disorder']) - DISORDER_SHOWN} more segments begin earlier than those before them"
        )
    for one in document["partitions"]:
        if one.get("records_behind_latest"):
            console.print(
                f"disorder: {one['partition']}: {counted(one['records_behind_latest'], 'record')} after the latest one of their segment: late, or with the same time"
            )
        if one.get("records_untold"):
            console.print(
                f"unknown: {one['partition']}: {counted(one['records_untold'], 'record')} in no index yet, or without a time"
            )
    count, largest = document["future"]["records_at_most"], document["largest_timestamp"]
    if count:
        text = f"future: up to {counted(count, 'record')} later than now, the latest at {console.show_time(largest)}"
        console.print(console.style("red", text))


def _labels(starts: Sequence[int], bucket_ms: int, zone: tzinfo) -> list[str]:
    """Times shortened as far as the buckets allow."""
    from horolog.client.values.times import format_time

    end = 10 if bucket_ms % 86_400_000 == 0 else 16 if bucket_ms % 60_000 == 0 else 19 if bucket_ms % 1000 == 0 else 23
    return [format_time(start, zone)[:end].replace("T", " ") for start in starts]


def _picture(document: dict[str, Any], zone: tzinfo) -> bytes:
    from horolog.commands.charting.png import picture

    starts = [one["timestamp"] for one in document["buckets"]]
    now_ms = document["future"]["now_timestamp"]
    labels = _labels(starts, document["bucket_ms"] or 1, zone)
    return picture([one["records"] for one in document["buckets"]], [start > now_ms for start in starts], labels)
