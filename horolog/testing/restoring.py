"""Appends a snapshot's records with their times to a topic, which is created if missing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from horolog.base.readable import counted
from horolog.broker.commit.committer import InternalCommit
from horolog.broker.commit.safety import Failures
from horolog.broker.log.partition import Partition
from horolog.protocol.errors import ErrorCode
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.record import Record
from horolog.testing.reading import topic_named
from horolog.testing.snapshot import Snapshot, SnapshotError

if TYPE_CHECKING:
    from horolog.broker.server.app import Broker

NEWEST_PRODUCE_VERSION = 13
BATCH_RECORDS = 500


async def restore(broker: Broker, snapshot: Snapshot, topic: str) -> int:
    """The number of records appended; raises an append's errors: `Refused`, or a fault of the disk."""
    partitions = _partitions(broker, snapshot, topic)
    now_ms = broker.clock.wall_ms()
    by_partition: dict[int, list[Record]] = {}
    for seen, timestamp_ms in snapshot.records:
        time_ms = now_ms if timestamp_ms is None else timestamp_ms
        mine = by_partition.setdefault(seen.partition, [])
        mine.append(Record(len(mine) % BATCH_RECORDS, time_ms, 0, seen.key, seen.value, seen.headers))
    for index, records in by_partition.items():
        for start in range(0, len(records), BATCH_RECORDS):
            batch = encode_batch(records[start : start + BATCH_RECORDS])
            partitions[index].append(bytes(batch), now_ms, produce_version=NEWEST_PRODUCE_VERSION)
    if by_partition:
        await _written(broker, [partitions[index] for index in by_partition])
    return len(snapshot.records)


def _partitions(broker: Broker, snapshot: Snapshot, name: str) -> Sequence[Partition]:
    if name not in broker.cluster.topics:
        broker.cluster.create_topic(name, snapshot.partitions, {})
    topic = topic_named(broker.cluster, name)
    if topic.partition_count < snapshot.partitions:
        there = counted(topic.partition_count, "partition")
        raise SnapshotError(f"topic {name} has {there}, but the snapshot has {snapshot.partitions}")
    found = [topic.find(index) for index in range(snapshot.partitions)]
    return [one for one in found if not isinstance(one, ErrorCode)]


async def _written(broker: Broker, partitions: Sequence[Partition]) -> None:
    written: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def done(failures: Failures) -> None:
        fault = next(iter(failures.values()), None)
        if fault is None:
            written.set_result(None)
        else:
            written.set_exception(fault)

    broker.committer.submit(InternalCommit(partitions, done, durable=False))
    await written
