"""Reads a segment's contents from its log file, and rebuilds its indexes, in memory and in their files."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from horolog.broker.log.indexes import IndexPair, offset_index
from horolog.broker.log.integrity import Batch, BlockSums, Contents, FileFacts, Seal, extend_from, losses, survey
from horolog.broker.log.segments import sealed_indexes
from horolog.broker.log.segments.segment import HAS_PRODUCERS, Segment


def recover(
    segment: Segment,
    file_bytes: int,
    known: FileFacts,
    *,
    cut_tail: bool = False,
    prefix: Seal | None = None,
    observe: Callable[[Batch], None] | None = None,
) -> None:
    """Read the log. A segment whose recovery fails is useless: begin with another one.

    Skips the part that `prefix` seals, if its index entries load. `observe` is called with every good batch that is read.
    Faults outside of checksums are corrected in the file, damage is set aside. Bytes behind the last good batch are a torn
    tail and cut off, unless more records are known to have been there: then they are damage.
    """
    folder, counters = segment.folder, segment.folder.counters
    known, indexes = _begin(segment, known, prefix)

    def see(batch: Batch) -> None:
        absorb(segment, batch)
        if observe is not None:
            observe(batch)

    found = survey(partial(_read_and_sum, segment), file_bytes, known, see)
    if found.corrections:
        losses.correct(segment.log, found.corrections, counters)
    is_short = known.next_offset is not None and segment.next_offset < known.next_offset
    cuts = cut_tail and found.torn_bytes > 0 and not is_short
    kept = [one for one in found.losses if not (cuts and one.end == file_bytes)]
    losses.keep_damage(folder.storage, folder.directory, segment.log, segment.base_offset, kept, counters)
    if cuts:
        torn = found.losses[-1]
        losses.keep_torn(folder.storage, folder.directory, segment.log, segment.base_offset, torn, counters)
        segment.log.truncate(found.good_bytes)
    segment.size_bytes = segment.end_bytes = found.good_bytes if cuts else file_bytes
    segment.holes = (*segment.holes, *(found.holes if cuts else found.holes_to(file_bytes)))
    vouched = prefix if known.start else None
    if found.corrections or segment.sums.size_bytes > segment.size_bytes:
        segment.sums = BlockSums() if vouched is None else vouched.sums()
    extend_from(segment.sums, segment.log, segment.size_bytes)
    if vouched is None:  # else the files have what was sealed, and the rest follows when the segment is completed
        indexes.rewrite()


def _begin(segment: Segment, known: FileFacts, prefix: Seal | None) -> tuple[FileFacts, IndexPair]:
    """Begin with nothing, or with the part that the prefix vouches for."""
    sealed = None if prefix is None else sealed_indexes.load(segment, prefix)
    if prefix is None or sealed is None:
        max_bytes = segment.config.segment_index_bytes
        segment.hold(Contents(0, segment.base_offset), BlockSums())
        segment.indexes = IndexPair.at(segment.folder.storage, segment.files.index_paths, max_bytes)
        return known, segment.indexes
    segment.hold(prefix.contents, prefix.sums(), is_verified=False)
    segment.indexes = sealed
    last_entry = offset_index.position_of(sealed.offsets.entries, len(sealed.offsets) - 1)
    segment.bytes_since_entry = segment.size_bytes - last_entry
    return replace(known, first_offset=segment.next_offset, start=segment.size_bytes), sealed


def _read_and_sum(segment: Segment, size_bytes: int, position: int) -> bytes:
    """Read while scanning: bytes that are read for the first time go into the sums."""
    data = segment.log.pread(size_bytes, position)
    at = segment.sums.size_bytes - position
    if 0 <= at < size_bytes:
        segment.sums.extend(memoryview(data)[at:])
    return data


def absorb(segment: Segment, batch: Batch) -> None:
    """Add the next batch to a segment's contents."""
    if not segment.magics:
        segment.first_timestamp = batch.max_timestamp
    offset = batch.last_offset
    if batch.magic < 2 and segment.bytes_since_entry > segment.index_interval_bytes:
        offset = batch.base_offset
    segment.note(batch.position, batch.size_bytes, offset, batch.max_timestamp, batch.last_offset)
    segment.next_offset = batch.last_offset + 1
    segment.magics |= 1 << batch.magic
    if batch.producer_id >= 0:
        segment.magics |= HAS_PRODUCERS
