"""Finds batches in a segment's log file and cuts what is read at a batch boundary.

The offset index gives a position to begin at; from there the walk goes from header to header, reading small pieces of
the file, until the wanted batch or boundary. Damaged ranges (`Segment.holes`) are passed over and never handed out.
Only what has been written is looked at.
"""

from collections.abc import Iterator

from horolog.broker.log.indexes import offset_index
from horolog.broker.log.segments.segment import Segment
from horolog.broker.log.storage import StorageFault
from horolog.protocol.records.head import ENTRY, LENGTH_ENDS_AT, SMALLEST_MESSAGE_LENGTH, START

WALK_BYTES = 8192
"""Read at once while walking over headers."""

_SMALLEST_LENGTH = SMALLEST_MESSAGE_LENGTH[0]
_START_BYTES = START.size
_read_start = START.unpack_from
_read_length = ENTRY.unpack_from


def find(segment: Segment, offset: int) -> int | None:
    """The position of the first batch that ends at or behind an offset; None if there is none in this segment."""
    offsets, _ = segment.indexes()
    position = offset_index.lookup(offsets.entries, offset - segment.base_offset)
    for start, end in good_ranges(segment, position):
        found = _walk_to(segment, start, end, offset)
        if found is not None:
            return found
    return None


def good_ranges(segment: Segment, position: int) -> Iterator[tuple[int, int]]:
    """The ranges of the file from `position` on that hold batches, without the holes."""
    for hole_start, hole_end in segment.holes:
        if position < hole_start:
            yield position, hole_start
        position = max(position, hole_end)
    if position < segment.size_bytes:
        yield position, segment.size_bytes


def good_end(segment: Segment, position: int) -> int:
    """Where the range of batches that `position` lies in ends."""
    return next((start for start, _ in segment.holes if start > position), segment.size_bytes)


def _walk_to(segment: Segment, position: int, end: int, offset: int) -> int | None:
    pread = segment.log.pread
    while position < end:
        size = min(WALK_BYTES, end - position)
        if segment.unverified is not None:
            segment.verify(position, position + size)  # a size that is wrong would lead past what is looked for
        chunk = _piece(pread(size, position), end - position)
        limit = len(chunk) - _START_BYTES
        at = 0
        while at <= limit:
            last, length, _, magic, _, _, delta = _read_start(chunk, at)
            if magic >= 2:
                last += delta
            if last >= offset:
                return position + at
            if length < _SMALLEST_LENGTH:
                raise misfit(segment, position + at)
            at += LENGTH_ENDS_AT + length
        position += at
    return None


def _piece(chunk: bytes, left: int) -> bytes:
    """The last piece of a file, made one byte longer: the smallest message is a byte shorter than what is unpacked."""
    return chunk + b"\0" if len(chunk) == left else chunk


def misfit(segment: Segment, position: int) -> StorageFault:
    return segment.suspected(f"damaged at {position}: no batch begins there")


def boundary(segment: Segment, position: int, limit: int, end: int) -> tuple[int, int]:
    """Where to cut what is read from `position` on: the last batch boundary not behind `limit`, which is before `end`.

    Also the offset with which the next read will probably come: one that lies in the batch at that boundary and not before it.
    """
    offsets, _ = segment.indexes()
    start = max(position, offset_index.last_position_up_to(offsets.entries, limit))
    pread = segment.log.pread
    following = -1
    while True:
        chunk = _piece(pread(min(WALK_BYTES, end - start), start), end - start)
        last_at = len(chunk) - _START_BYTES
        at = 0
        while at <= last_at:
            base, length, _, magic, _, _, delta = _read_start(chunk, at)
            if length < _SMALLEST_LENGTH:
                raise misfit(segment, start + at)
            size = LENGTH_ENDS_AT + length
            if start + at + size > limit:
                return start + at, base if following < 0 else following
            following = base + 1 + delta if magic >= 2 else base + 1
            at += size
        start += at


def batch_size(segment: Segment, position: int) -> int:
    """The size of the batch at a position."""
    _, length = _read_length(segment.log.pread(LENGTH_ENDS_AT, position))
    if length < _SMALLEST_LENGTH or position + LENGTH_ENDS_AT + length > segment.size_bytes:
        raise misfit(segment, position)
    return LENGTH_ENDS_AT + length  # type: ignore[no-any-return]
