"""`horolog at`: what happened at a time, in all partitions of a topic, merged by time."""

import argparse
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from horolog.base.readable import counted
from horolog.commands.arguments import (
    add_isolation,
    add_output,
    add_zone,
    describe,
    duration,
    partitions,
    positive_number,
)
from horolog.commands.console import Console
from horolog.commands.errors import CommandError, UsageError
from horolog.commands.exit_codes import ExitCode
from horolog.commands.online.connecting import add_connection, connected, partitions_of
from horolog.commands.online.decoding import Lens, add_decoding, lens_of
from horolog.commands.online.formats import add_format, decoded_writer, format_of, writer
from horolog.commands.online.looking_ahead import add_look_ahead, tell

if TYPE_CHECKING:
    from horolog.base.patterns import Matches
    from horolog.client.decoding import Decoded
    from horolog.client.moments.moment import MergedRecords
    from horolog.client.moments.moment_source import Source
    from horolog.client.moments.sorting import Placed
    from horolog.client.values.time_ranges import TimeRange
    from horolog.client.values.types import ConsumerRecord, TopicPartition
    from horolog.client.wire.client import Client

Keep = Callable[["ConsumerRecord"], bool]
Show = Callable[["Placed", "Decoded | None"], bytes]
LATENESS_WIDTH = 14
LINES_AT_ONCE = 200


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Show the records of a moment from all partitions, in the order of time, partition and offset. If TIME names a minute,\na day or a week, all of it is shown; for a point in time, one minute. A late record (an earlier one in its partition has\na larger time) is shown at its own time and marked.",
        "horolog at orders 10:05",
        "horolog at orders 'monday 10:05' --for 5m --tz Europe/Berlin",
        "horolog at orders '17 Nov 10:05 Europe/Berlin' --around 30s --key k-17",
        "horolog at orders 10:05..10:10 --grep 'timeout|refused' -o json",
        "horolog at orders 'yesterday 10:05' --dir /var/lib/horolog --format '%D %p %o %s\\n'",
        "horolog at orders 10:05 --registry http://schemas:8081 --where 'value.customer.id = 7'",
    )
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("time", metavar="TIME", help="10:05, 'monday 10:05', '17 Nov', 'last week', 10:05..10:10")
    parser.add_argument("--dir", metavar="DIR", help="read a data folder instead of a broker")
    parser.add_argument(
        "--for", dest="length", type=duration, metavar="DURATION", help="the length of the range from TIME"
    )
    parser.add_argument("--around", type=duration, metavar="DURATION", help="show this much before and after TIME")
    parser.add_argument("--until", metavar="TIME", help="the end of the range; +5m, or a time of the same day")
    parser.add_argument("-k", "--key", metavar="KEY", help="only records with this key")
    parser.add_argument("--grep", type=pattern, metavar="RE", help="only records with a match in key or value")
    parser.add_argument(
        "-p", "--partition", "--partitions", type=partitions, metavar="N", help="only these partitions: 0,3,5-7"
    )
    parser.add_argument("-n", "--max", type=positive_number, metavar="N", help="stop after this many records")
    add_isolation(parser)
    add_format(parser)
    add_look_ahead(parser)
    add_decoding(parser)
    add_connection(parser)
    add_zone(parser)
    add_output(parser)


def pattern(text: str) -> "Matches":
    """For `type=`: a pattern whose cost on a record is bounded."""
    from horolog.base.patterns import PatternError, compile_pattern

    try:
        return compile_pattern(text)
    except PatternError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a regular expression: {error}") from error


async def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    times = times_of(arguments, console)
    keep, show, lens = keep_of(arguments), show_of(arguments, console), lens_of(arguments, console)
    async with moment_of(arguments, times, console) as moment:
        shown = await write(moment, keep, lens, show, arguments.max, console)
    if lens is not None:
        lens.report()
    if shown != moment.report.records:
        console.note(f"{shown} of {counted(moment.report.records, 'record')}")
    elif not shown:
        console.note("no records")
    tell(moment.report, console)
    return ExitCode.OK


