"""Loads the indexes of a segment when they are needed: from their files, or from the log where the files are not what was sealed."""

import logging
from collections.abc import Iterable
from dataclasses import replace

from horolog.broker.log.indexes import IndexPair, OffsetIndex, TimeIndex
from horolog.broker.log.integrity import Contents, Known
from horolog.broker.log.segments import sealed_indexes
from horolog.broker.log.segments.segment import Segment
from horolog.broker.log.segments.segment_folder import SegmentFolder
from horolog.broker.log.segments.segment_recovery import recover
from horolog.broker.log.storage import CANNOT_WRITE, OverlayStorage, Storage, StorageFault

log = logging.getLogger(__name__)

REBUILD_AT_ONCE_BYTES = 4 * 1024 * 1024
"""The largest log that is read to make its indexes anew while someone waits; a larger one is left to a worker."""


def indexes_of(segment: Segment) -> IndexPair:
    """Both indexes, loaded and verified. Raises BeingRescanned where that is left to a worker."""
    indexes = segment.indexes
    if indexes is None:
        indexes = segment.indexes = _load(segment)
    if segment.seal is not None:
        segment.folder.indexes.touch(segment)
    return indexes


def _load(segment: Segment) -> IndexPair:
    """Read the index files if they are what the seal says, else make them anew from the log, or have that done."""
    loaded = None if segment.seal is None else sealed_indexes.load(segment, segment.seal)
    if loaded is not None:
        _cut_to_entries(segment.folder.storage, loaded)
        return loaded
    if segment.size_bytes > REBUILD_AT_ONCE_BYTES:
        raise segment.suspected("its index files are not those of this log")
    log.warning("%s: its index files are not those of this log and are made anew", segment.log.path)
    folder = segment.folder
    folder.counters.indexes_rebuilt.value += 1
    try:
        return _made_anew(segment, folder)
    except StorageFault as fault:
        if fault.code not in CANNOT_WRITE:
            raise
        log.warning("%s: they are kept in memory: %s", segment.log.path, fault)
    return _made_anew(segment, replace(folder, storage=OverlayStorage(folder.storage)))


def _made_anew(segment: Segment, folder: SegmentFolder) -> IndexPair:
    """Read the log of a complete segment again, make both index files anew in a folder, and seal it again.

    The segment stays as it is until all of this has gone well: what it holds is known, whatever becomes of its indexes.
    """
    base_offset = segment.base_offset
    fresh = Segment(folder, base_offset, Contents(0, base_offset), segment.config, segment.created_ms)
    fresh.index_interval_bytes = segment.index_interval_bytes
    fresh.log = segment.log
    try:
        recover(fresh, segment.size_bytes, Known(base_offset, segment.next_offset))
        seal = fresh.complete()
    except StorageFault:
        fresh.drop_indexes()
        raise
    segment.take_over(seal)
    segment.sync.begin_with(0)  # nothing of this is synced
    assert fresh.indexes is not None
    return fresh.indexes


def _cut_to_entries(storage: Storage, indexes: Iterable[OffsetIndex | TimeIndex]) -> None:
    """Take back the room that was made for appends which never came. A file that cannot be cut is no reason not to read."""
    for index in indexes:
        try:
            if storage.stat(index.path)[0] > len(index.entries):
                index.trim()
        except StorageFault as fault:
            log.warning("%s is longer than what was sealed of it and cannot be cut: %s", index.path, fault)
