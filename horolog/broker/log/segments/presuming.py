"""Presumes the contents of an unsealed segment from its index files, for read-only callers that need little of it.

Other brokers believe their index files. A read-only look at a folder that one of them writes to, or at the unsealed part of a log,
may do so too. Only the indexes of a closed segment and the heads at their ends are read. Of the last segment the end is also read,
from an entry far enough in front of it, because the indexes are written after the log.

The indexes are checked against the log at their first and last entries, and every batch that a lookup reaches has its own head.
If anything does not fit, nothing is presumed, and the log has to be read. The same holds for a log of format v0 or v1.
"""

from collections.abc import Iterator
from typing import NamedTuple

from horolog.broker.log.indexes import LARGEST_RELATIVE_OFFSET, IndexPair, offset_index, time_index
from horolog.broker.log.integrity import BlockSums, Contents, Damage, scan
from horolog.broker.log.segments.segment import Segment
from horolog.broker.log.segments.segment_recovery import absorb
from horolog.broker.log.storage import Storage, StorageFault
from horolog.protocol.errors import DecodeError
from horolog.protocol.records.head import BATCH_MAGIC, HEADER_BYTES, Head, heads

END_BYTES = 1 << 20
"""The least that is read of the last segment: a broker adds the entries of an append, which is no larger, after the append."""
_BEHIND_BYTES = 16 << 20
"""If this many bytes have no entry, indexes were lost, or the log has preallocated space."""
_READ_BYTES = 24 << 10  # whole entries of both kinds


class LogFacts(NamedTuple):
    """Facts about a log file that are not in its indexes."""

    size_bytes: int
    following: int | None
    """The base offset of the next segment; None for the last one."""
    end_offset: int = 0
    """The end of the offsets given out in the partition."""


def presume(segment: Segment, known: LogFacts) -> bool:
    """Fill a new segment from its index files; False if they do not tell, and then the segment is useless."""
    try:
        if known.following is None:
            return _hold_last(segment, known)
        return _hold_closed(segment, known, known.following)
    except (StorageFault, DecodeError):
        return False


def _hold_closed(segment: Segment, known: LogFacts, following: int) -> bool:
    """Fill a rolled segment: its indexes end with it, and the last time is the largest."""
    offsets, times = (_entries(segment, number) for number in (0, 1))
    is_whole = all(
        segment.folder.storage.stat(path)[0] == len(entries)
        for path, entries in zip(segment.files.index_paths, (offsets, times), strict=True)
    )
    if not is_whole or not times or _count_below(offsets, known.size_bytes) < offset_index.count(offsets):
        return False
    indexes = _indexes(segment, offsets, times)
    if indexes is None or not segment.base_offset <= _head_at(segment, 0, known).base_offset < following:
        return False
    largest, at = _last_time(indexes)
    contents = Contents(known.size_bytes, following, largest, segment.base_offset + at, -1, 1 << BATCH_MAGIC)
    segment.hold(contents, BlockSums())
    segment.indexes = indexes
    return _agrees(segment, indexes, known)


def _hold_last(segment: Segment, known: LogFacts) -> bool:
    """Fill an active segment: its indexes cover all but the end, which is read."""
    offsets, times = _entries(segment, 0), _entries(segment, 1)
    there = _count_below(offsets, known.size_bytes)
    if known.size_bytes - offset_index.position_of(offsets, there - 1) > _BEHIND_BYTES:
        return False
    number = _count_below(offsets, known.size_bytes - END_BYTES + 1) - 1
    if number < 0:
        return False
    start, entry = offset_index.position_of(offsets, number), offset_index.offset_of(offsets, number)
    before = (one for one in time_index.ENTRY.iter_unpack(times) if one[1] <= entry)
    indexes = _indexes(
        segment,
        offsets[: (number + 1) * offset_index.ENTRY.size],
        b"".join(time_index.ENTRY.pack(*one) for one in before),
    )
    if indexes is None:
        return False
    largest, at = _last_time(indexes)
    segment.hold(
        Contents(start, segment.base_offset + entry, largest, segment.base_offset + at, -1, 1 << BATCH_MAGIC),
        BlockSums(),
    )
    segment.indexes = indexes
    return _agrees(segment, indexes, known) and _read_end(segment, start, entry, known)


