"""Collects records into batches and decides which may be sent: pure; the caller passes the time in.

A partition has at most one batch in flight, which alone keeps order and sequence numbers right; meanwhile its next batches
fill up. A batch keeps its number when it is retried or split: a flush waits for all batches up to the newest number.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any

from horolog.client.values.types import TopicPartition
from horolog.protocol.records.record import Header

RECORD_OVERHEAD_BYTES = 24  # a record's size besides its key, value and headers: an upper bound, and about the average
HEADER_OVERHEAD_BYTES = 10


class Pending:
    """A record that waits to be written; `future` gets its outcome."""

    __slots__ = ("future", "headers", "key", "partition", "size_bytes", "timestamp_ms", "topic", "value")

    def __init__(
        self,
        partition: TopicPartition,
        key: bytes | None,
        value: bytes | None,
        headers: tuple[Header, ...],
        timestamp_ms: int,
        size_bytes: int,
        future: Any,
    ) -> None:
        self.topic, self.partition = partition
        self.key = key
        self.value = value
        self.headers = headers
        self.timestamp_ms = timestamp_ms
        self.future = future
        self.size_bytes = size_bytes

    def __repr__(self) -> str:
        return f"<record for {self.topic}-{self.partition}, key {self.key!r}, time {self.timestamp_ms}>"


def size_of(key: bytes | None, value: bytes | None, headers: tuple[Header, ...]) -> int:
    """A record's size before compression; an estimate on the high side."""
    size = RECORD_OVERHEAD_BYTES + len(key or b"") + len(value or b"")
    for name, content in headers:
        size += HEADER_OVERHEAD_BYTES + len(name) + len(content or b"")
    return size


class Batch:
    __slots__ = ("attempts", "created_at", "number", "partition", "producer", "records", "retry_at", "size_bytes")

    def __init__(self, number: int, partition: TopicPartition, created_at: float) -> None:
        self.number = number
        self.partition = partition
        self.created_at = created_at  # seconds of the monotonic clock
        self.records: list[Pending] = []
        self.size_bytes = 0
        self.attempts = 0
        self.retry_at = 0.0
        self.producer: tuple[int, int, int] | None = None  # id, epoch and base sequence, kept for retries

    def add(self, record: Pending) -> None:
        self.records.append(record)
        self.size_bytes += record.size_bytes

    def part(self, records: Sequence[Pending]) -> "Batch":
        """Some of its records as a separate batch, without a producer sequence yet."""
        made = Batch(self.number, self.partition, self.created_at)
        made.attempts = self.attempts
        for record in records:
            made.add(record)
        return made


