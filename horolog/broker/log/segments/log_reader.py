"""Reads a slice of a segment from an offset of a partition, and remembers where each reader will go on."""

import sys

from horolog.broker.log.segments import reader
from horolog.broker.log.segments.segment import Segment, segment_for
from horolog.broker.log.segments.upconversion import OLD_FORMATS, Allowance, read_converted
from horolog.broker.log.segments.verification import verify
from horolog.protocol.primitives import Unread
from horolog.protocol.records.head import Head

READ_HINTS = 64
"""The number of readers' places remembered in each partition."""

UNREAD_FROM_BYTES = 64 * 1024
"""From this length on, a slice is cheaper to send from the page cache than to read and write."""


Place = tuple[Segment, int, int]
"""Where a reader goes on: the position of a batch, and its size, or 0 if that is not known."""


class LogReader:
    """Reads the segments of one partition. Call `forget` whenever segments are removed or their contents change."""

    __slots__ = ("_hints", "_segments")

    def __init__(self, segments: list[Segment]) -> None:
        self._segments = segments
        self._hints: dict[int, Place] = {}

    def forget(self) -> None:
        self._hints.clear()

    def read(
        self,
        offset: int,
        end_offset: int,
        written_offset: int,
        max_bytes: int,
        *,
        at_least_one: bool,
        cuts_first: bool = True,
        upconvert: Allowance | None = None,
    ) -> bytes:
        """The bytes of one segment from the batch that holds `offset` on, none at or behind `end_offset`.

        Cut at `max_bytes`, even inside a batch. A larger first batch is returned whole with `at_least_one`, else cut with
        `cuts_first`, else not at all. `written_offset` is the end of the written log, the same unless open transactions
        hide the end. With `upconvert`, v0 and v1 are returned as v2, and nothing is cut.
        """
        place = self._hints.pop(offset, None) or self._find(offset)
        if place is None:
            return b""
        segment, position, _ = place
        following = written_offset if segment is self._segments[-1] else segment.next_offset
        end = segment.size_bytes
        if end_offset < following:
            end = self._end_of(segment, end_offset)
            following = end_offset
        if segment.holes:
            end = min(end, reader.good_end(segment, position))
            following = -1
        if upconvert is not None and segment.magics & OLD_FORMATS:
            found = read_converted(segment, position, end, max_bytes, upconvert, at_least_one=at_least_one)
            if found.data and not segment.holes:  # a hole may follow, where no reader goes on
                self._remember(found.next_offset, segment, found.end)
            return found.data
        if end - position <= max_bytes:
            data = _read(segment, position, end)
            goes_on_at = end
        elif not at_least_one and (
            max_bytes <= 0 or (not cuts_first and reader.batch_size(segment, position) > max_bytes)
        ):
            self._hints[offset] = place  # the reader will request the same again
            return b""
        else:
            data = _read(segment, position, position + max_bytes)
            goes_on_at, following = reader.boundary(segment, data, position, end)
            if goes_on_at == position:
                following = -1
                if at_least_one:
                    data = _read(segment, position, min(end, position + reader.batch_size(segment, position)))
        if following >= 0 and data:
            self._remember(following, segment, goes_on_at)
        return data

    def unread(self, offset: int, end_offset: int, written_offset: int, max_bytes: int) -> Unread | None:
        """The result of `read` as a slice of the file, if it is long, verified and needs no conversion; else None: use `read`.

        The place where the reader of a cut slice goes on is not remembered: finding it again costs less than walking the slice.
        """
        place = self._hints.get(offset) or self._find(offset)
        if place is None:
            return None
        self._hints[offset] = place  # for `read`, or removed below
        segment, position, first_bytes = place
        if segment.holes or segment.unverified is not None or segment.magics & OLD_FORMATS:
            return None
        following = written_offset if segment is self._segments[-1] else segment.next_offset
        end = segment.size_bytes
        if end_offset < following:
            end, following = self._end_of(segment, end_offset), end_offset
        size = end - position
        if size > max_bytes:
            size, following = max_bytes, -1
            if size < UNREAD_FROM_BYTES or (first_bytes or reader.batch_size(segment, position)) > size:
                return None
        found = segment.log.unread(size, position) if size >= UNREAD_FROM_BYTES else None
        if found is not None:
            del self._hints[offset]
            if following >= 0:
                self._remember(following, segment, end)
        return found

    def bytes_ahead(self, offset: int, end_offset: int, written_offset: int) -> int:
        """The bytes from the batch that holds `offset` up to `end_offset`; if the segment ends before, more than any request's limit."""
        place = self._hints.get(offset) or self._find(offset)
        if place is None:
            return 0
        segment, position, _ = place
        last = self._segments[-1]
        if segment is not last and segment.next_offset < end_offset:
            return sys.maxsize
        following = written_offset if segment is last else segment.next_offset
        end = self._end_of(segment, end_offset) if end_offset < following else segment.size_bytes
        return max(0, end - position)

    def heads(
        self, offset: int, end_offset: int, last_wanted: int, max_bytes: int, *, at_least_one: bool
    ) -> list[Head]:
        """The heads of the batches that lie together from the one that holds `offset` on, to the one that holds `last_wanted`.

        None of them ends behind `end_offset` or beyond `max_bytes`, except a larger first one with `at_least_one`. Reads up to there
        are led by the same places.
        """
        place = self._hints.get(offset) or self._find(offset)
        if place is None:
            return []
        self._hints[offset] = place
        segment, position, _ = place
        found: list[Head] = []
        following = position
        for head in reader.heads_from(segment, position):
            is_too_much = head.end - position > max_bytes and (found or not at_least_one)
            if head.position != following or head.last_offset >= end_offset or is_too_much:
                break
            found.append(head)
            following = head.end
            if head.last_offset >= last_wanted:
                break
        if found and not segment.holes:
            self._remember(found[-1].last_offset + 1, segment, following)
        return found

    def _end_of(self, segment: Segment, end_offset: int) -> int:
        known = self._hints.get(end_offset)
        if known is not None and known[0] is segment:
            return known[1]
        position = reader.find(segment, end_offset)
        return segment.size_bytes if position is None else position

    def _remember(self, offset: int, segment: Segment, position: int) -> None:
        """Remember where the reader of these batches will go on, except at the end of a complete segment."""
        if position == segment.size_bytes and segment is not self._segments[-1]:
            return
        hints = self._hints
        hints[offset] = (segment, position, 0)
        if len(hints) > READ_HINTS:
            del hints[next(iter(hints))]

    def _find(self, offset: int) -> Place | None:
        """The first batch that ends at or behind an offset, in this segment or, behind a gap, in a later one."""
        segments = self._segments
        for number in range(segment_for(segments, offset), len(segments)):
            found = reader.find_sized(segments[number], offset)
            if found is not None:
                return segments[number], *found
        return None


def _read(segment: Segment, start: int, end: int) -> bytes:
    """The verified bytes between two places; none if the second is not behind the first."""
    if end <= start:
        return b""
    if segment.unverified is not None:
        verify(segment, start, end)
    return segment.log.pread(end - start, start)
