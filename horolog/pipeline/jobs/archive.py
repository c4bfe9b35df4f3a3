"""`horolog pipeline archive`: topics into a table by event date or hour, from where the table ends to where the topics end.

The work is done in steps of a bounded number of records. Each step is one commit of the table that also has the offsets, so
that after a kill the next run continues exactly where the last commit ended.
"""

import argparse
import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from horolog.commands.arguments import duration, positive_number
from horolog.commands.console import Console
from horolog.commands.errors import CommandError, UsageError
from horolog.commands.exit_codes import ExitCode
from horolog.commands.online.connecting import partitions_of
from horolog.pipeline.base.topic_ids import made_anew, show_topic_id
from horolog.pipeline.jobs import archive_follow
from horolog.pipeline.jobs.archive_form import AS_IT_IS, Form, add_form, form_of
from horolog.pipeline.jobs.at_table import table_of, told
from horolog.pipeline.jobs.common import (
    JobProgress,
    Summary,
    add_catalogue,
    add_common,
    add_range,
    brokers_of,
    progress_of,
    require_topics,
    show_summary,
    spark_of,
    times_of,
)
from horolog.pipeline.options.brokers import Where, at, spark_options
from horolog.pipeline.tables.lock import writing
from horolog.pipeline.tables.table import FORMATS, Offsets, Table, encode_offsets, open_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from horolog.client.values.types import TopicPartition
    from horolog.client.wire.client import Client
    from horolog.pipeline.tables.catalogues import CatalogueTable

STEP_RECORDS = 1_000_000
ISOLATION = "read_committed"

Range = tuple[int, int]
T = TypeVar("T")


class Have(NamedTuple):
    """How far a table goes, and of which topics that is."""

    offsets: Offsets
    ids: dict[str, str]


class RowsToAdd(NamedTuple):
    """The rows to add, and the table to add them to."""

    have: Have
    ranges: "dict[TopicPartition, Range]"
    is_since: bool = False
    """Whether topics that the table lacks begin at a time, which the same words may put elsewhere at the next run."""

    @property
    def has_to_be_noted(self) -> bool:
        """Whether a commit has to say where a topic begins, even if no rows are written."""
        return self.is_since and any(place.topic not in self.begun for place in self.ranges)

    @property
    def beginning(self) -> "RowsToAdd":
        """Without rows."""
        return self._replace(ranges={place: (start, start) for place, start in self.starts.items()})

    @property
    def starts(self) -> Offsets:
        """Where each partition continues, or begins. The first commit records it for partitions without rows, too.

        Otherwise they would begin at the next run's `since`, which is later if it is "an hour ago".
        """
        return {place: start for place, (start, _) in self.ranges.items()}

    @property
    def begun(self) -> list[str]:
        """The topics with which the table continues."""
        return sorted({place.topic for place in self.have.offsets if place in self.ranges})

    @property
    def records(self) -> int:
        return sum(max(0, end - start) for start, end in self.ranges.values())


class Lost(CommandError):
    """The records after the table's end are no longer in the topic."""


def archive(
    spark: "SparkSession",
    bootstrap: Where,
    topics: str | Sequence[str],
    to: "str | CatalogueTable",
    *,
    table_format: str = "parquet",
    checkpoint: str | None = None,
    form: Form = AS_IT_IS,
    since_ms: int | None = None,
    until_ms: int | None = None,
    step_records: int = STEP_RECORDS,
    skip_lost: bool = False,
    compact: bool = False,
    wait_ms: int = 0,
    tell: Callable[[str], None] = lambda _: None,
    progress_of: Callable[[int], JobProgress | None] = lambda _: None,
) -> Summary:
    """Add new records of the topics to the table in the folder `to`, or of that name, from where it ends; LockHeld if it is in use.

    `tell` gets lines for the user, `progress_of` the number of records to come.
    """
    names = [topics] if isinstance(topics, str) else list(topics)
    table = open_table(table_format, to, spark, checkpoint)
    job = Job(spark, bootstrap, names, table, since_ms, until_ms, step_records, skip_lost, form)
    summary = Summary("archive", details={"commits": 0, "files": 0})
    began = time.monotonic()
    with job.writing(wait_ms, tell):
        wanted = job.plan()
        job.tell_first(wanted, tell)
        progress = progress_of(wanted.records)
        job.add(wanted, summary, progress)
        if compact:
            summary.details["files_compacted_away"] = table.compact()
        if progress is not None:
            progress.clear()
    summary.seconds = time.monotonic() - began
    return summary


