"""Sends rows with times of their own to a topic, after asking what the topic would do with those times.

A topic drops what is older than its retention within minutes, and refuses times beyond its bounds; a load that does not ask first
loses data silently. `look_ahead` counts, before anything is sent, what would be lost and why.
"""

import asyncio
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from client.cli.common.console import Console
from client.cli.common.errors import CommandError
from client.cli.common.exit_codes import ExitCode
from pipeline.jobs.common import JobProgress, Summary

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from client.admin import Admin

UNLIMITED = -1
SENT_COLUMNS = ("key", "value", "headers", "timestamp")
OVERHEAD_BYTES = 12
"""About what a record costs besides its key and value."""
PREFETCHED_SECONDS = 0.05


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


def look_ahead(rows: "DataFrame", rules: TopicRules, now_ms: int) -> Outlook:
    """Count, with Spark, what the rules would do to these rows."""
    from pyspark.sql import functions as f

    ms = f.unix_millis("timestamp")
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


def send(
    rows: "DataFrame", bootstrap: str, topic: str, outlook: Outlook, progress: JobProgress, rate: int | None
) -> Summary:
    """Write the rows: as fast as Spark's tasks can, or at `rate` records per second through this process."""
    began = time.monotonic()
    if rate is None:
        writer = rows.write.format("horolog").mode("append").option("kafka.bootstrap.servers", bootstrap)
        writer.option("topic", topic).option("includeHeaders", "true").save()
        progress.advance(outlook.records, outlook.size_bytes, outlook.last_ms)
        sent = outlook.records
    else:
        sent = asyncio.run(_throttled(rows, bootstrap, topic, progress, rate))
    return Summary("", sent, outlook.size_bytes, time.monotonic() - began)


async def _throttled(rows: "DataFrame", bootstrap: str, topic: str, progress: JobProgress, rate: int) -> int:
    """Record after record in the order of the rows, none before its turn; the first refusal ends it."""
    from client.errors import KafkaError
    from client.producer import Producer

    began = time.monotonic()
    sent = 0
    failures: list[BaseException] = []

    def settle(done: "asyncio.Future[Any]") -> None:
        error = done.exception()
        if error is not None:
            failures.append(error)

    async with Producer(bootstrap, client_id="horolog-pipeline") as producer:
        for row in rows.toLocalIterator(prefetchPartitions=True):
            early = began + sent / rate - time.monotonic()
            if early > PREFETCHED_SECONDS:
                await asyncio.sleep(early)
            if failures:
                break
            future = await producer.send(
                topic,
                None if row["value"] is None else bytes(row["value"]),
                None if row["key"] is None else bytes(row["key"]),
                [(each["key"].encode(), _bytes(each["value"])) for each in row["headers"] or ()],
                None if row["timestamp_ms"] is None else row["timestamp_ms"],
                row["partition"],
            )
            future.add_done_callback(settle)
            sent += 1
            progress.advance(1, 0, row["timestamp_ms"])
        await producer.flush()
    if failures:
        raise failures[0] if isinstance(failures[0], KafkaError) else CommandError(str(failures[0]))
    return sent


def _bytes(data: Any) -> bytes | None:
    return None if data is None else bytes(data)


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
        console.json({"job": job, "sent": False, **asdict(outlook), "losses": outlook.losses})
    if dry_run:
        console.note("nothing was sent (--dry-run)")
        return ExitCode.ALERT if outlook.losses else ExitCode.OK
    raise CommandError("something would be lost, so nothing was sent", "change the topic's settings, or say --force")
