"""Loads the indexes of a segment on demand: from their files, or from the log if the files do not match the seal."""

import logging
from collections.abc import Iterable
from dataclasses import replace

from horolog.broker.log.indexes import IndexPair, OffsetIndex, TimeIndex
from horolog.broker.log.integrity import Contents, FileFacts
from horolog.broker.log.segments import sealed_indexes
from horolog.broker.log.segments.segment import Segment
from horolog.broker.log.segments.segment_folder import SegmentFolder
from horolog.broker.log.segments.segment_recovery import recover
from horolog.broker.log.storage import CANNOT_WRITE, OverlayStorage, Storage, StorageFault

log = logging.getLogger(__name__)

REBUILD_AT_ONCE_BYTES = 4 * 1024 * 1024
"""The largest log that is read to rebuild its indexes while a request waits; a larger one is left to a worker."""


def indexes_of(segment: Segment) -> IndexPair:
    """Both indexes, loaded and verified. Raises BeingRescanned if that is left to a worker."""
    indexes = segment.indexes
    if indexes is None:
        indexes = segment.indexes = _load(segment)
    if segment.seal is not None:
        segment.folder.indexes.touch(segment)
    return indexes


def _load(segment: Segment) -> IndexPair:
    """Read the index files if they match the seal, else rebuild them from the log, or leave that to a worker."""
    loaded = None if segment.seal is None else sealed_indexes.load(segment, segment.seal)
    if loaded is not None:
        _cut_to_entries(segment.folder.storage, loaded)
        return loaded
    if segment.size_bytes > REBUILD_AT_ONCE_BYTES:
        raise segment.suspected("its index files do not match its log")
    log.warning("%s: its index files do not match its log; rebuilding them", segment.log.path)
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
    """Read the log of a complete segment again, rebuild both index files in a folder, and seal it again.

    The segment stays unchanged until all of this has succeeded: its contents are known even if the rebuild fails.
    """
    base_offset = segment.base_offset
    fresh = Segment(folder, base_offset, Contents(0, base_offset), segment.config, segment.created_ms)
    fresh.index_interval_bytes = segment.index_interval_bytes
    fresh.log = segment.log
    try:
        recover(fresh, segment.size_bytes, FileFacts(base_offset, segment.next_offset))
        seal = fresh.complete()
    except StorageFault:
        fresh.drop_indexes()
        raise
    segment.take_over(seal)
    segment.sync.begin_with(0)  # none of this is synced
    assert fresh.indexes is not None
    return fresh.indexes


def _cut_to_entries(storage: Storage, indexes: Iterable[OffsetIndex | TimeIndex]) -> None:
    """Cut unused preallocated space. A file that cannot be cut is still read."""
    for index in indexes:
        try:
            if storage.stat(index.path)[0] > len(index.entries):
                index.trim()
        except StorageFault as fault:
            log.warning("%s is longer than its seal and cannot be cut: %s", index.path, fault)
