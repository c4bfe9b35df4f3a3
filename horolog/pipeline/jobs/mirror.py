"""`horolog pipeline mirror`: copies a topic of cluster A to cluster B unchanged, and moves groups by time.

Spark spreads partitions over cores and machines, a task for the next piece of each; what a task does is `mirror_copy`'s. Records go
from broker to broker through the task's Python and never through Spark's rows, whose header names are text where Kafka's are bytes.
Progress is kept on B, in the transactions that hold the records, so after a kill the next run continues where the last one ended.
"""

import argparse
import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from horolog.base.readable import counted
from horolog.commands.arguments import duration, positive_number
from horolog.commands.console import Console
from horolog.commands.errors import CommandError, UsageError
from horolog.commands.exit_codes import ExitCode
from horolog.pipeline.jobs.common import (
    JobProgress,
    Summary,
    add_common,
    brokers_of,
    one_topic,
    progress_of,
    show_summary,
    spark_of,
)
from horolog.pipeline.jobs.passing import passing
from horolog.pipeline.options.brokers import Brokers, Where, at

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from horolog.client.admin.admin import Admin
    from horolog.client.security import Security
    from horolog.client.values.types import TopicPartition
    from horolog.pipeline.jobs.loading import Outlook, TopicRules
    from horolog.pipeline.jobs.mirror_copy import Copied, CopyPiece, Link, Progress
    from horolog.pipeline.jobs.mirror_groups import PartitionMove
    from horolog.pipeline.jobs.mirror_target import PartitionBounds

T = TypeVar("T")

STEP_RECORDS = 200_000
RESUME_BY_TIME = "30m"
RESUME_BY_TIME_MS = 1_800_000
POLL_SECONDS = 1.0
GROUPS_EVERY_SECONDS = 30.0
"""How often groups are moved while following, so that they are close behind when clients switch to B."""
LONGEST_PAUSE_SECONDS = 30.0
_SETTLED_AT_ONCE = 16
_COPIED = "records long, size_bytes long, last_ms long"


@dataclass(slots=True)
class Clusters:
    """Both clusters and the topic to copy; each step opens new connections, as it may run hours after the last."""

    source: Where
    target: Where
    topic: str
    timeout_ms: int = 30_000
    group: str = ""
    known: "dict[TopicPartition, Progress]" = field(default_factory=dict)

    @property
    def link(self) -> "Link":
        from horolog.pipeline.jobs.mirror_copy import Link

        return Link(self.source, self.target, self.group)

    def ask(self, question: "Callable[[Admin, Admin], Coroutine[Any, Any, T]]") -> T:
        """The result of a function that takes both clusters."""
        return asyncio.run(self._ask(question))

    async def _ask(self, question: "Callable[[Admin, Admin], Coroutine[Any, Any, T]]") -> T:
        from horolog.client.admin.admin import Admin
        from horolog.client.wire.retry import RetryPolicy
        from horolog.pipeline.jobs.mirror_copy import CLIENT_ID

        settings: dict[str, Any] = {"client_id": CLIENT_ID, "connect_timeout_ms": self.timeout_ms}
        settings["retry"] = RetryPolicy(timeout_ms=self.timeout_ms)
        async with Admin(**at(self.source), **settings) as source, Admin(**at(self.target), **settings) as target:
            return await question(source, target)


@dataclass(frozen=True, slots=True)
class Prepared:
    """What was found out before anything is sent."""

    wanted: "dict[TopicPartition, tuple[int, int]]"
    made: bool
    """The topic was not there."""
    settings: dict[str, str | None]
    rules: "TopicRules"
    busy: list[str]
    """Groups that still have members on A."""


# -- the function


def mirror(
    spark: "SparkSession",
    source: Where,
    target: Where,
    topic: str,
    *,
    since_ms: int | None = None,
    groups: Sequence[str] = (),
    resume_by_ms: int = RESUME_BY_TIME_MS,
    step_records: int = STEP_RECORDS,
    force: bool = False,
) -> Summary:
    """Copy to `target` what it lacks of the topic, and move the groups there; MirrorRefused if something would be lost."""
    clusters = Clusters(source, target, topic)
    prepared = prepare(clusters, since_ms, groups, create=True, force=force)
    refuse_losses(look(spark, clusters, prepared), force=force)
    summary = Summary("mirror", details={"topic": topic, "created": prepared.made})
    began = time.monotonic()
    for _ in copy_rounds(spark, clusters, settle(clusters, since_ms, force=force), step_records, summary):
        pass
    summary.details["groups"] = {group: move(clusters, group, resume_by_ms) for group in groups}
    summary.seconds = time.monotonic() - began
    return summary


