"""Reads a segment's index files if they match its seal."""

from horolog.broker.log.indexes import IndexPair, offset_index, time_index
from horolog.broker.log.integrity import IndexSum, Seal
from horolog.broker.log.segments.segment import Segment
from horolog.broker.log.storage import Storage


def load(segment: Segment, seal: Seal) -> IndexPair | None:
    """The sealed index entries, None if the files do not begin with them. Later entries are left out."""
    storage, paths = segment.folder.storage, segment.files.index_paths
    offsets = _sealed(storage, paths[0], seal.offset_index)
    if offsets is None or not offset_index.ends_in_order(offsets):
        return None
    times = _sealed(storage, paths[1], seal.time_index)
    if times is None or not time_index.ends_in_order(times):
        return None
    return IndexPair.at(storage, paths, segment.config.segment_index_bytes, (offsets, times))


def _sealed(storage: Storage, path: str, expected: IndexSum) -> bytes | None:
    found = _start_of(storage, path, expected.size_bytes)
    return found if found is not None and IndexSum.of(found) == expected else None


def _start_of(storage: Storage, path: str, size_bytes: int) -> bytes | None:
    """The first bytes of a file, None if it is shorter. The rest is not read: in an active segment's index it is megabytes of zeros."""
    if not storage.exists(path):
        return None
    there_bytes, _ = storage.stat(path)
    if there_bytes < size_bytes:
        return None
    file = storage.open(path)
    try:
        return file.pread(size_bytes, 0) if size_bytes else b""
    finally:
        file.close()
