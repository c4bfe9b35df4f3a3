"""Sends rows with times of their own to a topic, after finding out what the topic would do with those times.

A topic drops records older than its retention within minutes, and refuses times beyond its bounds; a load that does not check first
loses data silently. `look_ahead` counts, before anything is sent, what would be lost and why.
"""

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

from horolog.base.readable import counted
from horolog.client.values.errors import KafkaError
from horolog.commands.arguments import positive_number
from horolog.commands.console import Console
from horolog.commands.errors import CommandError, NotFoundError
from horolog.commands.exit_codes import ExitCode
from horolog.pipeline.jobs.common import JobProgress, Summary, progress_of
from horolog.pipeline.jobs.lanes import (
    CLIENT_ID,
    NOTE_RECORDS,
    LaneResult,
    Lanes,
    Noted,
    SendFailed,
    Turn,
    begin,
    finish,
    noted,
    noted_of,
    send_lane,
)
from horolog.pipeline.jobs.topic_rules import (
    OVERHEAD_BYTES,
    Counts,
    Outlook,
    TopicRules,
    outlook_of,
    rules_at,
    rules_of,
)
from horolog.pipeline.options.brokers import at
from horolog.protocol.records.timestamps import NO_TIMESTAMP

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from horolog.client.wire.client import Client
    from horolog.pipeline.jobs.lane_rows import LaneRows

T = TypeVar("T")

LOOK_SECONDS = 1.0
"""Between two looks at how far tasks have come."""


def look_ahead(rows: "DataFrame", rules: TopicRules, now_ms: int) -> Outlook:
    """What the rules would do to these rows."""
    return outlook_of(counts_of(rows, rules, now_ms), rules)


def counts_of(rows: "DataFrame", rules: TopicRules, now_ms: int) -> Counts:
    """Count, with Spark, what the rules would do to these rows."""
    from pyspark.sql import functions as f

    return counted_in(rows.agg(*counting(rules, now_ms, f.sum(size_of_row().cast("long")))).collect()[0])


def size_of_row() -> "Column":
    from pyspark.sql import functions as f

    return f.coalesce(f.length("key"), f.lit(0)) + f.coalesce(f.length("value"), f.lit(0)) + OVERHEAD_BYTES


def counting(rules: TopicRules, now_ms: int, size: "Column") -> "list[Column]":
    """What to ask of rows for their `Counts`."""
    from pyspark.sql import functions as f

    ms = f.nullif(f.unix_millis("timestamp"), f.lit(NO_TIMESTAMP))  # none has no age, and no bound refuses it
    own_times = not rules.log_append_time

    def how_many(condition: Any) -> Any:
        return f.sum(f.coalesce(condition, f.lit(False)).cast("long"))

    return [
        f.count("*").alias("records"),
        f.coalesce(size, f.lit(0)).alias("size_bytes"),
        f.min(ms).alias("first_ms"),
        f.max(ms).alias("last_ms"),
        how_many(f.lit(rules.retains) & (ms < now_ms - rules.retention_ms)).alias("expired"),
        how_many(f.lit(own_times) & (ms < now_ms - rules.before_max_ms)).alias("too_early"),
        how_many(f.lit(own_times) & (ms - now_ms > rules.after_max_ms)).alias("too_late"),
    ]


def counted_in(answer: "Sequence[Any]") -> Counts:
    """The answer, in a row that may have more."""
    return Counts(*answer[:4], *(each or 0 for each in answer[4:7]))


@dataclass(frozen=True, slots=True)
class Settings:
    """How rows are sent."""

    exactly_once: bool = False
    again: bool = False
    """All of it again, whatever was sent before."""
    force: bool = False
    rate: int | None = None
    step_records: int = NOTE_RECORDS


@dataclass(frozen=True, slots=True)
class Share:
    """The rows of one topic, by its id: a job of its own, with its own progress."""

    rows: "LaneRows"
    lanes: Lanes
    numbers: range
    settled: dict[str, Any]
    sent_before: int = 0
    rows_due: int | None = None
    """How many there are in all, with those that were sent before; None: not counted."""


class Gap(NamedTuple):
    """Offsets behind those that an earlier run of this job sent, which the source no longer has."""

    place: str
    position: int
    first: int | None
    """Where the source begins now; None for a table, of which any rows may be gone."""
    gone: int
    """How many of them may have had a wanted row; 0: the earlier run saw the end of the range before them."""

    def __str__(self) -> str:
        if self.first is None:
            return f"{self.place} was sent up to {self.position}, and {self.gone} records after that are no longer in the table"
        if not self.gone:
            return (
                f"{self.place} was sent up to {self.position}, where its range ended, and begins at {self.first} now:"
                " records of the range that arrived late between the two, if there were any, are not sent"
            )
        return (
            f"{self.place} was sent up to {self.position}, but begins at {self.first} now: {self.gone} offsets are gone"
        )


