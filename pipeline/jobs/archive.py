"""`horolog pipeline archive`: topics into a table by event date, from where the table ends to where the topics end.

The work is done in steps of a bounded number of records. Each step is one commit of the table that carries the offsets with it, so
that a run that is killed at any moment goes on exactly where its last commit ended.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from client.cli.common.arguments import positive_number
from client.cli.common.console import Console
from client.cli.common.errors import CommandError, UsageError
from client.cli.common.exit_codes import ExitCode
from client.cli.online.connecting import connected, partitions_of
from pipeline.jobs.common import (
    JobProgress,
    Summary,
    add_common,
    add_range,
    require_topics,
    show_summary,
    spark_of,
    times_of,
)
from pipeline.tables.table import FORMATS, Offsets, Table, TableError, encode_offsets, open_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from client.client import Client
    from client.types import TopicPartition

STEP_RECORDS = 1_000_000
ISOLATION = "read_committed"

Range = tuple[int, int]


class Lost(CommandError):
    """What the table would go on with is not in the topic any more."""


def archive(
    spark: "SparkSession",
    bootstrap: str,
    table: Table,
    wanted: "Mapping[TopicPartition, Range]",
    *,
    step_records: int = STEP_RECORDS,
    progress: JobProgress | None = None,
) -> Summary:
    """Add these ranges of offsets to the table, a commit for each step."""
    began = time.monotonic()
    summary = Summary("archive", details={"commits": 0, "files": 0})
    offsets = table.offsets()
    for step in steps(wanted, step_records):
        offsets = offsets | {partition: end for partition, (_, end) in step.items()}
        written = table.append(read_step(spark, bootstrap, step), offsets)
        summary.records += written.records
        summary.bytes += written.size_bytes
        summary.details["commits"] += 1
        summary.details["files"] += written.files
        if progress is not None:
            progress.advance(written.records, written.size_bytes, written.last_timestamp_ms)
    summary.seconds = time.monotonic() - began
    summary.details["offsets"] = encode_offsets(offsets)
    return summary


def steps(wanted: "Mapping[TopicPartition, Range]", most: int) -> "Iterator[dict[TopicPartition, Range]]":
    """The ranges cut into pieces that together have at most `most` offsets, partition after partition; pure."""
    step: dict[TopicPartition, Range] = {}
    room = most
    for partition, (start, end) in sorted(wanted.items()):
        while start < end:
            cut = min(end, start + room)
            step[partition] = (start, cut)
            room -= cut - start
            start = cut
            if room == 0:
                yield step
                step, room = {}, most
    if step:
        yield step


def read_step(spark: "SparkSession", bootstrap: str, step: "Mapping[TopicPartition, Range]") -> "DataFrame":
    """The rows of a step; records that went meanwhile are an error, not a smaller step."""
    assigned: dict[str, list[int]] = {}
    for topic, partition in step:
        assigned.setdefault(topic, []).append(partition)
    return (
        spark.read.format("horolog")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("kafka.isolation.level", ISOLATION)
        .option("assign", json.dumps(assigned))
        .option("startingOffsets", json.dumps(encode_offsets({place: start for place, (start, _) in step.items()})))
        .option("endingOffsets", json.dumps(encode_offsets({place: end for place, (_, end) in step.items()})))
        .option("includeHeaders", "true")
        .load()
    )


async def plan(
    client: "Client",
    topics: Sequence[str],
    have: Offsets,
    since_ms: int | None,
    until_ms: int | None,
    *,
    skip_lost: bool = False,
) -> "dict[TopicPartition, Range]":
    """What is to be added: from where the table ends, else from `since`, up to `until`, else to the last stable offset."""
    from client.cli.online.reading import at_times
    from client.offsets import ends
    from client.types import EARLIEST, LATEST

    places = [place for topic in topics for place in await partitions_of(client, topic)]
    first = await ends(client, dict.fromkeys(places, EARLIEST), 1)
    last = await ends(client, dict.fromkeys(places, LATEST), 1)
    begin = first if since_ms is None else await at_times(client, places, since_ms, last, 1)
    end = last if until_ms is None else await at_times(client, places, until_ms, last, 1)
    return {
        place: (_start(place, have.get(place), begin[place], first[place], last[place], skip_lost), end[place])
        for place in places
    }


def _start(place: "TopicPartition", have: int | None, begin: int, first: int, last: int, skip_lost: bool) -> int:
    if have is None:
        return begin
    if have > last:
        raise Lost(f"the table has {place} up to {have}, but it ends at {last}", "was the topic made anew?")
    if have < first and not skip_lost:
        raise Lost(
            f"the table has {place} up to {have}, but it begins at {first} now: {first - have} offsets are gone",
            "--skip-lost goes on with what is there",
        )
    return max(have, first)


# -- the command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--to", required=True, metavar="DIR", help="the table's folder")
    parser.add_argument("--format", choices=FORMATS, default="parquet", help="(parquet)")
    parser.add_argument("--checkpoint", metavar="DIR", help="where Parquet's log of commits is (in the table's folder)")
    parser.add_argument("--compact", action="store_true", help="make few files of many, at the end")
    parser.add_argument("--skip-lost", action="store_true", help="go on where retention was quicker than the archive")
    parser.add_argument(
        "--step",
        type=positive_number,
        default=STEP_RECORDS,
        metavar="N",
        help=f"records for each commit ({STEP_RECORDS})",
    )
    add_range(parser)
    add_common(parser)


def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    if not arguments.topic:
        raise UsageError("at least one --topic is expected")
    if arguments.checkpoint and arguments.format != "parquet":
        raise UsageError(f"--checkpoint is for parquet; {arguments.format} keeps offsets in its own commits")
    since_ms, until_ms = times_of(arguments, console)
    asyncio.run(require_topics(arguments, arguments.topic))
    try:
        with spark_of(arguments) as spark:
            table = open_table(arguments.format, arguments.to, spark, arguments.checkpoint)
            wanted = asyncio.run(_planned(arguments, table.offsets(), since_ms, until_ms))
            progress = JobProgress(console, sum(max(0, end - start) for start, end in wanted.values()))
            summary = archive(spark, arguments.bootstrap, table, wanted, step_records=arguments.step, progress=progress)
            if arguments.compact:
                summary.details["files_compacted_away"] = table.compact()
            progress.clear()
    except TableError as error:
        raise CommandError(str(error)) from error
    show_summary(summary, console)
    return ExitCode.OK


async def _planned(
    arguments: argparse.Namespace, have: Offsets, since_ms: int | None, until_ms: int | None
) -> "dict[TopicPartition, Any]":
    async with connected(arguments) as client:
        return await plan(client, arguments.topic, have, since_ms, until_ms, skip_lost=arguments.skip_lost)
