"""Takes segments out of a partition, and puts compacted ones in their place."""

from bisect import bisect_left
from collections.abc import Sequence

from horolog.broker.log.partition.partition import Partition
from horolog.broker.log.producers import snapshot_file
from horolog.broker.log.segments import CleanedSegment, Segment, swap_files


def take_out(partition: Partition, segment: Segment, now_ms: int) -> None:
    """Rename a segment's files to `.deleted`; they are removed after `file.delete.delay.ms`. If that fails, the segment stays."""
    segment.retire(swap_files.DELETED)
    partition.segments.remove(segment)
    partition.doomed.add(segment, now_ms + partition.config.file_delete_delay_ms)
    partition.segments_changed()
    partition.expiry.forget(segment.base_offset)
    storage = partition.folder.storage
    snapshot = f"{partition.directory}/{snapshot_file.file_name(segment.base_offset)}"
    if storage.exists(snapshot):  # useless without the log
        storage.remove(snapshot)
    partition.aborted.remove(segment.base_offset)


def replace_segments(partition: Partition, cleaned: Sequence[CleanedSegment], now_ms: int) -> bool:
    """Replace the segments that compacted ones were made from; False if some of those no longer exist.

    After a StorageFault files and memory disagree: a restart finishes the exchange (see `swap_files`).
    """
    complete = {one.base_offset: one for one in partition.segments[:-1]}
    storage, directory = partition.folder.storage, partition.directory
    bases = [one.base_offset for one in cleaned]
    if not all(base in complete for one in cleaned for base in one.replaces):
        swap_files.discard(storage, directory, bases)
        return False
    swap_files.promote(storage, directory, bases)
    for base in [base for one in cleaned for base in one.replaces]:
        take_out(partition, complete[base], now_ms)
    swap_files.install(storage, directory, bases)
    for one in cleaned:
        _put_in(partition, one)
    partition.segments_changed()
    return True


def _put_in(partition: Partition, cleaned: CleanedSegment) -> None:
    base_offset, seal = cleaned.base_offset, cleaned.seal
    segment = Segment(partition.folder, base_offset, seal.contents, partition.config, seal.created_ms, seal=seal)
    segments = partition.segments
    segments.insert(bisect_left(segments, base_offset, key=lambda one: one.base_offset), segment)
    if cleaned.aborted:
        partition.aborted.put(base_offset, cleaned.aborted)
