"""Reads what a partition has written and not shipped yet, as runs of a WAL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from horolog.broker.bucket.shipped_partition import ShippedPartition
from horolog.broker.bucket.wal_object import NewRun
from horolog.broker.log.storage import StorageFault
from horolog.protocol.records.head import heads_in


class Taken(NamedTuple):
    """The next runs of a partition, and the offset where they end."""

    runs: Sequence[NewRun]
    end_offset: int
    size_bytes: int


def take(partition: ShippedPartition, number: int, max_bytes: int) -> Taken:
    """The batches from `shipping_end` on, about `max_bytes` of them and at least one, for a number of the WAL.

    Raises StorageFault if the local log does not have them any more.
    """
    runs: list[NewRun] = []
    offset, size_bytes = partition.shipping_end, 0
    while offset < partition.written_end and (not runs or size_bytes < max_bytes):
        run = _next_run(partition, offset, number, max_bytes - size_bytes)
        runs.append(run)
        offset = run.next_offset
        size_bytes += sum(map(len, run.pieces))
    return Taken(runs, offset, size_bytes)


def _next_run(partition: ShippedPartition, offset: int, number: int, max_bytes: int) -> NewRun:
    """Whole batches from an offset on that lie in one segment."""
    end = partition.written_end
    data = partition.reader.read(offset, end, end, max_bytes, at_least_one=True)
    heads = list(heads_in(data))
    topic_id = partition.topic_id
    if not heads or topic_id is None:
        raise StorageFault(f"{partition}: what was written at offset {offset} is no longer there")
    times = [one.max_timestamp for one in heads]
    return NewRun(
        topic_id,
        partition.index,
        partition.leader_epoch,
        number,
        offset,
        heads[-1].last_offset + 1,
        times[0],
        max(times),
        [memoryview(data)[: heads[-1].end]],
    )