class Accumulator:
    def __init__(self, batch_bytes: int, linger_ms: float, buffer_bytes: int) -> None:
        self.used_bytes = 0
        self._batch_bytes = batch_bytes
        self._linger_seconds = linger_ms / 1000
        self._buffer_bytes = buffer_bytes
        self._queues: dict[TopicPartition, deque[Batch]] = {}
        self._on_their_way: dict[TopicPartition, Batch] = {}
        self._newest = 0
        self._flushed_up_to = 0

    def has_room(self, size_bytes: int) -> bool:
        """A record larger than the whole buffer fits only into an empty buffer."""
        return not self.used_bytes or self.used_bytes + size_bytes <= self._buffer_bytes

    def has_open_batch(self, partition: TopicPartition, size_bytes: int) -> bool:
        """Whether a record of that size would fit into a batch already begun."""
        queue = self._queues.get(partition)
        return queue is not None and bool(queue) and self._fits(queue[-1], size_bytes)

    def _fits(self, batch: Batch, size_bytes: int) -> bool:
        return not batch.attempts and batch.size_bytes + size_bytes <= self._batch_bytes

    def append(self, partition: TopicPartition, record: Pending, now: float) -> bool:
        """Add a record; True if it began or filled a batch: the sender then has to check."""
        queue = self._queues.get(partition)
        if queue is None:
            queue = self._queues[partition] = deque()
        begins = not queue or not self._fits(queue[-1], record.size_bytes)
        if begins:
            self._newest += 1
            queue.append(Batch(self._newest, partition, now))
        batch = queue[-1]
        batch.records.append(record)
        batch.size_bytes += record.size_bytes
        self.used_bytes += record.size_bytes
        return begins or batch.size_bytes >= self._batch_bytes

    def flush(self) -> int:
        """Make all current batches due. Returns the newest number: the flush is done when `oldest` is above it."""
        self._flushed_up_to = self._newest
        return self._newest

    def oldest(self) -> int | None:
        """The smallest number of an unsettled batch."""
        numbers = [queue[0].number for queue in self._queues.values() if queue]
        numbers += [batch.number for batch in self._on_their_way.values()]
        return min(numbers, default=None)

    def ready(self, now: float) -> list[TopicPartition]:
        """Partitions whose first batch may go now: full, old enough, flushed, or followed by another."""
        full = self.used_bytes >= self._buffer_bytes
        return [
            partition
            for partition, queue in self._queues.items()
            if queue and partition not in self._on_their_way and (full or self._is_due(queue, now))
            if queue[0].retry_at <= now
        ]

    def _is_due(self, queue: deque[Batch], now: float) -> bool:
        first = queue[0]
        return (
            len(queue) > 1
            or first.attempts > 0
            or first.number <= self._flushed_up_to
            or first.size_bytes >= self._batch_bytes
            or now - first.created_at >= self._linger_seconds
        )

    def next_due_at(self) -> float | None:
        """When the next batch that waits only for time becomes ready; None if there is none."""
        times = [
            max(queue[0].retry_at, queue[0].created_at + self._linger_seconds if not queue[0].attempts else 0.0)
            for partition, queue in self._queues.items()
            if queue and partition not in self._on_their_way
        ]
        return min(times, default=None)

    def take(self, partition: TopicPartition) -> Batch:
        """The partition's first batch, in flight from now on."""
        batch = self._queues[partition].popleft()
        self._on_their_way[partition] = batch
        return batch

    def is_on_its_way(self, batch: Batch) -> bool:
        return self._on_their_way.get(batch.partition) is batch

    def settle(self, batch: Batch) -> None:
        """The batch in flight was written, or has failed."""
        del self._on_their_way[batch.partition]
        self.used_bytes -= batch.size_bytes
        if not self._queues[batch.partition]:
            del self._queues[batch.partition]

    def put_back(self, batch: Batch, parts: Sequence[Batch]) -> None:
        """Retry the batch in flight as these parts, ahead of the rest of its partition."""
        del self._on_their_way[batch.partition]
        self._queues[batch.partition].extendleft(reversed(parts))
        self.used_bytes += sum(part.size_bytes for part in parts) - batch.size_bytes

    def drop_older(self, partition: TopicPartition, created_until: float) -> list[Batch]:
        """Drop the partition's waiting batches that began no later than `created_until`; returns them."""
        queue = self._queues[partition]
        dropped = []
        while queue and queue[0].created_at <= created_until:
            dropped.append(queue.popleft())
        self.used_bytes -= sum(batch.size_bytes for batch in dropped)
        return dropped

    def abandon(self) -> list[Batch]:
        """Drop all batches, including those in flight; returns them."""
        on_their_way = list(self._on_their_way.values())
        self._on_their_way.clear()
        self.used_bytes -= sum(batch.size_bytes for batch in on_their_way)
        return on_their_way + self.drop_all()

    def drop_all(self) -> list[Batch]:
        """Drop all waiting batches but not those in flight; returns them."""
        dropped = [batch for queue in self._queues.values() for batch in queue]
        for queue in self._queues.values():
            queue.clear()
        for partition in [partition for partition in self._queues if partition not in self._on_their_way]:
            del self._queues[partition]
        self.used_bytes -= sum(batch.size_bytes for batch in dropped)
        return dropped