def _read_end(segment: Segment, start: int, entry: int, known: LogFacts) -> bool:
    """Read a segment from the batch of an entry on; a batch that is cut short at the end is left out."""
    first, last = segment.base_offset, segment.base_offset + LARGEST_RELATIVE_OFFSET
    end = start
    for span in scan(segment.log.pread, known.size_bytes, first_offset=first, end_offset=last, position=start):
        if isinstance(span, Damage):
            if span.end != known.size_bytes:
                return False
            break
        if span.position == start and span.last_offset != first + entry:
            return False
        absorb(segment, span)
        end = span.end
    segment.size_bytes = segment.end_bytes = end
    return end > start and segment.next_offset >= known.end_offset


# -- index files


def _entries(segment: Segment, number: int) -> bytes:
    """The entries of an index file, without preallocated zeros."""
    storage: Storage = segment.folder.storage
    path = segment.files.index_paths[number]
    size = (offset_index.ENTRY.size, time_index.ENTRY.size)[number]
    there, _ = storage.stat(path)
    file = storage.open(path)
    found = bytearray()
    try:
        while len(found) < there and (not found or any(found[-size:])):
            found += file.pread(min(_READ_BYTES, there - len(found)), len(found))
    finally:
        file.close()
    count = len(found) // size
    while count and not any(found[(count - 1) * size : count * size]):
        count -= 1
    return bytes(found[: count * size])


def _count_below(offsets: bytes, position: int) -> int:
    """The number of entries of the offset index before a place in the log."""
    count = offset_index.count(offsets)
    while count and offset_index.position_of(offsets, count - 1) >= position:
        count -= 1
    return count


def _indexes(segment: Segment, offsets: bytes, times: bytes) -> IndexPair | None:
    """Both as a pair, if there are times and all is in order."""
    rises = _rises(offset_index.ENTRY.iter_unpack(offsets)) and _rises(time_index.ENTRY.iter_unpack(times))
    if not times or not rises:
        return None
    storage, paths = segment.folder.storage, segment.files.index_paths
    return IndexPair.at(storage, paths, segment.config.segment_index_bytes, (offsets, times))


def _rises(entries: Iterator[tuple[int, ...]]) -> bool:
    first, second = -1, -1
    for one, other in entries:
        if one <= first or other <= second:
            return False
        first, second = one, other
    return True


def _last_time(indexes: IndexPair) -> tuple[int, int]:
    """The largest timestamp, and the relative offset that holds it."""
    timestamp, offset = time_index.ENTRY.unpack(indexes.times.entries[-time_index.ENTRY.size :])
    return timestamp, offset


# -- checked against the log


def _agrees(segment: Segment, indexes: IndexPair, known: LogFacts) -> bool:
    """Whether the first and the last entries name batches of this log."""
    offsets = indexes.offsets.entries
    for number in {0, len(indexes.offsets) - 1} if offsets else ():
        head = _head_at(segment, offset_index.position_of(offsets, number), known)
        if head.magic != BATCH_MAGIC or head.last_offset - segment.base_offset != offset_index.offset_of(
            offsets, number
        ):
            return False
    timestamp, offset = _last_time(indexes)
    wanted = segment.base_offset + offset
    for head in heads(segment.log.pread, offset_index.lookup(offsets, offset), known.size_bytes, HEADER_BYTES):
        if head.last_offset >= wanted:
            return head.magic == BATCH_MAGIC and head.base_offset <= wanted and head.max_timestamp in (timestamp, -1)
    return False


def _head_at(segment: Segment, position: int, known: LogFacts) -> Head:
    return next(heads(segment.log.pread, position, known.size_bytes, HEADER_BYTES))
