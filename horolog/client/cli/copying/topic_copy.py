"""Copies the records of a topic from one time to another into another topic, as they lie in their partitions.

Keys, values, headers and times are those of the source. Records go to the partition with the same number, or, if the target has
fewer partitions or the caller wants it, to the one that their key chooses.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from horolog.base.readable import counted
from horolog.client.admin.admin import Admin
from horolog.client.admin.admin_topics import NewTopic
from horolog.client.moments.look_ahead import DEFAULT, TO_THE_END
from horolog.client.moments.moment import merge
from horolog.client.producing.producer import Producer
from horolog.client.values.errors import KafkaError
from horolog.client.values.times import LATEST
from horolog.commands.console import Console
from horolog.commands.errors import CommandError, UsageError
from horolog.commands.exit_codes import ExitCode
from horolog.commands.online.connecting import admin_of, partitions_of, why_no_topic
from horolog.commands.online.decoding import lens_of
from horolog.commands.online.looking_ahead import tell

if TYPE_CHECKING:
    from horolog.client.moments.moment import MergedRecords
    from horolog.client.values.time_ranges import TimeRange
    from horolog.client.values.types import ConsumerRecord, Sent, TopicPartition
    from horolog.client.wire.cluster_view import TopicView
    from horolog.commands.online.decoding import Lens

KEEP, NOW = "keep", "now"
PATIENCE_MS = 30_000
"""The minimum time for retrying a record if the broker goes away."""
OWN = 1
"""The source of a setting that the topic itself has."""


@dataclass(slots=True)
class Copying:
    """One run: where the records go, and how far it is. Without a producer they are only counted."""

    target: str
    producer: Producer | None
    by_key: bool
    times: str
    lens: Lens | None
    most: int | None
    copied: int = 0
    copied_bytes: int = 0
    left_out: int = 0
    error: BaseException | None = None

    @property
    def is_over(self) -> bool:
        return self.error is not None or (self.most is not None and self.copied + self._under_way >= self.most)

    _under_way: int = 0

    async def take(self, record: ConsumerRecord) -> None:
        """Copy a record, unless a condition leaves it out."""
        if self.lens is not None and not (await self.lens.decoded(record))[0]:
            self.left_out += 1
            return
        size_bytes = len(record.key or b"") + len(record.value or b"")
        if self.producer is None:
            self._done(size_bytes)
            return
        self._under_way += 1
        keeps = self.times == KEEP and record.timestamp_ms >= 0
        future = await self.producer.send(
            self.target,
            record.value,
            key=record.key,
            headers=record.headers,
            timestamp_ms=record.timestamp_ms if keeps else None,
            partition=None if self.by_key else record.partition,
        )
        future.add_done_callback(lambda done: self._settle(done, size_bytes))

    def _settle(self, done: asyncio.Future[Sent], size_bytes: int) -> None:
        self._under_way -= 1
        error = asyncio.CancelledError() if done.cancelled() else done.exception()
        if error is None:
            self._done(size_bytes)
        else:
            self.error = self.error or error

    def _done(self, size_bytes: int) -> None:
        self.copied += 1
        self.copied_bytes += size_bytes


async def run(arguments: argparse.Namespace, console: Console) -> ExitCode:
    if arguments.source == arguments.target:
        raise UsageError("the source and the target are the same topic", "name another target")
    times = console.range(arguments.since, arguments.until, length_ms=arguments.length, ends=True)
    lens = lens_of(arguments, console)
    began = time.monotonic()
    async with admin_of(arguments) as admin:
        places = await partitions_of(admin.client, arguments.source, arguments.partition)
        source = (await admin.client.metadata([arguments.source])).topics[arguments.source]
        target = await _target(admin, arguments, source)
        partition_count = len(source.partitions) if target is None else len(target.partitions)
        by_key = arguments.by_key or partition_count <= max(place.partition for place in places)
        if by_key and not arguments.by_key:
            console.note(
                f"{arguments.target} has only {counted(partition_count, 'partition')}, so keys choose the partitions"
            )
        copying = Copying(arguments.target, None, by_key, arguments.times, lens, arguments.max)
        moment = _records(admin, places, times, arguments)
        if arguments.dry_run:
            await _copy(moment, copying, console)
        else:
            await _produce(admin, moment, copying, arguments, console)
    tell(moment.report, console)
    if lens is not None:
        lens.report()
    return _report(copying, arguments, target is None, time.monotonic() - began, console)


async def _target(admin: Admin, arguments: argparse.Namespace, source: TopicView) -> TopicView | None:
    """The target as it is; one that does not exist is created with the source's partitions and settings, and None returned."""
    name = arguments.target
    known = (await admin.client.metadata([name], create=False)).topics.get(name)
    if known is not None and not known.error_code:
        return known
    if arguments.no_create:
        raise await why_no_topic(admin.client, name)
    if not arguments.dry_run:
        configs = await admin.describe_configs("topic", arguments.source)
        own = {key: config.value for key, config in configs.items() if config.source == OWN}
        await admin.create_topics([NewTopic(name, len(source.partitions), -1, own)])
        await admin.client.topic(name)
    return None


def _records(
    admin: Admin, places: list[TopicPartition], times: TimeRange, arguments: argparse.Namespace
) -> MergedRecords:
    """Partition by partition, in log order; late ones as far as they are looked for."""
    starts_at_end = times.since is not None and times.since.ms == LATEST
    return merge(
        admin.client,
        [] if starts_at_end else places,
        times.since_ms,
        times.until_ms,
        isolation=arguments.isolation,
        in_order=False,
        look_ahead=TO_THE_END if arguments.late else arguments.look_ahead or DEFAULT,
    )


async def _produce(
    admin: Admin, moment: MergedRecords, copying: Copying, arguments: argparse.Namespace, console: Console
) -> None:
    async with Producer(
        admin.client,
        compression=None if arguments.codec == "none" else arguments.codec,
        delivery_timeout_ms=max(arguments.timeout, PATIENCE_MS),
        on_expired=lambda expired: console.warn(expired.sentence(console.show_time)),
    ) as producer:
        copying.producer = producer
        try:
            await _copy(moment, copying, console)
        except KafkaError as error:
            copying.error = copying.error or error
        await producer.flush()


async def _copy(moment: MergedRecords, copying: Copying, console: Console) -> None:
    with console.progress("records") as progress:
        async with moment:
            async for placed in moment:
                await copying.take(placed.record)
                progress.advance()
                if copying.is_over:
                    return


def _report(
    copying: Copying, arguments: argparse.Namespace, is_new: bool, seconds: float, console: Console
) -> ExitCode:
    if console.as_json:
        console.json(
            {
                "source": arguments.source,
                "target": arguments.target,
                "created": is_new and not arguments.dry_run,
                "copied": copying.copied,
                "bytes": copying.copied_bytes,
                "left_out": copying.left_out,
                "seconds": round(seconds, 3),
                "error": None if copying.error is None else str(copying.error),
            }
        )
    else:
        verb = "would be copied" if arguments.dry_run else "copied"
        more = f", {copying.left_out} left out" if copying.left_out else ""
        console.print(f"{counted(copying.copied, 'record')} of {arguments.source} {verb} to {arguments.target}{more}")
    if copying.error is not None:
        raise CommandError(f"{arguments.target} refused a record: {copying.error}", "nothing more was copied")
    return ExitCode.OK
