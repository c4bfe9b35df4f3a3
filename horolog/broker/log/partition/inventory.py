"""Lists the contents of a partition, segment by segment, and those before a time: from memory and indexes, without reading records.

An inventory reflects the moment at which it was begun, and is taken part by part: segments may be added and removed meanwhile. Segments
before the start of the log that wait for their deletion count with all their bytes.
"""

from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from horolog.broker.log.partition.partition import Partition
from horolog.broker.log.segments import Bracket, Segment, bracket, indexes_of
from horolog.broker.log.storage import StorageFault


class HeldSegment(NamedTuple):
    """One segment. Times are -1 if no record has one."""

    base_offset: int
    next_offset: int
    bytes: int
    first_ms: int
    """The largest time of its first batch."""
    largest_ms: int
    largest_offset: int
    """The offset of the largest time: that of the record, or of the last one of its batch."""
    created_ms: int
    modified_ms: int | None
    """When it was last written, if its times do not tell its age: there are none, or they lie in the future."""
    future: bool
    """One of its records is later than the clock."""
    late: bool
    """Its first batch is earlier than a record of a previous segment."""


class Inventory:
    """The inventory of one partition; `before` can be called once `segments` is exhausted."""

    __slots__ = ("_active", "_ends", "_highs", "_segments", "_starts", "high_watermark", "log_start_offset")

    def __init__(self, partition: Partition) -> None:
        self._segments = list(partition.segments)
        active = self._segments[-1]
        self.log_start_offset = partition.log_start_offset
        self.high_watermark = partition.high_watermark
        self._active = active.size_bytes, active.first_timestamp, active.max_timestamp, active.max_timestamp_offset
        self._highs: list[int] = []
        """The largest time up to the end of each segment."""
        self._starts: list[int] = [0]
        """The position of each segment if all were in one file; the last entry is the end."""
        self._ends: list[int] = []

    def __repr__(self) -> str:
        return f"<Inventory of {len(self._segments)} segments, {len(self._ends)} of them seen>"

    def segments(self, now_ms: int) -> Iterator[HeldSegment]:
        """In order, the active one last."""
        high, last = -1, len(self._segments) - 1
        for number, one in enumerate(self._segments):
            facts = one.size_bytes, one.first_timestamp, one.max_timestamp, one.max_timestamp_offset
            size_bytes, first_ms, largest_ms, largest_offset = self._active if number == last else facts
            end = self.high_watermark if number == last else self._segments[number + 1].base_offset
            is_late = 0 <= first_ms < high or 0 <= largest_ms < high
            future = largest_ms > now_ms
            held = HeldSegment(
                one.base_offset,
                end,
                size_bytes,
                first_ms,
                largest_ms,
                largest_offset,
                one.created_ms,
                _modified_ms(one) if future or largest_ms < 0 else None,
                future,
                is_late,
            )
            high = max(high, largest_ms)
            self._highs.append(high)
            self._starts.append(self._starts[-1] + size_bytes)
            self._ends.append(end)
            yield held

    def before(self, timestamp: int) -> Bracket:
        """The bracket of the first record at or after a time; both ends are the log's end if there is none."""
        number = bisect_left(self._highs, timestamp)
        if number == len(self._highs):
            return Bracket(self.high_watermark, self._starts[-1], self.high_watermark, self._starts[-1])
        segment, start = self._segments[number], self._starts[number]
        base_offset = segment.base_offset
        end = self._ends[number] - base_offset, self._starts[number + 1] - start
        found = Bracket(0, 0, *end)
        if not segment.removed:
            try:
                offsets, times = indexes_of(segment)
                found = bracket(offsets.entries, times.entries, timestamp, end)
            except StorageFault:  # it is somewhere in that segment, which a worker reads again
                pass
        return Bracket(
            base_offset + found.from_offset,
            start + found.from_bytes,
            base_offset + found.to_offset,
            start + found.to_bytes,
        )


def _modified_ms(segment: Segment) -> int | None:
    """None if its file is gone."""
    try:
        return segment.files.modified_ms()
    except StorageFault:
        return None
