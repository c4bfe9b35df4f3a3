"""`horolog consume`: records from one time to another, to the end, or as they come."""

import argparse
from collections.abc import Mapping
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
    whole_number,
)
from horolog.commands.console import Console
from horolog.commands.errors import UsageError
from horolog.commands.exit_codes import ExitCode
from horolog.commands.online.connecting import add_connection, connected, partitions_of
from horolog.commands.online.decoding import add_decoding
from horolog.commands.online.formats import add_format, decoded_writer, writer
from horolog.commands.online.looking_ahead import add_look_ahead, tell

if TYPE_CHECKING:
    from horolog.client.values.types import TopicPartition
    from horolog.client.wire.client import Client
    from horolog.commands.online.reading import Reading
    from horolog.commands.online.record_text import Writer


def configure(parser: argparse.ArgumentParser) -> None:
    describe(
        parser,
        "Read records. With --until, records are merged by time, including late ones. With --merge none, a "
        "range covers the offsets of each partition from the first record at or after --since to the first "
        "at or after --until; records in between with a time outside the range are left out. The command "
        "ends at --until, or at the offsets that were the end when it started. With --follow, it continues "
        "with new records.",
        "horolog consume logs --since 10:05 --until 10:10",
        "horolog consume logs --since 'last tuesday 10:05' --max 20 --tz Europe/Berlin",
        "horolog consume logs --follow --format '%D %k %s\\n'",
        "horolog consume orders --group billing -o json",
        "horolog consume orders --since 10:05 --where 'value.customer.id = 7' --registry http://schemas:8081",
    )
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument(
        "--since", metavar="TIME", help="start at the first record at or after this time (default: the beginning)"
    )
    parser.add_argument(
        "--until", metavar="TIME", help="stop before this time; +5m, or a time on the day of --since (default: the end)"
    )
    parser.add_argument(
        "--for", dest="length", type=duration, metavar="DURATION", help="the length of the range from --since"
    )
    parser.add_argument(
        "--merge",
        choices=("time", "none"),
        help="merge partitions by time, or not (default: time with --until, none without)",
    )
    parser.add_argument(
        "--merge-window",
        type=duration,
        default="1s",
        metavar="DURATION",
        help="how long to hold a new record with --follow --merge time (default: 1s)",
    )
    add_look_ahead(parser)
    parser.add_argument("--late", action="store_true", help="read to the end of the partitions for late records")
    parser.add_argument("--offset", type=whole_number, metavar="N", help="start at this offset")
    parser.add_argument("--tail", type=positive_number, metavar="N", help="start this many offsets before the end")
    parser.add_argument(
        "-f", "--follow", action="store_true", help="continue with new records (default: only those from now on)"
    )
    parser.add_argument("-p", "--partition", type=partitions, metavar="N", help="only these partitions: 0,3,5-7")
    parser.add_argument(
        "-g", "--group", metavar="GROUP", help="join a group: share its partitions, and commit written records"
    )
    parser.add_argument("-n", "--max", type=positive_number, metavar="N", help="stop after this many records")
    add_format(parser)
    add_isolation(parser)
    add_decoding(parser)
    add_connection(parser)
    add_zone(parser)
    add_output(parser)


async def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    check(arguments)
    write = writer(arguments, console)
    reading = plan(arguments, console)
    async with connected(arguments) as client:
        wanted = await partitions_of(client, arguments.topic, arguments.partition)
        if arguments.group is not None:
            await reading.with_group(client, arguments.topic, arguments.group, write)
        elif merges(arguments, reading) and not reading.follow:
            await merged(client, wanted, arguments, reading, write, console)
        else:
            if merges(arguments, reading):
                reading.merge_within(arguments.merge_window)
            starts, ends = await bounds(client, wanted, arguments, reading, console)
            await reading.of_partitions(client, starts, ends, write)
            if reading.until_ms is not None and not reading.late and not reading.follow:
                await reading.look_for_late_ones(client, ends)
    if reading.lens is not None:
        reading.lens.report()
    report(reading, console)
    return ExitCode.OK


