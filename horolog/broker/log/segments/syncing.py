"""Syncs a segment's files; safe in a worker thread."""

from horolog.broker.log.segments.index_loading import REBUILD_AT_ONCE_BYTES
from horolog.broker.log.segments.segment import Segment
from horolog.broker.log.storage import FileMissing, StorageFault


def datasync(segment: Segment) -> None:
    """Sync the written files of a segment.

    Of an active segment only the log is synced: its indexes can be rebuilt from it, and syncing them would make every
    acknowledgement wait for three files. The exception are sealed indexes of a log that is too large to be read while a
    request waits for its indexes: those of a smaller log are verified against their seal after a power cut.
    """
    with_indexes = segment.sync.take_up_indexes()
    try:
        segment.log.datasync()
        check_in_place(segment)  # otherwise the synced file has no name, and is lost with this process
        is_sealed = with_indexes or segment.seal is not None
        indexes = segment.indexes if is_sealed and segment.size_bytes > REBUILD_AT_ONCE_BYTES else None
        if indexes is not None:
            indexes.datasync()
    except FileMissing:
        if not segment.removed:
            raise
    except StorageFault:
        segment.sync.give_back_indexes(are_due=with_indexes)
        raise


def check_in_place(segment: Segment) -> None:
    """Raises FileMissing if the log has been removed, or replaced by another file."""
    try:
        segment.log.check_in_place()
    except FileMissing as missing:
        if not segment.removed:
            advice = "put the same file back, or restart the broker to continue without it"
            raise FileMissing(f"{missing}; {advice}", path=missing.path) from missing
