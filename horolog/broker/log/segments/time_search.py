"""Looks up times in a partition: skips segments by their largest timestamp, and searches the first one that reaches the time.

The first segment that reaches a time is found by binary search, so the number of segments plays no part. If nothing is found in
it, because the log's start or end hides the record, the search goes on to the next.
"""

from bisect import bisect_left
from itertools import accumulate

from horolog.broker.log.segments import lookup
from horolog.broker.log.segments.batch_times import TimesCache
from horolog.broker.log.segments.lookup import Found
from horolog.broker.log.segments.segment import Segment


class TimeSearch:
    """Searches the segments of one partition. Call `forget` whenever segments are added or removed."""

    __slots__ = ("_cache", "_highs", "_segments")

    def __init__(self, segments: list[Segment], cache: TimesCache) -> None:
        self._segments = segments
        self._cache = cache
        self._highs: list[int] | None = None

    def forget(self) -> None:
        self._highs = None

    def first_at_or_after(self, timestamp: int, start_offset: int, end_offset: int) -> Found | None:
        """The first record not before a time, in the offsets from `start_offset` up to but not including `end_offset`."""
        segments = self._segments
        for number in range(self._first_reaching(timestamp), len(segments)):
            segment = segments[number]
            if segment.base_offset >= end_offset:
                break
            if segment.max_timestamp >= timestamp and segment.next_offset > start_offset:
                found = lookup.first_in_segment(segment, timestamp, start_offset, end_offset, self._cache)
                if found is not None:
                    return found
        return None

    def _first_reaching(self, timestamp: int) -> int:
        """The number of the first segment whose largest timestamp is not before the given one."""
        highs = self._running_highs()
        return bisect_left(highs, timestamp) if highs else 0

    def _running_highs(self) -> list[int]:
        """For each complete segment the largest timestamp up to its end."""
        highs = self._highs
        if highs is None:
            complete = self._segments[:-1]
            highs = self._highs = list(accumulate((one.max_timestamp for one in complete), max))
        return highs

    def largest(self, start_offset: int, end_offset: int) -> Found | None:
        """The first record with the largest timestamp between two offsets."""
        segments = self._segments
        if segments[0].base_offset >= start_offset and segments[-1].next_offset <= end_offset:
            largest = max((segments[-1].max_timestamp, *self._running_highs()[-1:]))
        else:
            largest = max(self._largest_in(segment, start_offset, end_offset) for segment in segments)
        return self.first_at_or_after(largest, start_offset, end_offset) if largest >= 0 else None

    @staticmethod
    def _largest_in(segment: Segment, start_offset: int, end_offset: int) -> int:
        if segment.base_offset >= start_offset and segment.next_offset <= end_offset:
            return segment.max_timestamp
        return lookup.largest_in_segment(segment, start_offset, end_offset)

    def newest_before(
        self, timestamp: int, max_count: int, start_offset: int, end: tuple[int, int] | None
    ) -> list[int]:
        """The base offsets of segments last written at or before a time, newest first: -1 means all, -2 the earliest.

        `end` is an offset and a time that count as a segment of their own.
        """
        segments = self._segments[:1] if timestamp == -2 else self._segments
        offsets = [max(start_offset, one.base_offset) for one in segments]
        if timestamp != -2 and end is not None:
            offsets.append(end[0])
        if timestamp not in (-1, -2):
            del offsets[self._count_before(timestamp, end) :]
        return offsets[: -max_count - 1 : -1]

    def _count_before(self, timestamp: int, end: tuple[int, int] | None) -> int:
        """How many places there are up to the newest that was last written at or before a time; only newer ones are asked."""
        count = len(self._segments)
        if end is not None and end[1] <= timestamp:
            return count + 1
        while count and self._segments[count - 1].files.modified_ms() > timestamp:
            count -= 1
        return count
