"""`horolog offsets`: the offset of a time in each partition, the number between two, and how reliable the answer is."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from horolog.base.readable import counted
from horolog.commands.arguments import add_output, add_zone, describe, partitions
from horolog.commands.console import Console
from horolog.commands.errors import UsageError
from horolog.commands.exit_codes import ExitCode
from horolog.commands.online.connecting import add_connection, connected, partitions_of

if TYPE_CHECKING:
    from horolog.client.values.time_ranges import TimeRange
    from horolog.client.values.times import Moment
    from horolog.client.values.types import Found, TopicPartition
    from horolog.client.wire.client import Client

LOOK_AHEAD_BYTES = 256 << 10
"""How much of the log after a found offset is read to check whether times are out of order there."""


class TimeAnswer(NamedTuple):
    partition: "TopicPartition"
    asked_ms: int
    found: "Found | None"
    end_offset: int
    warnings: tuple[str, ...]

    @property
    def border(self) -> int:
        """Where a range bounded by the time begins or ends: at the end of the partition, if nothing follows."""
        return self.end_offset if self.found is None else self.found.offset


class OffsetRange(NamedTuple):
    """A range of time in one partition."""

    since: TimeAnswer
    until: TimeAnswer

    @property
    def records(self) -> int:
        return max(0, self.until.border - self.since.border)


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Show, for each partition, the first record at or after a time: its offset, its timestamp, and how many offsets follow. For a range, show both borders and the number of offsets between them. Without a time, show the first and the last offset. The command warns about times that are out of order or in the future.",
        "horolog offsets logs 10:05",
        "horolog offsets logs 'monday 10:05' now-1h --tz Europe/Berlin",
        "horolog offsets logs 10:05..10:10 yesterday..+1h",
        "horolog offsets logs earliest latest --partition 0-2 -o json",
    )
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument(
        "times", metavar="TIME", nargs="*", help="3d, 10:05, 10:05..+5m, 2026-11-17T10:00+02:00, earliest, latest"
    )
    parser.add_argument("-p", "--partition", type=partitions, metavar="N", help="only these partitions: 0,3,5-7")
    add_connection(parser)
    add_zone(parser)
    add_output(parser)


async def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    asked = [asked_for(text, console) for text in arguments.times or ("earliest", "latest")]
    if arguments.times:
        for text, times in zip(arguments.times, asked, strict=True):
            console.note(f"{text} is {' to '.join(moment.understood for moment in times if moment is not None)}")
    async with connected(arguments) as client:
        wanted = await partitions_of(client, arguments.topic, arguments.partition)
        found: list[TimeAnswer | OffsetRange] = []
        answers = await resolve(
            client, wanted, [moment for times in asked for moment in times if moment], console.now_ms()
        )
        for times in asked:
            since, answers = answers[: len(wanted)], answers[len(wanted) :]
            if times.until is None:
                found += since
                continue
            until, answers = answers[: len(wanted)], answers[len(wanted) :]
            found += [OffsetRange(*borders) for borders in zip(since, until, strict=True)]
    show(found, console)
    return ExitCode.OK


def asked_for(text: str, console: Console) -> "TimeRange":
    """The requested time, or two of them."""
    from horolog.client.values.time_ranges import parse_range
    from horolog.client.values.times import TimeTextError

    try:
        return parse_range(text, None, now_ms=console.now_ms(), zone=console.zone, ends=True)
    except TimeTextError as error:
        raise UsageError(f"TIME: {error}") from error


async def resolve(
    client: "Client", wanted: Sequence["TopicPartition"], moments: Sequence["Moment"], now_ms: int
) -> list[TimeAnswer]:
    from horolog.client.values.times import EARLIEST, LATEST
    from horolog.client.wire.offsets import ends, list_offsets

    end_of = await ends(client, dict.fromkeys(wanted, LATEST))
    future = await _ahead_of(client, wanted, now_ms)
    answers = []
    for moment in moments:
        found = await list_offsets(client, dict.fromkeys(wanted, moment.ms))
        for partition in wanted:
            answer = found[partition]
            warnings = [future[partition]] if partition in future else []
            if answer is not None and moment.ms not in {EARLIEST, LATEST}:
                warnings += await _disorder(client, partition, answer.offset, moment.ms, end_of[partition])
            answers.append(TimeAnswer(partition, moment.ms, answer, end_of[partition], tuple(warnings)))
    return answers


async def _ahead_of(client: "Client", wanted: Sequence["TopicPartition"], now_ms: int) -> dict["TopicPartition", str]:
    """Partitions with a record from the future; brokers without that lookup (before Kafka 3.0) are not asked."""
    from horolog.client.wire.offsets import LARGEST_TIMESTAMP, list_offsets
    from horolog.protocol.apis import ApiKey

    versions = await client.versions()
    if not versions.serves(ApiKey.LIST_OFFSETS, 7):
        return {}
    found = await list_offsets(client, dict.fromkeys(wanted, LARGEST_TIMESTAMP))
    return {
        partition: f"offset {latest.offset} is {_duration(latest.timestamp_ms - now_ms)} in the future"
        for partition, latest in found.items()
        if latest is not None and latest.timestamp_ms > now_ms
    }


async def _disorder(
    client: "Client", partition: "TopicPartition", offset: int, asked_ms: int, end_offset: int
) -> list[str]:
    """Whether earlier records follow the found offset, judging by the next stretch of the log."""
    from horolog.protocol.records.entries import iter_records

    if offset >= end_offset:
        return []
    fetched = await client.fetch_raw(partition, offset, LOOK_AHEAD_BYTES, max_wait_ms=0)
    times = [record.timestamp for record in iter_records(fetched.records) if record.offset >= offset]
    earlier = [time for time in times if 0 <= time < asked_ms]
    if not earlier:
        return []
    late = _duration(asked_ms - min(earlier))
    return [
        f"times are out of order: earlier times in {len(earlier)} of the next {counted(len(times), 'record')}, by up to {late}"
    ]


def _duration(duration_ms: int) -> str:
    from horolog.client.values.times import format_duration

    return format_duration(duration_ms)


def show(found: Sequence[TimeAnswer | OffsetRange], console: Console) -> None:
    """Show times and ranges in a table each; in JSON they keep the order of the arguments."""
    if console.as_json:
        console.json([_as_json(each) if isinstance(each, TimeAnswer) else _stretch_as_json(each) for each in found])
        return
    answers = [each for each in found if isinstance(each, TimeAnswer)]
    stretches = [each for each in found if isinstance(each, OffsetRange)]
    if answers or not stretches:
        console.table(
            ("TOPIC", "PARTITION", "ASKED", "OFFSET", "TIMESTAMP", "TO THE END"),
            [_as_row(answer, console) for answer in answers],
        )
    if stretches:
        console.table(
            ("TOPIC", "PARTITION", "SINCE", "OFFSET", "UNTIL", "OFFSET", "BETWEEN"),
            [_stretch_as_row(stretch, console) for stretch in stretches],
        )
    borders = [*answers, *(border for stretch in stretches for border in stretch)]
    for partition, warning in dict.fromkeys((answer.partition, text) for answer in borders for text in answer.warnings):
        console.warn(f"{partition}: {warning}")


def _as_row(answer: TimeAnswer, console: Console) -> tuple[str | int | None, ...]:
    topic, partition = answer.partition
    asked = _shown(answer.asked_ms, console)
    if answer.found is None:
        return topic, partition, asked, None, "nothing at or after it", 0
    time_ms = answer.found.timestamp_ms
    shown = console.show_time(time_ms) if time_ms >= 0 else None
    return topic, partition, asked, answer.found.offset, shown, answer.end_offset - answer.found.offset


def _stretch_as_row(stretch: OffsetRange, console: Console) -> tuple[str | int | None, ...]:
    since, until = stretch
    borders = (_shown(since.asked_ms, console), since.border, _shown(until.asked_ms, console), until.border)
    return *since.partition, *borders, stretch.records


def _shown(asked_ms: int, console: Console) -> str:
    from horolog.client.values.times import EARLIEST, LATEST

    return {EARLIEST: "earliest", LATEST: "latest"}.get(asked_ms) or console.show_time(asked_ms)


def _as_json(answer: TimeAnswer) -> dict[str, object]:
    """`offset` and `timestamp` are null if nothing is at or after the time; earliest is -2, latest -1."""
    found = answer.found
    return {
        "topic": answer.partition.topic,
        "partition": answer.partition.partition,
        "asked_ms": answer.asked_ms,
        "offset": None if found is None else found.offset,
        "timestamp": None if found is None or found.timestamp_ms < 0 else found.timestamp_ms,
        "end_offset": answer.end_offset,
        "records_to_end": 0 if found is None else answer.end_offset - found.offset,
        "warnings": list(answer.warnings),
    }


def _stretch_as_json(stretch: OffsetRange) -> dict[str, object]:
    """The beginning like any time, plus the end; `until_offset` is the end of the partition if nothing is at or after it."""
    since, until = stretch
    warnings = dict.fromkeys((*since.warnings, *until.warnings))
    return _as_json(since) | {
        "until_ms": until.asked_ms,
        "until_offset": until.border,
        "records": stretch.records,
        "warnings": list(warnings),
    }