def check(arguments: argparse.Namespace) -> None:
    """Refuse options that exclude each other."""
    begins = [f"--{name}" for name in ("since", "offset", "tail") if getattr(arguments, name) is not None]
    if len(begins) > 1:
        raise UsageError(f"{begins[0]} and {begins[1]} both set the start", "give only one of them")
    if arguments.group is not None:
        refused = [*begins, *(["--partition"] if arguments.partition else [])]
        if refused:
            raise UsageError(
                f"a group has its own position, so {refused[0]} cannot be used with --group",
                "`horolog groups reset` moves a group",
            )
    if arguments.merge == "time" and (arguments.group or arguments.offset is not None or arguments.tail is not None):
        raise UsageError("--merge time cannot be used with --group, --offset or --tail", "leave out one of them")
    if arguments.late and arguments.look_ahead is not None:
        raise UsageError("--late is the same as --look-ahead all", "give only one of them")


def plan(arguments: argparse.Namespace, console: Console) -> "Reading":
    from horolog.client.values.times import LATEST
    from horolog.commands.online.decoding import lens_of
    from horolog.commands.online.reading import Reading

    times = console.range(arguments.since, arguments.until, length_ms=arguments.length, ends=True)
    if times.until_ms is None and (arguments.late or arguments.look_ahead is not None):
        option = "--late" if arguments.late else "--look-ahead"
        raise UsageError(f"{option} looks past --until, which is missing", f"add --until, or leave out {option}")
    return Reading(
        since_ms=times.since_ms,
        until_ms=times.until_ms,
        from_end=times.since is not None and times.since.ms == LATEST,
        follow=arguments.follow,
        late=arguments.late,
        isolation=arguments.isolation,
        most=arguments.max,
        now_ms=console.now_ms,
        output=console.write_bytes,
        lens=lens_of(arguments, console),
        write_decoded=decoded_writer(arguments, console),
    )


def merges(arguments: argparse.Namespace, reading: "Reading") -> bool:
    """Whether to merge by time: ranges are, unless something else decides the order."""
    if arguments.merge is not None:
        return bool(arguments.merge == "time")
    goes_by_offsets = arguments.offset is not None or arguments.tail is not None
    return reading.until_ms is not None and not reading.follow and not goes_by_offsets


async def merged(
    client: "Client",
    wanted: "list[TopicPartition]",
    arguments: argparse.Namespace,
    reading: "Reading",
    write: "Writer",
    console: Console,
) -> None:
    """Read all partitions as one, by time."""
    from horolog.client.moments.look_ahead import DEFAULT, TO_THE_END
    from horolog.client.moments.moment import merge

    moment = merge(
        client,
        [] if reading.from_end else wanted,
        reading.since_ms,
        reading.until_ms,
        isolation=arguments.isolation,
        look_ahead=TO_THE_END if arguments.late else arguments.look_ahead or DEFAULT,
    )
    await reading.of_moment(moment, write)
    tell(moment.report, console)


async def bounds(
    client: "Client",
    wanted: "list[TopicPartition]",
    arguments: argparse.Namespace,
    reading: "Reading",
    console: Console,
) -> tuple[Mapping["TopicPartition", int], Mapping["TopicPartition", int]]:
    """Where to begin in each partition and, unless following, where to end."""
    from horolog.client.values.types import EARLIEST, LATEST
    from horolog.client.wire.offsets import ends
    from horolog.commands.online.reading import at_times, within

    isolation = 1 if arguments.isolation == "read_committed" else 0
    first = await ends(client, dict.fromkeys(wanted, EARLIEST), isolation)
    last = await ends(client, dict.fromkeys(wanted, LATEST), isolation)
    begin = dict(first)
    if arguments.offset is not None:
        begin = within(first, last, dict.fromkeys(wanted, arguments.offset), console)
    elif arguments.tail is not None:
        begin = {partition: max(first[partition], last[partition] - arguments.tail) for partition in wanted}
    elif reading.since_ms is not None:
        begin = await at_times(client, wanted, reading.since_ms, last, isolation)
    elif reading.from_end or (arguments.follow and arguments.since is None):
        begin = dict(last)
    if reading.until_ms is None or reading.late:
        return begin, last
    return begin, await at_times(client, wanted, reading.until_ms, last, isolation)


def report(reading: "Reading", console: Console) -> None:
    """Report facts that are not visible in the records."""
    if reading.outside:
        console.note(
            f"left out {counted(reading.outside, 'record')} with times outside the range, although their offsets are inside"
        )
    if reading.late_ones:
        console.warn(
            f"at least {counted(reading.late_ones, 'record')} of the range arrived late, after its end; --late reads late records"
        )
    if reading.written == 0 and not reading.follow:
        console.note("no records")
