"""Sends rows with times of their own to a topic, after asking what the topic would do with those times.

A topic drops records older than its retention within minutes, and refuses times beyond its bounds; a load that does not ask first
loses data silently. `look_ahead` counts, before anything is sent, what would be lost and why.
"""

import argparse
import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from horolog.client.cli.common.arguments import positive_number
from horolog.client.cli.common.console import Console
from horolog.client.cli.common.errors import CommandError
from horolog.client.cli.common.exit_codes import ExitCode
from horolog.client.errors import KafkaError
from horolog.pipeline import headers
from horolog.pipeline.brokers import Where, at
from horolog.pipeline.jobs.common import JobProgress, Summary, progress_of
from horolog.pipeline.jobs.lanes import (
    CLIENT_ID,
    NOTE_RECORDS,
    SENT,
    Lanes,
    Noted,
    Row,
    SendFailed,
    Sent,
    Turn,
    begin,
    by_lane,
    send_batches,
    send_lane,
    sent_twice,
)
from horolog.protocol.records.timestamps import NO_TIMESTAMP

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from horolog.client.admin import Admin
    from horolog.client.client import Client

T = TypeVar("T")

UNLIMITED = -1
OVERHEAD_BYTES = 12
"""About what a record costs besides its key and value."""


@dataclass(frozen=True, slots=True)
class TopicRules:
    """What a topic does with times and with age."""

    retention_ms: int
    retention_bytes: int
    before_max_ms: int
    after_max_ms: int
    log_append_time: bool
    deletes: bool
    partitions: int


@dataclass(frozen=True, slots=True)
class Outlook:
    """What would become of the rows."""

    records: int
    size_bytes: int
    first_ms: int | None
    last_ms: int | None
    expired: int
    """Older than the topic's retention: dropped soon after they are written."""
    too_early: int
    too_late: int
    """Beyond the bounds of `message.timestamp.before.max.ms` and `after.max.ms`: refused."""
    beyond_size: int
    """Bytes by which a partition would exceed `retention.bytes`: the oldest go."""
    overwritten_times: bool
    """The topic puts the time of arrival on everything (LogAppendTime)."""

    @property
    def losses(self) -> list[str]:
        found = []
        if self.expired:
            found.append(
                f"{self.expired:,} records are older than the topic's retention and would be dropped soon after"
            )
        if self.too_early:
            found.append(
                f"{self.too_early:,} records are too old for message.timestamp.before.max.ms and would be refused"
            )
        if self.too_late:
            found.append(
                f"{self.too_late:,} records are too new for message.timestamp.after.max.ms and would be refused"
            )
        if self.beyond_size:
            found.append(f"the oldest {self.beyond_size / 1e6:,.1f} MB would exceed retention.bytes and be dropped")
        if self.overwritten_times and self.records:
            found.append("the topic puts the time of arrival on every record (LogAppendTime): all times would be lost")
        return found


async def rules_of(admin: "Admin", topic: str) -> TopicRules:
    """Of Kafka's names for the bounds the later ones win where both are set, as in the broker."""
    configs = {key: config.value for key, config in (await admin.describe_configs("topic", topic)).items()}

    def number(name: str, default: int) -> int:
        value = configs.get(name)
        return default if value is None else int(value)

    longest = 2**63 - 1
    difference = number("message.timestamp.difference.max.ms", longest)
    return TopicRules(
        retention_ms=number("retention.ms", UNLIMITED),
        retention_bytes=number("retention.bytes", UNLIMITED),
        before_max_ms=min(difference, number("message.timestamp.before.max.ms", longest)),
        after_max_ms=min(difference, number("message.timestamp.after.max.ms", longest)),
        log_append_time=configs.get("message.timestamp.type") == "LogAppendTime",
        deletes="delete" in (configs.get("cleanup.policy") or "delete"),
        partitions=len(await admin.client.topic(topic)),
    )


async def rules_at(bootstrap: Where, topic: str) -> TopicRules:
    from horolog.client.admin import Admin

    async with Admin(**at(bootstrap), client_id=CLIENT_ID) as admin:
        return await rules_of(admin, topic)