@dataclass(slots=True)
class Load:
    """Rows that are ready to be sent, and how the topic would treat them; to be closed."""

    job: str
    topic: str
    source: str
    shares: list[Share]
    outlook: Outlook
    gaps: list[Gap] = field(default_factory=list)
    """Reported before the rest is sent."""
    held: ExitStack = field(default_factory=ExitStack)
    """Open until they are sent: pins of the files that they are read from."""

    @property
    def sent_before(self) -> int:
        return sum(share.sent_before for share in self.shares)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.held.close()

    def send(self, settings: Settings, progress: JobProgress | None = None) -> Summary:
        """Send what was not sent before: as fast as Spark's tasks can, or at a rate through this process."""
        began = time.monotonic()
        summary = Summary(self.job, details={"topic": self.topic})
        twice = 0
        for share in self.shares:
            asyncio.run(_begin(share, again=settings.again))
            for done in self._sent(share, settings, progress):
                summary.records += done.records
                summary.bytes += done.size_bytes
                if progress is not None:
                    last_ms = done.last_ms if done.last_ms >= 0 else None
                    progress.advance(summary.records - progress.records, summary.bytes - progress.size_bytes, last_ms)
            self._check_all_were_sent(share)
            twice += asyncio.run(_finish(share))
        if not summary.records and (settings.again or not self.sent_before):
            raise nothing_there(self.source)
        summary.seconds = time.monotonic() - began
        summary.details["sent_before"] = 0 if settings.again else self.sent_before
        summary.details["sent_twice"] = twice
        if self.gaps:
            summary.details["gone"] = sum(each.gone for each in self.gaps)
        return summary

    def _check_all_were_sent(self, share: Share) -> None:
        """A dump is read twice, and may have changed between: then a part is sent, or rows of both states."""
        if share.rows_due is None:
            return
        sent = sum(each.sent for each in asyncio.run(noted_of(share.lanes, share.numbers)).values())
        if sent != share.rows_due:
            raise CommandError(
                f"{self.source} has changed while it was sent: it had {share.rows_due:,} rows, and {sent:,} were sent",
                "use --again to send all of it again",
            )

    def _sent(self, share: Share, settings: Settings, progress: JobProgress | None) -> Iterator[LaneResult]:
        if settings.rate is None:
            yield from self._sent_by_tasks(share, progress)
            return
        turn = Turn(settings.rate)
        for lane, members in share.rows.here(share.numbers):
            try:
                yield asyncio.run(send_lane(share.lanes, lane, members, turn))
            except (SendFailed, KafkaError) as error:
                raise CommandError(str(error)) from error

    def _sent_by_tasks(self, share: Share, progress: JobProgress | None) -> list[LaneResult]:
        """The results of all lanes; meanwhile their progress is read from the target."""
        done = share.rows.in_tasks(share.lanes, share.numbers)
        with ThreadPoolExecutor(1) as pool:
            sending: Future[Sequence[Any]] = pool.submit(done.collect)
            if progress is not None:
                asyncio.run(self._watch(share, sending, progress))
            return [LaneResult(*row) for row in sending.result()]

    async def _watch(self, share: Share, sending: "Future[Sequence[Any]]", progress: JobProgress) -> None:
        from horolog.client.wire.client import Client

        waiting = asyncio.wrap_future(sending)
        before, sent_at_begin = progress.records, None
        mean_bytes = self.outlook.size_bytes / self.outlook.records if self.outlook.records else 0.0
        async with Client(**at(share.lanes.bootstrap), client_id=CLIENT_ID) as client:
            while not (await asyncio.wait([waiting], timeout=LOOK_SECONDS))[0]:
                with suppress(KafkaError, SendFailed):
                    have = await noted(client, share.lanes, share.numbers, stable=False)
                    sent = sum(each.sent for each in have.values())
                    sent_at_begin = sent if sent_at_begin is None else sent_at_begin
                    more = before + sent - sent_at_begin - progress.records
                    progress.advance(more, round(more * mean_bytes))


async def _begin(share: Share, *, again: bool) -> dict[int, Noted]:
    return await _at(share.lanes, lambda client: begin(client, share.lanes, share.numbers, share.settled, again=again))