@asynccontextmanager
async def moment_of(
    arguments: argparse.Namespace, times: "TimeRange", console: Console
) -> AsyncIterator["MergedRecords"]:
    """The moment from a broker, or from the files of a data folder: the same records either way."""
    from horolog.client.moments.look_ahead import DEFAULT
    from horolog.client.moments.moment import merge

    def merged(source: "Client | Source", places: "list[TopicPartition]") -> "MergedRecords":
        look_ahead = arguments.look_ahead or DEFAULT
        return merge(
            source, places, times.since_ms, times.until_ms, isolation=arguments.isolation, look_ahead=look_ahead
        )

    if arguments.dir is None:
        async with connected(arguments) as client:
            places = await partitions_of(client, arguments.topic, arguments.partition)
            async with merged(client, places) as moment:
                yield moment
        return
    from horolog.client.cli.examining.folder_source import opened
    from horolog.client.values.errors import KafkaError

    with opened(arguments.dir, arguments.topic, arguments.partition) as source:
        try:
            async with merged(source, list(source.partitions)) as moment:
                yield moment
        except KafkaError as error:
            raise CommandError(f"{arguments.dir}: {error.message}", "run `horolog doctor` for details") from error
        if source.damaged_bytes:
            console.warn(f"skipped {counted(source.damaged_bytes, 'damaged byte')} of {arguments.topic}")


def times_of(arguments: argparse.Namespace, console: Console) -> "TimeRange":
    """The requested range; prints how it was understood."""
    from horolog.client.values.time_ranges import parse_named
    from horolog.client.values.times import TimeTextError

    ends = {"--for": arguments.length, "--around": arguments.around, "--until": arguments.until}
    given = [name for name, value in ends.items() if value is not None]
    if len(given) > 1:
        raise UsageError(f"{given[0]} and {given[1]} both set the end", "give one of them")
    if 0 in (arguments.length, arguments.around):
        raise UsageError(f"{given[0]}: the range is empty")
    try:
        times = parse_named(
            arguments.time,
            length_ms=arguments.length,
            around_ms=arguments.around,
            until=arguments.until,
            now_ms=console.now_ms(),
            zone=console.zone,
        )
    except TimeTextError as error:
        raise UsageError(f"TIME: {error}") from error
    assert times.since is not None
    assert times.until is not None
    console.note(f"{arguments.time} is {times.since.understood} to {times.until.understood}")
    if (times.since_ms or 0) > console.now_ms():
        console.note("this time is in the future")
    return times


async def write(
    moment: "MergedRecords", keep: Keep, lens: Lens | None, show: Show, most: int | None, console: Console
) -> int:
    """The one place where records are left out or written; returns how many were written."""
    shown = 0
    lines: list[bytes] = []
    async for placed in moment:
        wanted, decoded = keep(placed.record), None
        if wanted and lens is not None:
            wanted, decoded = await lens.decoded(placed.record)
        if wanted:
            lines.append(show(placed, decoded))
            shown += 1
        if len(lines) >= LINES_AT_ONCE or shown == most:
            console.write_bytes(b"".join(lines))
            lines.clear()
        if shown == most:
            console.note(f"stopped after {counted(shown, 'record')} (--max); there may be more")
            break
    console.write_bytes(b"".join(lines))
    return shown


def keep_of(arguments: argparse.Namespace) -> Keep:
    """Which records are wanted."""
    key = None if arguments.key is None else arguments.key.encode(errors="surrogateescape")
    matches: Matches | None = arguments.grep

    def keep(record: "ConsumerRecord") -> bool:
        if key is not None and record.key != key:
            return False
        return matches is None or any(
            matches(data.decode(errors="replace")) for data in (record.key, record.value) if data is not None
        )

    return keep


def show_of(arguments: argparse.Namespace, console: Console) -> Show:
    """The writer of records: with their lateness in text and in JSON."""
    from horolog.commands.online.decoding import in_json, in_text
    from horolog.commands.online.record_text import as_json, line_of

    wanted, write_record = format_of(arguments, console), writer(arguments, console)
    write_decoded = decoded_writer(arguments, console)

    def show_json(placed: "Placed", decoded: "Decoded | None") -> bytes:
        members = as_json(placed.record) if decoded is None else in_json(placed.record, decoded)
        return line_of(members | {"late_ms": placed.late_ms})

    def show_text(placed: "Placed", decoded: "Decoded | None") -> bytes:
        record = placed.record if decoded is None else in_text(placed.record, decoded)
        time, place, rest = write_record(record).split(b"  ", 2)
        return b"  ".join((time, lateness(placed.late_ms).rjust(LATENESS_WIDTH).encode(), place, rest))

    def show_other(placed: "Placed", decoded: "Decoded | None") -> bytes:
        if decoded is None or write_decoded is None:
            return write_record(placed.record)
        return write_decoded(placed.record, decoded)

    return {"json": show_json, "text": show_text}.get(wanted, show_other)


def lateness(late_ms: int) -> str:
    """`+3.2s late`, or nothing."""
    from horolog.client.values.times import format_duration

    if late_ms <= 0:
        return ""
    if 1000 <= late_ms < 60_000:
        return f"+{late_ms / 1000:.1f}s late"
    return f"+{format_duration(late_ms)} late"