def prepare(clusters: Clusters, since_ms: int | None, groups: Sequence[str], *, create: bool, force: bool) -> Prepared:
    """Look at both clusters, create the topic on B, and return the ranges to copy."""
    from horolog.pipeline.jobs import mirror_target
    from horolog.pipeline.jobs.mirror_groups import check_groups

    async def ask(source: "Admin", target: "Admin") -> Prepared:
        topic = clusters.topic
        clusters.group = f"horolog-mirror-{await mirror_target.cluster_of(source.client, str(clusters.source))}"
        await target.client.metadata([])
        is_there = await mirror_target.check_places(source.client, target.client, topic)
        busy = await check_groups(source, target, list(groups), topic)
        settings = {} if is_there else await mirror_target.own_settings(source, topic)
        bounds = await mirror_target.bounds_of(source.client, target.client, topic, since_ms)
        known = await mirror_target.noted(target, clusters.link, bounds) if is_there else {}
        bounds = mirror_target.from_first(bounds, known)
        starts = {
            place: mirror_target.go_on(place, known.get(place), each, force=force) for place, each in bounds.items()
        }
        if not is_there and create:
            await target.create_topic(topic, len(bounds), configs=settings)
        on_source = await mirror_target.rules_or_none(source, topic)
        rules = replace(on_source, log_append_time=False)  # those that a topic will have that is made as it is on A
        if is_there or create:
            rules = await mirror_target.rules_or_none(target, topic)
        rules = mirror_target.stricter(rules, on_source)
        wanted = {place: (starts[place].offset, each.last) for place, each in bounds.items()}
        if groups and rules.log_append_time:
            raise mirror_target.MirrorRefused(
                f"topic {topic} on B sets its own times (LogAppendTime)", "such times cannot be used to move groups"
            )
        rules = await mirror_target.binding(rules, source.client, wanted, time.time_ns() // 1_000_000)
        return Prepared(wanted, not is_there, settings, rules, busy)

    return clusters.ask(ask)


def look(spark: "SparkSession", clusters: Clusters, prepared: Prepared, *, whatever: bool = False) -> "Outlook | None":
    """How B's rules would treat the records; None if nothing can be lost, unless `whatever` asks for an answer anyway."""
    from horolog.pipeline.jobs.archive import read_step
    from horolog.pipeline.jobs.loading import look_ahead
    from horolog.pipeline.jobs.mirror_target import can_lose

    wanted = {place: reach for place, reach in prepared.wanted.items() if reach[0] < reach[1]}
    if not (wanted and (whatever or can_lose(prepared.rules))):
        return None
    return look_ahead(read_step(spark, clusters.source, wanted), prepared.rules, time.time_ns() // 1_000_000)


def refuse_losses(outlook: "Outlook | None", *, force: bool) -> None:
    """A record that B refuses cannot be skipped: B would have the records after it, and be no mirror."""
    from horolog.pipeline.jobs.mirror_target import MirrorRefused

    if outlook is None or not outlook.losses:
        return
    said = "; ".join(outlook.losses)
    if outlook.too_early or outlook.too_late:
        raise MirrorRefused(f"{said}; nothing was sent", "change the topic's bounds, if only while it is mirrored")
    if not force:
        raise MirrorRefused(f"{said}; nothing was sent", "change the topic's settings, or use --force")


def settle(clusters: Clusters, since_ms: int | None, *, force: bool) -> "dict[TopicPartition, tuple[int, int]]":
    """Fence other mirrors of these partitions, note where each begins, and return the ranges to copy.

    After this nothing is sent that was not noted before: a partition with records and no note was not filled by a mirror.
    """
    from horolog.pipeline.jobs import mirror_target
    from horolog.pipeline.jobs.mirror_copy import fenced, note_progress

    async def ask(source: "Admin", target: "Admin") -> "dict[TopicPartition, tuple[int, int]]":
        bounds = await mirror_target.bounds_of(source.client, target.client, clusters.topic, since_ms)
        bounds = mirror_target.from_first(bounds, await mirror_target.noted(target, clusters.link, bounds))
        at_once = asyncio.Semaphore(_SETTLED_AT_ONCE)

        async def one(place: "TopicPartition", each: "PartitionBounds") -> None:
            async with at_once, fenced(target.client, clusters.link, place) as (producer, have):
                chosen = mirror_target.go_on(place, have, each, force=force)
                if chosen != have:
                    await note_progress(producer, clusters.link, place, chosen)
                clusters.known[place] = chosen

        await asyncio.gather(*(one(place, each) for place, each in bounds.items()))
        return {place: (clusters.known[place].offset, each.last) for place, each in bounds.items()}

    return clusters.ask(ask)


def news(clusters: Clusters, *, force: bool) -> "dict[TopicPartition, tuple[int, int]]":
    """What has come since, in partitions that were there before and in new ones."""
    from horolog.pipeline.jobs import mirror_target

    async def ask(source: "Admin", target: "Admin") -> "dict[TopicPartition, PartitionBounds]":
        await mirror_target.check_places(source.client, target.client, clusters.topic)
        return await mirror_target.bounds_of(source.client, target.client, clusters.topic, None)

    bounds = clusters.ask(ask)
    if bounds.keys() - clusters.known.keys():
        return settle(clusters, None, force=force)
    starts = {
        place: mirror_target.go_on(place, clusters.known[place], each, force=force) for place, each in bounds.items()
    }
    if any(starts[place] != clusters.known[place] for place in bounds):
        return settle(clusters, None, force=force)
    return {place: (starts[place].offset, each.last) for place, each in bounds.items()}


def copy_rounds(
    spark: "SparkSession",
    clusters: Clusters,
    wanted: "dict[TopicPartition, tuple[int, int]]",
    step_records: int,
    summary: Summary,
    progress: JobProgress | None = None,
) -> "Iterator[list[Copied]]":
    """Copy these ranges, a round after the other."""
    from horolog.pipeline.jobs.mirror_copy import rounds

    for pieces in rounds(wanted, step_records):
        copied = run_round(spark, clusters.link, pieces)
        for place, _, end in pieces:
            clusters.known[place] = clusters.known[place]._replace(offset=end)
        for each in copied:
            summary.records += each.records
            summary.bytes += each.size_bytes
            if progress is not None:
                progress.advance(each.records, each.size_bytes, each.last_ms if each.last_ms >= 0 else None)
        yield copied


def run_round(spark: "SparkSession", link: "Link", pieces: "Sequence[CopyPiece]") -> "list[Copied]":
    """A Spark task for each piece."""
    from horolog.pipeline.jobs.mirror_copy import Copied, copy

    chosen = list(pieces)

    def copy_each(batches: "Iterator[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import pyarrow as pa

        for batch in batches:
            done = [copy(link, chosen[number])._asdict() for number in batch.column(0).to_pylist()]
            yield pa.RecordBatch.from_pylist(done)

    numbers = spark.range(0, len(chosen), 1, len(chosen))
    return [Copied(*row) for row in numbers.mapInArrow(copy_each, _COPIED).collect()]


def move(
    clusters: Clusters, group: str, slack_ms: int, moved_before: "Sequence[PartitionMove] | None" = None
) -> "list[PartitionMove]":
    from horolog.pipeline.jobs.mirror_groups import move_group

    return clusters.ask(
        lambda source, target: move_group(
            source, target, clusters.link, group, clusters.topic, slack_ms=slack_ms, moved_before=moved_before
        )
    )


# -- the command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--from", dest="bootstrap", metavar="HOST:PORT", help="a broker of cluster A (default: --bootstrap)"
    )
    parser.add_argument("--to", dest="target", required=True, metavar="HOST:PORT", help="a broker of cluster B")
    parser.add_argument(
        "--to-config",
        type=Path,
        metavar="FILE",
        help="a file with settings for cluster B, as --command-config for cluster A",
    )
    parser.add_argument(
        "--since", metavar="TIME", help="the time to start at if nothing has been copied yet (default: the beginning)"
    )
    parser.add_argument(
        "-g",
        "--group",
        action="append",
        default=[],
        metavar="GROUP",
        help="a group to continue on cluster B; repeatable",
    )
    parser.add_argument(
        "--resume-by-time",
        type=duration,
        default=RESUME_BY_TIME,
        metavar="DURATION",
        help=f"how long before its first unread record a group continues (default: {RESUME_BY_TIME})",
    )
    parser.add_argument("-f", "--follow", action="store_true", help="continue with new records until Ctrl-C")
    parser.add_argument(
        "--step",
        type=positive_number,
        default=STEP_RECORDS,
        metavar="N",
        help=f"records of a partition that a task copies in one step (default: {STEP_RECORDS})",
    )
    parser.add_argument("-n", "--dry-run", action="store_true", help="only show what would happen")
    parser.add_argument("--force", action="store_true", help="copy even if records would be lost or duplicated")
    add_common(parser)


def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    from horolog.client.values.errors import KafkaError
    from horolog.commands.online.connecting import command_error
    from horolog.pipeline.jobs.mirror_copy import MirrorFailed

    topic = one_topic(arguments)
    if arguments.dry_run and arguments.follow:
        raise UsageError("use either --dry-run or --follow")
    times = console.range(arguments.since, None)
    if times.until is not None:
        raise UsageError(
            "--since: a mirror continues to the end of the topic, so a range has no meaning", "name its beginning"
        )
    source = brokers_of(arguments)
    target = Brokers(arguments.target, _security_of_target(arguments, console))
    try:
        clusters = Clusters(source, target, topic, arguments.timeout)
        return _Run(clusters, times.since_ms, arguments, console).run()
    except ValueError as error:  # addresses
        raise UsageError(str(error)) from error
    except KafkaError as error:
        raise command_error(error, f"{source} or {target}") from error
    except MirrorFailed as error:
        raise CommandError(str(error)) from error


def _security_of_target(arguments: argparse.Namespace, console: Console) -> "Security | None":
    """Credentials for A say nothing of B: it has a file of its own, or is open."""
    from horolog.commands.connection import read_file, security_of

    return None if arguments.to_config is None else security_of(read_file(arguments.to_config, console))


class _Run:
    """The command, from its first question to its summary."""

    def __init__(
        self, clusters: Clusters, since_ms: int | None, arguments: argparse.Namespace, console: Console
    ) -> None:
        self._clusters = clusters
        self._since_ms = since_ms
        self._arguments = arguments
        self._console = console
        self._force = arguments.force
        self._to_move: list[str] = list(arguments.group)
        self._moved: dict[str, list[PartitionMove]] = {}
        self._move_at = 0.0
        self._progress = progress_of(arguments, console, None)
        self._summary = Summary("mirror", details={"topic": clusters.topic})

    def run(self) -> ExitCode:
        arguments, console = self._arguments, self._console
        prepared = prepare(
            self._clusters, self._since_ms, arguments.group, create=not arguments.dry_run, force=self._force
        )
        self._say(prepared)
        with spark_of(arguments) as spark:
            outlook = look(spark, self._clusters, prepared, whatever=arguments.dry_run)
            if arguments.dry_run:
                return self._end_dry_run(prepared, outlook)
            for loss in () if outlook is None else outlook.losses:
                console.warn(loss)
            refuse_losses(outlook, force=self._force)
            total = None if arguments.follow else sum(end - start for start, end in prepared.wanted.values())
            self._progress = progress_of(arguments, console, total)
            self._copy(spark)
        self._progress.clear()
        self._summary.seconds = self._progress.seconds
        self._summary.details["created"] = prepared.made
        self._move()
        show(self._summary, self._moved, console)
        return ExitCode.OK

    def _say(self, prepared: Prepared) -> None:
        topic, arguments = self._clusters.topic, self._arguments
        if prepared.made:
            verb = "would be created" if arguments.dry_run else "was created"
            own = (
                " ".join(f"{name}={value}" for name, value in sorted(prepared.settings.items()))
                or "no settings of its own"
            )
            self._console.note(
                f"topic {topic} {verb} on {arguments.target}: {counted(len(prepared.wanted), 'partition')}, {own}"
            )
        for group in prepared.busy:
            self._console.warn(f"group {group} still has members on A: B delivers again what they read from now on")

    def _end_dry_run(self, prepared: Prepared, outlook: "Outlook | None") -> ExitCode:
        from horolog.pipeline.jobs.loading import show_outlook

        console = self._console
        if outlook is not None:
            show_outlook(outlook, self._clusters.topic, console)
        losses = [] if outlook is None else outlook.losses
        if console.as_json:
            found = {"job": "mirror", "sent": False, "topic": self._clusters.topic, "would_create": prepared.made}
            ranges = {str(place.partition): list(reach) for place, reach in prepared.wanted.items()}
            found |= {"settings": prepared.settings, "offsets": ranges}
            console.json_line(found | ({"records": 0} if outlook is None else asdict(outlook)) | {"losses": losses})
        console.note("nothing was sent (--dry-run)")
        return ExitCode.ALERT if losses else ExitCode.OK

    # Copying

    def _copy(self, spark: "SparkSession") -> None:
        wanted = settle(self._clusters, self._since_ms, force=self._force)
        if not self._arguments.follow:
            self._copy_now(spark, wanted)
            return
        try:
            self._follow(spark, wanted)
        except KeyboardInterrupt:
            self._progress.clear()
            self._console.note("stopped; unfinished transactions are aborted")
            settle(self._clusters, self._since_ms, force=self._force)

    def _copy_now(self, spark: "SparkSession", wanted: "dict[TopicPartition, tuple[int, int]]") -> None:
        arguments = self._arguments
        for _ in copy_rounds(spark, self._clusters, wanted, arguments.step, self._summary, self._progress):
            pass

    def _follow(self, spark: "SparkSession", wanted: "dict[TopicPartition, tuple[int, int]]") -> None:
        """Until Ctrl-C; transient faults are retried with growing pauses."""
        from pyspark.errors import PySparkException

        from horolog.client.values.errors import KafkaError

        pause, coming = POLL_SECONDS, wanted
        while True:
            try:
                coming = self._follow_once(spark, coming)
                pause = POLL_SECONDS
            except (KafkaError, PySparkException) as error:
                reason = passing(error)
                if reason is None:
                    raise
                self._progress.clear()
                self._console.warn(f"{reason}; retrying in {pause:.0f} s")
                time.sleep(pause)
                pause, coming = min(2 * pause, LONGEST_PAUSE_SECONDS), {}

    def _follow_once(
        self, spark: "SparkSession", wanted: "dict[TopicPartition, tuple[int, int]]"
    ) -> "dict[TopicPartition, tuple[int, int]]":
        """Copy what there is, else wait a moment; returns the ranges to copy next. None: the progress of the copy is unknown."""
        if not wanted:
            wanted = settle(self._clusters, self._since_ms, force=self._force)
        if any(start < end for start, end in wanted.values()):
            self._copy_now(spark, wanted)
            self._say_where()
        else:
            time.sleep(POLL_SECONDS)
        if self._to_move and time.monotonic() >= self._move_at:
            self._move()
            self._move_at = time.monotonic() + GROUPS_EVERY_SECONDS
        return news(self._clusters, force=self._force)

    def _say_where(self) -> None:
        """A line for each round that copied something; the age of the last copied record is how far it is behind."""
        progress, console = self._progress, self._console
        where = ""
        if progress.time_ms is not None:
            behind = max(0, console.now_ms() - progress.time_ms) / 1000
            where = f" at {console.show_time(progress.time_ms)}, {behind:,.1f} s behind"
        rate = progress.records / max(progress.seconds, 1e-3)
        progress.clear()
        console.note(
            f"{counted(progress.records, 'record')}, {progress.size_bytes / 1e6:,.1f} MB, {rate:,.0f}/s{where}"
        )

    # Groups

    def _move(self) -> None:
        """Move the groups; a moved group that has begun to commit on B is no longer moved."""
        from horolog.pipeline.jobs.mirror_groups import GroupTaken

        for group in list(self._to_move):
            before = self._moved.get(group)
            try:
                self._moved[group] = move(self._clusters, group, self._arguments.resume_by_time, before)
            except GroupTaken as error:
                if before is None:
                    raise
                self._console.warn(str(error))
                self._to_move.remove(group)


def show(summary: Summary, groups: "dict[str, list[PartitionMove]]", console: Console) -> None:
    for group, moved in groups.items():
        for each in moved:
            _warn(group, each, console)
    if console.as_json:
        summary.details["groups"] = {group: [each.as_json() for each in moved] for group, moved in groups.items()}
    show_summary(summary, console)
    if groups and not console.as_json:
        headings = ("GROUP", "PARTITION", "OFFSET ON A", "OFFSET ON B", "READ AGAIN", "SINCE", "UNTIL")
        console.table(headings, [_row(group, each, console) for group, moved in groups.items() for each in moved])


def _row(group: str, each: "PartitionMove", console: Console) -> tuple[Any, ...]:
    times = (None if ms is None else console.show_time(ms) for ms in (each.again.first_ms, each.again.last_ms))
    return (group, each.partition.partition, each.offset_from, each.offset_to, each.again.records, *times)


def _warn(group: str, each: "PartitionMove", console: Console) -> None:
    where = f"group {group}, {each.partition}"
    if each.gone:
        console.warn(f"{where}: cluster A no longer had {counted(each.gone, 'unread offset')}")
    if each.not_mirrored:
        console.warn(f"{where}: cluster B lacks {counted(each.not_mirrored, 'unread record')} from before --since")
    if each.time_ms is None:
        console.warn(f"{where}: none of the records that it has read has a timestamp, so it begins at the start on B")
