"""Finds batches in a segment's log file and cuts reads at a batch boundary.

The offset index gives a position to begin at; from there the walk goes from header to header, reading small pieces of
the file, until the wanted batch or boundary. Damaged ranges (`Segment.holes`) are skipped and never handed out. Only
written bytes are read.
"""

from collections.abc import Callable, Iterator
from functools import partial

from horolog.broker.log.indexes import OffsetIndex, offset_index
from horolog.broker.log.segments.index_loading import indexes_of
from horolog.broker.log.segments.segment import Segment
from horolog.broker.log.segments.verification import verify
from horolog.broker.log.storage import StorageFault
from horolog.protocol.errors import DecodeError
from horolog.protocol.records.head import (
    ENTRY,
    LENGTH_ENDS_AT,
    SMALLEST_ENTRY_BYTES,
    START,
    WALK_BYTES,
    Head,
    heads,
    seek,
    size_of_entry,
)


def find(segment: Segment, offset: int) -> int | None:
    """The position of the first batch that ends at or behind an offset; None if there is none in this segment."""
    found = find_sized(segment, offset)
    return None if found is None else found[0]


def find_sized(segment: Segment, offset: int) -> tuple[int, int] | None:
    """The same, and the size of that batch; 0 if the search has not met it."""
    offsets, relative = indexes_of(segment)[0], offset - segment.base_offset
    before = offset_index.last_at_or_before(offsets.entries, relative)
    indexed = _named_in_index(segment, offsets, before, relative) if before >= 0 else None
    if indexed is not None:
        return indexed
    read = reads_of(segment)
    try:
        for start, end in good_ranges(segment, offset_index.position_of(offsets.entries, before)):
            found = seek(read, start, end, offset=offset)
            if found is not None:
                return found[0], 0
    except DecodeError as error:
        raise _suspected(segment, error) from error
    return None


def _named_in_index(segment: Segment, offsets: OffsetIndex, before: int, relative: int) -> tuple[int, int] | None:
    """The batch that entry `before` names, if that is for this offset; or the next one, if it begins there, as it does for readers that go on.

    Where batches are larger than `WALK_BYTES`, the index names each of them: one short read finds what the walk reads two heads for.
    """
    if segment.holes or segment.unverified is not None:
        return None
    entries = offsets.entries
    is_named = offset_index.offset_of(entries, before) == relative
    number = before if is_named else before + 1
    if number >= offset_index.count(entries):
        return None
    position = offset_index.position_of(entries, number)
    is_far = is_named or position - offset_index.position_of(entries, before) > WALK_BYTES
    if not is_far or position + LENGTH_ENDS_AT > segment.size_bytes:
        return None
    first, length = ENTRY.unpack(segment.log.pread(LENGTH_ENDS_AT, position))
    size_bytes: int = LENGTH_ENDS_AT + length
    begins_there = is_named or first - segment.base_offset == relative
    is_whole = SMALLEST_ENTRY_BYTES <= size_bytes <= segment.size_bytes - position
    return (position, size_bytes) if begins_there and is_whole else None


def heads_from(segment: Segment, position: int) -> Iterator[Head]:
    """The heads of all written batches from a position on."""
    read = reads_of(segment)
    try:
        for start, end in good_ranges(segment, position):
            yield from heads(read, start, end)
    except DecodeError as error:
        raise _suspected(segment, error) from error


def reads_of(segment: Segment) -> Callable[[int, int], bytes]:
    """A function that reads a log for a walk over heads: it verifies first, because a wrong size would skip some."""
    return segment.log.pread if segment.unverified is None else partial(_verified, segment)


def _verified(segment: Segment, size_bytes: int, position: int) -> bytes:
    verify(segment, position, position + size_bytes)
    return segment.log.pread(size_bytes, position)


def _suspected(segment: Segment, error: DecodeError) -> StorageFault:
    return segment.suspected(f"damaged: {error}")


def good_ranges(segment: Segment, position: int) -> list[tuple[int, int]]:
    """The ranges of the file from `position` on that hold batches, without the holes."""
    ranges = []
    for hole_start, hole_end in segment.holes:
        if position < hole_start:
            ranges.append((position, hole_start))
        position = max(position, hole_end)
    if position < segment.size_bytes:
        ranges.append((position, segment.size_bytes))
    return ranges


def good_end(segment: Segment, position: int) -> int:
    """Where the range of batches that `position` lies in ends."""
    return next((start for start, _ in segment.holes if start > position), segment.size_bytes)


def boundary(segment: Segment, data: bytes, position: int, end: int) -> tuple[int, int]:
    """The end of the last whole batch of `data`, which was read from `position` on and not as far as `end`.

    Also the probable offset of the next read: one that lies in the batch at that boundary and not before it.
    """
    limit = position + len(data)
    offsets, _ = indexes_of(segment)
    start = max(position, offset_index.last_position_up_to(offsets.entries, limit))

    try:
        found = seek(partial(_read_again, segment, data, position), start, end, limit=limit)
    except DecodeError as error:
        raise _suspected(segment, error) from error
    if found is None:
        raise misfit(segment, end)
    return found


def _read_again(segment: Segment, data: bytes, position: int, size_bytes: int, at: int) -> bytes:
    """From `data`, which was read from `position` on, except for a head that it cuts off."""
    piece = data[at - position : at - position + size_bytes]
    return piece if len(piece) >= START.size else segment.log.pread(size_bytes, at)


def batch_size(segment: Segment, position: int) -> int:
    """The size of the batch at a position."""
    size_bytes = size_of_entry(segment.log.pread(LENGTH_ENDS_AT, position))
    if size_bytes < SMALLEST_ENTRY_BYTES or position + size_bytes > segment.size_bytes:
        raise misfit(segment, position)
    return size_bytes


def misfit(segment: Segment, position: int) -> StorageFault:
    return segment.suspected(f"damaged at {position}: no batch begins there")