def look_ahead(rows: "DataFrame", rules: TopicRules, now_ms: int) -> Outlook:
    """Count, with Spark, what the rules would do to these rows."""
    from pyspark.sql import functions as f

    ms = f.nullif(f.unix_millis("timestamp"), f.lit(NO_TIMESTAMP))  # none has no age, and no bound refuses it
    length = f.coalesce(f.length("key"), f.lit(0)) + f.coalesce(f.length("value"), f.lit(0)) + OVERHEAD_BYTES
    own_times = not rules.log_append_time
    retained = rules.deletes and rules.retention_ms != UNLIMITED

    def how_many(condition: Any) -> Any:
        return f.sum(f.coalesce(condition, f.lit(False)).cast("long"))

    row = rows.agg(
        f.count("*").alias("records"),
        f.coalesce(f.sum(length.cast("long")), f.lit(0)).alias("size_bytes"),
        f.min(ms).alias("first_ms"),
        f.max(ms).alias("last_ms"),
        how_many(f.lit(retained and own_times) & (ms < now_ms - rules.retention_ms)).alias("expired"),
        how_many(f.lit(own_times) & (ms < now_ms - rules.before_max_ms)).alias("too_early"),
        how_many(f.lit(own_times) & (ms - now_ms > rules.after_max_ms)).alias("too_late"),
    ).collect()[0]
    room = rules.retention_bytes * rules.partitions
    bounded = rules.deletes and rules.retention_bytes != UNLIMITED
    return Outlook(
        records=row["records"],
        size_bytes=row["size_bytes"],
        first_ms=row["first_ms"],
        last_ms=row["last_ms"],
        expired=row["expired"] or 0,
        too_early=row["too_early"] or 0,
        too_late=row["too_late"] or 0,
        beyond_size=max(0, row["size_bytes"] - room) if bounded else 0,
        overwritten_times=rules.log_append_time,
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """How rows are sent."""

    exactly_once: bool = False
    again: bool = False
    """All of it anew, whatever was sent before."""
    force: bool = False
    rate: int | None = None
    step_records: int = NOTE_RECORDS


@dataclass(slots=True)
class Load:
    """Rows that are ready to be sent (columns `lanes.COLUMNS`, those of a lane together and in order), and what would become of them."""

    job: str
    rows: "DataFrame"
    lanes: Lanes
    numbers: range
    settled: dict[str, Any]
    outlook: Outlook
    sent_before: int = 0

    def send(self, settings: Settings, progress: JobProgress | None = None) -> Summary:
        """Send what was not sent before: as fast as Spark's tasks can, or at a rate through this process."""
        began = time.monotonic()
        summary = Summary(self.job, details={"topic": self.lanes.topic})
        asyncio.run(
            self._ask(lambda client: begin(client, self.lanes, self.numbers, self.settled, again=settings.again))
        )
        for done in self._sent(settings):
            summary.records += done.records
            summary.bytes += done.size_bytes
            if progress is not None:
                progress.advance(done.records, done.size_bytes, done.last_ms if done.last_ms >= 0 else None)
        summary.seconds = time.monotonic() - began
        summary.details["sent_before"] = 0 if settings.again else self.sent_before
        twice = asyncio.run(self._ask(lambda client: sent_twice(client, self.lanes, self.numbers)))
        summary.details["sent_twice"] = twice
        return summary

    async def _ask(self, question: "Callable[[Client], Awaitable[T]]") -> "T":
        from horolog.client.client import Client

        async with Client(**at(self.lanes.bootstrap), client_id=CLIENT_ID) as client:
            return await question(client)

    def _sent(self, settings: Settings) -> Iterator[Sent]:
        lanes = self.lanes
        if settings.rate is None:
            done = headers.without_nulls(self.rows).mapInArrow(lambda batches: send_batches(lanes, batches), SENT)
            yield from (Sent(*row) for row in done.toLocalIterator(prefetchPartitions=True))
            return
        turn = Turn(settings.rate)
        rows = (Row(*row) for row in self.rows.toLocalIterator(prefetchPartitions=True))
        for lane, members in by_lane(rows):
            try:
                yield asyncio.run(send_lane(lanes, lane, members, turn))
            except (SendFailed, KafkaError) as error:
                raise CommandError(str(error)) from error


class NotSent(CommandError):
    """Something would be lost, so nothing was sent."""


def refuse_losses(outlook: Outlook) -> None:
    if outlook.losses:
        raise NotSent(f"{'; '.join(outlook.losses)}; nothing was sent", "change the topic's settings, or say --force")


def unsent(rows: "DataFrame", have: Mapping[int, Noted]) -> "DataFrame":
    """The rows that were not noted to be sent."""
    from pyspark.sql import functions as f

    if not have:
        return rows
    positions = f.create_map(*(f.lit(each) for lane, noted in have.items() for each in (lane, noted.position)))
    return rows.where(f.col("position") >= f.coalesce(f.try_element_at(positions, f.col("lane")), f.lit(0)))


def add_sending(parser: argparse.ArgumentParser) -> None:
    """What jobs that send rows take."""
    parser.add_argument(
        "--exactly-once",
        action="store_true",
        help="in transactions with the progress: after a kill no row is there twice",
    )
    parser.add_argument("--again", action="store_true", help="send all of it anew, whatever was sent before")
    parser.add_argument(
        "--step",
        type=positive_number,
        default=NOTE_RECORDS,
        metavar="N",
        help=f"records between two notes of the progress ({NOTE_RECORDS})",
    )
    parser.add_argument("-n", "--dry-run", action="store_true", help="only say what would happen")
    parser.add_argument("--force", action="store_true", help="send although something would be lost")


def settings_of(arguments: argparse.Namespace) -> Settings:
    rate = getattr(arguments, "rate", None)
    return Settings(arguments.exactly_once, arguments.again, arguments.force, rate, arguments.step)


def carry_out(made: Load, arguments: argparse.Namespace, console: Console) -> Summary | None:
    """What a command does with rows that are ready: say what would become of them, and send them; None for a dry run."""
    show_outlook(made.outlook, made.lanes.topic, console)
    if made.sent_before and not arguments.again:
        console.note(f"{made.sent_before:,} records were sent before; --again would send them again")
    if arguments.dry_run or (made.outlook.losses and not arguments.force):
        return None
    progress = progress_of(arguments, console, made.outlook.records)
    summary = made.send(settings_of(arguments), progress)
    progress.clear()
    if summary.details["sent_twice"]:
        console.warn(
            f"{summary.details['sent_twice']:,} records at most are there twice, sent again after a run that was killed;"
            " --exactly-once leaves none"
        )
    return summary


def show_outlook(outlook: Outlook, topic: str, console: Console) -> None:
    first, last = ("-" if ms is None else console.show_time(ms) for ms in (outlook.first_ms, outlook.last_ms))
    console.note(
        f"{outlook.records:,} records, about {outlook.size_bytes / 1e6:,.1f} MB, of {first} to {last}, for topic {topic}"
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
    raise CommandError("something would be lost, so nothing was sent", "change the topic's settings, or say --force")
