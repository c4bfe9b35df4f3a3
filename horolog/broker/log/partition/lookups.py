"""Looks up records of a partition by time, and offsets by leader epoch.

Lookups see what has been written. While the disk is not believed (see `Partition.is_believed`), a lookup by time answers from
the part known to be on the disk, and fails if the answer may lie behind that.
"""

from horolog.broker.log.partition.partition import Partition
from horolog.broker.log.segments import Found


def first_at_or_after(partition: Partition, timestamp: int, upto: int | None = None) -> Found | None:
    """The first record, in offset order, with a timestamp at or after the given one; None if there is none."""
    partition.folder.counters.lookups_by_time.value += 1
    end_offset = partition.high_watermark if upto is None else min(upto, partition.high_watermark)
    known_offset = end_offset if partition.is_believed else min(end_offset, partition.sync_state.recovery_point)
    found = partition.times.first_at_or_after(timestamp, partition.log_start_offset, known_offset)
    if found is None and known_offset < end_offset:
        raise partition.condition.error(partition.directory)  # it may lie where the page cache has lost writes
    return found


def largest_timestamp(partition: Partition) -> Found | None:
    """The first record with the largest timestamp of the log."""
    if not partition.is_believed and partition.sync_state.recovery_point < partition.high_watermark:
        raise partition.condition.error(partition.directory)
    return partition.times.largest(partition.log_start_offset, partition.high_watermark)


def offsets_before(partition: Partition, timestamp: int, max_count: int, now_ms: int) -> list[int]:
    """ListOffsets v0, see `newest_before`: the log's end counts as a segment written now, unless the active segment is empty."""
    end = (partition.high_watermark, now_ms) if partition.segments[-1].size_bytes else None
    return partition.times.newest_before(timestamp, max_count, partition.log_start_offset, end)


def end_offset_for_epoch(partition: Partition, epoch: int) -> tuple[int, int]:
    """The largest known leader epoch not above `epoch` and its end offset; (-1, -1) if none is known."""
    if epoch == partition.leader_epoch:
        return epoch, partition.log_end_offset
    return partition.epochs.end_offset_for(epoch, partition.log_end_offset)


def epoch_at(partition: Partition, offset: int) -> int:
    """The leader epoch in which an offset was or will be written; -1 if it is unknown."""
    if offset >= partition.log_end_offset:
        return partition.leader_epoch
    return partition.epochs.epoch_of(offset)
