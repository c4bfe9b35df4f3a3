"""Moves the start of a partition's log: by retention, and when clients delete records.

`Expiry` decides what expires. The active segment may expire too: another one is begun first.
"""

from collections.abc import Sequence

from horolog.broker.log.partition.exchange import take_out
from horolog.broker.log.partition.partition import OffsetOutOfRange, Partition
from horolog.broker.log.partition.retention import Expired


def delete_records_before(partition: Partition, offset: int) -> None:
    """Move the start; the next retention removes whole segments before it. The caller writes the log start checkpoint."""
    if offset > partition.high_watermark or offset < 0:
        raise OffsetOutOfRange(
            f"offset {offset} is not between {partition.log_start_offset} and {partition.high_watermark}"
        )
    if offset > partition.log_start_offset:
        partition.check_takes_appends()
        move(partition, offset)


def move(partition: Partition, offset: int) -> None:
    """Make this the log's start."""
    partition.log_start_offset = offset
    partition.resources.changes.note()
    partition.reader.forget()
    if partition.epochs.truncate_from_start(offset):
        partition.epochs.save(partition.folder.storage, partition.directory)


def apply_retention(partition: Partition, now_ms: int) -> list[Expired]:
    """Remove segments beyond the retention time, size or start offset, and return them. `finish_retention` removes the rest."""
    partition.write_pending()
    expired = partition.expiry.find(partition, now_ms)
    partition.producers.expire(now_ms)
    return _expire(partition, expired, now_ms)


def finish_retention(partition: Partition, now_ms: int) -> list[Expired]:
    """Called when `expiry.is_due`: remove what had expired at the last `apply_retention`, and still has."""
    partition.write_pending()
    return _expire(partition, partition.expiry.find_waiting(partition, now_ms), now_ms)


def _expire(partition: Partition, expired: Sequence[Expired], now_ms: int) -> list[Expired]:
    if expired and expired[-1].base_offset == partition.segments[-1].base_offset:
        if partition.condition.takes_appends:
            partition.roll(now_ms)
        else:  # no other segment can be begun, so the active one stays
            expired = expired[:-1]
    going = partition.expiry.dispensable(partition, expired)
    if partition.expiry.waiting_upto is not None and not partition.sync_state.has_snapshots:
        partition.sync_state.save_producers(partition.producers, partition.log_end_offset)
    try:
        for segment in going:
            take_out(partition, segment, now_ms)
            partition.folder.counters.segments_expired.value += 1
    finally:  # also if a later one could not be renamed
        first_offset = partition.segments[0].base_offset
        if first_offset > partition.log_start_offset:
            move(partition, first_offset)
    return list(expired[: len(going)])


def is_inside_segment(partition: Partition) -> bool:
    """Whether the start is not the base offset of the first segment, which a power cut may bring back."""
    named = 0 if partition.sync_state.names_are_unsynced else partition.segments[0].base_offset
    return partition.log_start_offset > named
