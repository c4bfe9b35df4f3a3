"""Has a segment's files on the disk; safe in a worker thread."""

from horolog.broker.log.segments.index_loading import REBUILD_AT_ONCE_BYTES
from horolog.broker.log.segments.segment import Segment
from horolog.broker.log.storage import FileMissing, StorageFault


def datasync(segment: Segment) -> None:
    """Have what has been written on the disk.

    Of a segment that takes appends only the log: its indexes can be made anew from it, and syncing them would make
    every acknowledgement wait for three files. Unless they have been sealed as they are, and the log is too large to be
    read while somebody waits for its indexes: those of a smaller one are held against their seal, whatever a power cut leaves.
    """
    with_indexes = segment.sync.take_up_indexes()
    try:
        segment.log.datasync()
        check_in_place(segment)  # else what was synced has no name, and goes with this process
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
            advice = "put the very file back, or start the broker again to go on without it"
            raise FileMissing(f"{missing}; {advice}", path=missing.path) from missing
