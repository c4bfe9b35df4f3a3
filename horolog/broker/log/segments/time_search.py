"""Looks up times in a partition: passes over segments by their largest timestamp alone, and searches the first that reaches.

The first segment that reaches a time is found by binary search, so the number of segments plays no part. When nothing is found in
it, because what it holds there is hidden by the log's start or end, the search goes on to the next.
"""

from bisect import bisect_left
from itertools import accumulate

from horolog.broker.log.segments import lookup
from horolog.broker.log.segments.batch_times import TimesCache
from horolog.broker.log.segments.lookup import Found
from horolog.broker.log.segments.segment import Segment


class TimeSearch:
    """Over the segments of one partition. `forget` must follow whenever segments come or go."""

    __slots__ = ("_cache", "_highs", "_segments")

    def __init__(self, segments: list[Segment], cache: TimesCache) -> None:
        self._segments = segments
        self._cache = cache
        self._highs: list[int] | None = None

    def forget(self) -> None:
        self._highs = None

    def first_at_or_after(self, timestamp: int, start_offset: int, end_offset: int) -> Found | None:
        """The first record not before a time, among the offsets from `start_offset` up to but not including `end_offset`."""
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
        highs = self._highs
        if highs is None:
            complete = self._segments[:-1]
            highs = self._highs = list(accumulate((one.max_timestamp for one in complete), max))
        return bisect_left(highs, timestamp)

    def largest(self, start_offset: int, end_offset: int) -> Found | None:
        """The first record with the largest timestamp between two offsets."""
        largest = max((self._largest_in(segment, start_offset, end_offset) for segment in self._segments), default=-1)
        return self.first_at_or_after(largest, start_offset, end_offset) if largest >= 0 else None

    @staticmethod
    def _largest_in(segment: Segment, start_offset: int, end_offset: int) -> int:
        if segment.base_offset >= start_offset and segment.next_offset <= end_offset:
            return segment.max_timestamp
        return lookup.largest_in_segment(segment, start_offset, end_offset)

    def newest_before(
        self, timestamp: int, max_count: int, start_offset: int, end: tuple[int, int] | None
    ) -> list[int]:
        """Where segments begin that were last written at or before a time, newest first: -1 asks for all, -2 for the earliest.

        `end` is an offset and a time that count as a segment of their own.
        """
        places = [(max(start_offset, one.base_offset), one.files.modified_ms()) for one in self._segments]
        if end is not None:
            places.append(end)
        if timestamp == -2:
            places = places[:1]
        elif timestamp != -1:
            while places and places[-1][1] > timestamp:
                places.pop()
        return [offset for offset, _ in reversed(places)][:max_count]