async def _finish(share: Share) -> int:
    return await _at(share.lanes, lambda client: finish(client, share.lanes, share.numbers))


async def _at(lanes: Lanes, question: "Callable[[Client], Awaitable[T]]") -> "T":
    """The result of a function that takes the cluster of the lanes."""
    from horolog.client.wire.client import Client

    async with Client(**at(lanes.bootstrap), client_id=CLIENT_ID) as client:
        return await question(client)


def nothing_there(source: str) -> NotFoundError:
    return NotFoundError(f"{source} has no records in that range, or of that topic")


class NotSent(CommandError):
    """Something would be lost, so nothing was sent."""


def refuse_losses(outlook: Outlook) -> None:
    if outlook.losses:
        raise NotSent(f"{'; '.join(outlook.losses)}; nothing was sent", "change the topic's settings, or use --force")


def unsent(rows: "DataFrame", have: Mapping[int, int]) -> "DataFrame":
    """The rows at or behind these positions, by lane."""
    from pyspark.sql import functions as f

    if not have:
        return rows
    positions = f.create_map(*(f.lit(each) for pair in have.items() for each in pair))
    return rows.where(f.col("position") >= f.coalesce(f.try_element_at(positions, f.col("lane")), f.lit(0)))


def add_sending(parser: argparse.ArgumentParser) -> None:
    """What jobs that send rows take."""
    parser.add_argument(
        "--exactly-once",
        action="store_true",
        help="save the progress in the same transactions: no row is duplicated after a kill",
    )
    parser.add_argument("--again", action="store_true", help="send all records again, including those already sent")
    parser.add_argument(
        "--step",
        type=positive_number,
        default=NOTE_RECORDS,
        metavar="N",
        help=f"records after which progress is saved (default: {NOTE_RECORDS})",
    )
    parser.add_argument("-n", "--dry-run", action="store_true", help="only show what would happen")
    parser.add_argument("--force", action="store_true", help="send even if records would be lost")


def settings_of(arguments: argparse.Namespace) -> Settings:
    rate = getattr(arguments, "rate", None)
    return Settings(arguments.exactly_once, arguments.again, arguments.force, rate, arguments.step)


def carry_out(made: Load, arguments: argparse.Namespace, console: Console) -> Summary | None:
    """What a command does with rows that are ready: say how the topic would treat them, and send them; None for a dry run."""
    show_outlook(made.outlook, made.topic, console)
    for gap in made.gaps:
        console.warn(str(gap))
    if made.sent_before and not arguments.again:
        console.note(f"already sent: {counted(made.sent_before, 'record')}; --again sends them again")
    if arguments.dry_run or (made.outlook.losses and not arguments.force):
        return None
    progress = progress_of(arguments, console, made.outlook.records)
    summary = made.send(settings_of(arguments), progress)
    progress.clear()
    if summary.details["sent_twice"]:
        console.warn(
            f"up to {counted(summary.details['sent_twice'], 'record')} may be duplicates, sent again after a killed run;"
            " --exactly-once avoids them"
        )
    return summary


def show_outlook(outlook: Outlook, topic: str, console: Console) -> None:
    first, last = ("-" if ms is None else console.show_time(ms) for ms in (outlook.first_ms, outlook.last_ms))
    console.note(
        f"{counted(outlook.records, 'record')}, about {outlook.size_bytes / 1e6:,.1f} MB, of {first} to {last}, for topic {topic}"
    )
    for loss in outlook.losses:
        console.warn(loss)


def not_sent(job: str, outlook: Outlook, console: Console, *, dry_run: bool) -> ExitCode:
    """The end of a job that sends nothing: as it was asked to, or because something would be lost."""
    if console.as_json:
        console.json_line({"job": job, "sent": False, **asdict(outlook), "losses": outlook.losses})
    if dry_run:
        console.note("nothing was sent (--dry-run)")
        return ExitCode.ALERT if outlook.losses else ExitCode.OK
    raise CommandError("records would be lost, so nothing was sent", "change the topic's settings, or use --force")


__all__ = [
    "Load",
    "NotSent",
    "Outlook",
    "Settings",
    "Share",
    "TopicRules",
    "add_sending",
    "carry_out",
    "counted_in",
    "counting",
    "counts_of",
    "look_ahead",
    "not_sent",
    "nothing_there",
    "refuse_losses",
    "rules_at",
    "rules_of",
    "settings_of",
    "show_outlook",
    "size_of_row",
    "unsent",
]