@dataclass(frozen=True, slots=True)
class Job:
    """What goes where, and how; each of its parts may be repeated."""

    spark: "SparkSession"
    bootstrap: Where
    topics: Sequence[str]
    table: Table
    since_ms: int | None = None
    until_ms: int | None = None
    step_records: int = STEP_RECORDS
    skip_lost: bool = False
    form: Form = AS_IT_IS

    def writing(self, wait_ms: int, tell: Callable[[str], None]) -> AbstractContextManager[object]:
        """Hold the table's lock."""
        return writing(self.table, wait_ms, tell)

    def plan(self) -> RowsToAdd:
        """What the topics have and the table lacks. The rows will be committed after the commit that is now the newest."""
        have = Have(self.table.offsets(), dict(self.table.topic_ids()))
        self.form.check(self.spark, self.table.folders())
        self.form.check_columns(self.topics, self.table)
        return self.ask(
            lambda client: plan(client, self.topics, have, self.since_ms, self.until_ms, skip_lost=self.skip_lost)
        )

    def tell_first(self, wanted: RowsToAdd, tell: Callable[[str], None]) -> None:
        """Say what a user may expect and will not get: a `since` that comes too late, decoded columns that stay empty."""
        if self.since_ms is not None and wanted.begun:
            tell(
                f"{', '.join(wanted.begun)}: continues where the table ends; --since applies only to topics that the table does not have yet"
            )
        lacking = self.form.lacking(self.topics, self.table.columns())
        if lacking:
            tell(f"the table has {', '.join(lacking)}, but this run has no options for them; they are null in new rows")

    def add(
        self,
        wanted: RowsToAdd,
        summary: Summary,
        progress: JobProgress | None = None,
        is_over: Callable[[], bool] = lambda: False,
    ) -> Offsets:
        """Add these ranges of offsets to the table, a commit for each step, until it `is_over`; how far the table goes now."""
        offsets, folders = wanted.have.offsets, self.form.folders(self.table.folders())
        summary.details["offsets"] = encode_offsets(offsets)
        for step in self._steps(wanted):
            if is_over():
                break
            further = wanted.starts | offsets | {partition: end for partition, (_, end) in step.items()}
            rows = read_step(self.spark, self.bootstrap, step, self.form.options)
            written = self.table.append(rows, further, wanted.have.ids, folders)
            offsets = further
            summary.details["offsets"] = encode_offsets(offsets)
            summary.records += written.records
            summary.bytes += written.size_bytes
            summary.details["commits"] += 1
            summary.details["files"] += written.files
            if self.form.typed:
                summary.details["broken"] = summary.details.get("broken", 0) + written.broken
            if progress is not None:
                progress.advance(written.records, written.size_bytes, written.last_timestamp_ms)
        return offsets

    def _steps(self, wanted: RowsToAdd) -> "Iterator[dict[TopicPartition, Range]]":
        """One without rows only notes from where on the table has everything."""
        if wanted.has_to_be_noted and not wanted.records:
            yield wanted.beginning.ranges
            return
        yield from steps(wanted.ranges, self.step_records)

    def ask(self, question: "Callable[[Client], Coroutine[Any, Any, T]]") -> T:
        """The result of a function that takes the cluster."""
        return asyncio.run(self._ask(question))

    async def _ask(self, question: "Callable[[Client], Coroutine[Any, Any, T]]") -> T:
        from horolog.client.wire.client import Client

        async with Client(**at(self.bootstrap), client_id="horolog-pipeline") as client:
            return await question(client)


