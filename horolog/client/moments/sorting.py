"""Sorts records by time, partition and offset while holding a bounded number of them; pure."""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from horolog.client.values.types import ConsumerRecord

OVERHEAD_BYTES = 200
"""The rough size of a record in memory, besides its key and value."""


class Placed(NamedTuple):
    """A record, and how far its time is behind the largest time before it in its partition."""

    record: ConsumerRecord
    late_ms: int = 0


@dataclass(frozen=True, slots=True)
class Hold:
    """How much may be held for sorting: this many records or bytes, whichever is reached first."""

    records: int = 100_000
    size_bytes: int = 64 << 20


class Sorter:
    """Returns the earliest held record. A record that arrives after a later one was returned counts as out of place."""

    def __init__(self, hold: Hold) -> None:
        self._hold = hold
        self._heap: list[tuple[int, str, int, int, int, Placed]] = []
        self._size_bytes = 0
        self._arrived = 0
        self._last: tuple[int, str, int, int] = (-1, "", -1, -1)
        self.out_of_place = 0

    def __repr__(self) -> str:
        return f"<Sorter of {len(self._heap)} records>"

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def is_full(self) -> bool:
        return len(self._heap) >= self._hold.records or self._size_bytes >= self._hold.size_bytes

    def put_all(self, some: Iterable[Placed]) -> None:
        for placed in some:
            self.put(placed)

    def put(self, placed: Placed) -> None:
        record = placed.record
        self._arrived += 1
        self._size_bytes += _size(record)
        # The number breaks ties, which only a log that was truncated and rewritten could have.
        entry = (record.timestamp_ms, record.topic, record.partition, record.offset, self._arrived, placed)
        heapq.heappush(self._heap, entry)

    def take(self) -> Placed:
        """The earliest record."""
        time_ms, topic, partition, offset, _, placed = heapq.heappop(self._heap)
        self._size_bytes -= _size(placed.record)
        order = (time_ms, topic, partition, offset)
        if order < self._last:
            self.out_of_place += 1
        else:
            self._last = order
        return placed

    @property
    def earliest_ms(self) -> int | None:
        return self._heap[0][0] if self._heap else None


def _size(record: ConsumerRecord) -> int:
    return OVERHEAD_BYTES + len(record.key or b"") + len(record.value or b"")
