"""Closes a partition in three parts, one of which waits for the disk, or deletes it.

An unused partition costs nothing: its empty segment is sealed without a sync.
"""

from horolog.broker.log.integrity import seals
from horolog.broker.log.partition.partition import Partition
from horolog.broker.log.storage import StorageFault


def close(partition: Partition) -> None:
    """Write, complete, sync and seal everything."""
    complete(partition)
    settle(partition)
    let_go(partition)


def complete(partition: Partition) -> None:
    """The first part: write everything, and schedule what has to be sealed."""
    if not partition.condition.takes_appends:
        return
    partition.flush()
    active = partition.segments[-1]
    if active.seal is None:
        untouched = len(partition.segments) == 1 and not active.end_bytes and not partition.sync_state.has_work
        seal = active.complete()
        if untouched:
            seals.save_unsynced(partition.folder.storage, partition.directory, [seal])
        else:
            partition.sync_state.segment_written(active)
            partition.sync_state.segments_changed(came_or_went=False)
            partition.sync_state.save_producers(partition.producers, partition.log_end_offset)


def settle(partition: Partition) -> None:
    """The second part: wait for the disk. May run in a worker thread."""
    if partition.condition.takes_appends and partition.sync_state.has_work:
        partition.sync()
        if partition.sync_state.has_work:
            raise StorageFault("its seals could not be written", path=partition.directory)


def let_go(partition: Partition) -> None:
    """The last part: remove doomed segments, and close the descriptors."""
    partition.doomed.remove_all()
    close_files(partition)


def close_files(partition: Partition) -> None:
    """Close every descriptor without writing anything."""
    for segment in partition.segments:
        segment.close()


def end(partition: Partition) -> None:
    """Serve nothing of a partition whose folder the caller removes next."""
    for segment in partition.segments:
        segment.removed = True
    partition.condition.delete()
    close_files(partition)
    partition.doomed.forget()