def steps(wanted: "Mapping[TopicPartition, Range]", most: int) -> "Iterator[dict[TopicPartition, Range]]":
    """The ranges cut into steps of at most `most` offsets together, from all partitions alike, so that tasks work on them at once; pure."""
    left = {partition: (start, end) for partition, (start, end) in wanted.items() if start < end}
    while left:
        step: dict[TopicPartition, Range] = {}
        room = most
        smallest_first = sorted(left, key=lambda one: (left[one][1] - left[one][0], one))
        for number, partition in enumerate(smallest_first):
            start, end = left[partition]
            cut = min(end, start + room // (len(left) - number))
            if cut > start:
                step[partition] = (start, cut)
                room -= cut - start
        yield step
        left |= {partition: (cut, left[partition][1]) for partition, (_, cut) in step.items()}
        left = {partition: (start, end) for partition, (start, end) in left.items() if start < end}


def read_step(
    spark: "SparkSession",
    bootstrap: Where,
    step: "Mapping[TopicPartition, Range]",
    typed: Mapping[str, str] | None = None,
) -> "DataFrame":
    """The rows of a step, with decoded columns if options ask for them; records that are gone since are an error, not a smaller step."""
    assigned: dict[str, list[int]] = {}
    for topic, partition in step:
        assigned.setdefault(topic, []).append(partition)
    return (
        spark.read.format("horolog")
        .options(**spark_options(bootstrap), **(typed or {}))
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
    have: Have,
    since_ms: int | None,
    until_ms: int | None,
    *,
    skip_lost: bool = False,
) -> "RowsToAdd":
    """The offsets to add: from where the table ends, of a new topic from `since`, up to `until`, else to the last stable offset."""
    from horolog.client.values.types import EARLIEST, LATEST
    from horolog.client.wire.offsets import ends
    from horolog.commands.online.reading import at_times

    places = [place for topic in topics for place in await partitions_of(client, topic)]
    ids = {topic: show_topic_id(client.view.topics[topic].id) for topic in topics}
    there = have.ids | {topic: known for topic, known in ids.items() if known is not None}
    remade = {topic for topic, known in have.ids.items() if there[topic] != known}
    for topic in remade if not skip_lost else ():
        raise Lost(
            made_anew(topic, have.ids[topic], there[topic]), "use --skip-lost to begin the new topic at its start"
        )
    offsets = {place: offset for place, offset in have.offsets.items() if place.topic not in remade}
    first = await ends(client, dict.fromkeys(places, EARLIEST), 1)
    last = await ends(client, dict.fromkeys(places, LATEST), 1)
    begin = first if since_ms is None else await at_times(client, places, since_ms, last, 1)
    # A partition that was added to such a topic since is wanted from its start.
    begun = {place.topic for place in offsets}
    begin |= {place: first[place] for place in places if place.topic in begun}
    end = last if until_ms is None else await at_times(client, places, until_ms, last, 1)
    ranges = {
        place: (_start(place, offsets.get(place), begin[place], first[place], last[place], skip_lost), end[place])
        for place in places
    }
    return RowsToAdd(Have(offsets, there), ranges, since_ms is not None)


def _start(place: "TopicPartition", have: int | None, begin: int, first: int, last: int, skip_lost: bool) -> int:
    if have is None:
        return begin
    if have > last:
        raise Lost(f"the table has {place} up to {have}, but it ends at {last}", "was the topic recreated?")
    if have < first and not skip_lost:
        raise Lost(
            f"the table has {place} up to {have}, but it begins at {first} now: {first - have} offsets are gone",
            "use --skip-lost to continue with the rest",
        )
    return max(have, first)


# -- the command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--to", metavar="DIR|URL", help="the table's folder (default: where its catalogue says)")
    parser.add_argument(
        "--format", choices=FORMATS, help="the format of the table (default: parquet; iceberg with --catalog)"
    )
    add_catalogue(parser)
    parser.add_argument(
        "--checkpoint", metavar="DIR", help="where Parquet's log of commits is (default: in the table's folder)"
    )
    add_form(parser)
    parser.add_argument("--compact", action="store_true", help="merge small files at the end")
    parser.add_argument(
        "--skip-lost", action="store_true", help="continue if retention deleted records before they were archived"
    )
    parser.add_argument(
        "--step",
        type=positive_number,
        default=STEP_RECORDS,
        metavar="N",
        help=f"records per commit (default: {STEP_RECORDS})",
    )
    parser.add_argument(
        "--wait",
        type=duration,
        default="0ms",
        metavar="DURATION",
        help="how long to wait while another job writes to the table (default: do not wait, exit code 6)",
    )
    archive_follow.add_arguments(parser)
    add_range(parser)
    add_common(parser)


def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    if not arguments.topic:
        raise UsageError("give at least one --topic")
    kind, to = table_of(arguments)
    form = form_of(arguments)
    form.check_options(arguments.topic)
    since_ms, until_ms = times_of(arguments, console)
    follow = archive_follow.pace_of(arguments, until_ms)
    asyncio.run(require_topics(arguments, arguments.topic))
    with told(arguments, to), spark_of(arguments) as spark:
        if follow is not None:
            table = open_table(kind, to, spark, arguments.checkpoint)
            job = Job(
                spark,
                brokers_of(arguments),
                arguments.topic,
                table,
                since_ms,
                step_records=arguments.step,
                skip_lost=arguments.skip_lost,
                form=form,
            )
            return archive_follow.run(job, follow, arguments, console)
        summary = archive(
            spark,
            brokers_of(arguments),
            arguments.topic,
            to,
            table_format=kind,
            checkpoint=arguments.checkpoint,
            form=form,
            since_ms=since_ms,
            until_ms=until_ms,
            step_records=arguments.step,
            skip_lost=arguments.skip_lost,
            compact=arguments.compact,
            wait_ms=arguments.wait,
            tell=console.note,
            progress_of=partial(progress_of, arguments, console),
        )
    show_summary(summary, console)
    return ExitCode.OK
