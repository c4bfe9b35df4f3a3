"""The files of one segment: their names, and the operations on all of them together.

Files are named by the offset of the first record that the segment may hold, in 20 digits, and by their kind: `.log` holds batches
and messages as they travel, one after the other and nothing else; `.index`, `.timeindex` and `.txnindex` are specified in
`offset_index`, `time_index` and `transaction_index`. A suffix behind the kind says that they are not in place: see `swap_files`.
"""

import logging

from horolog.broker.log.indexes import transaction_index
from horolog.broker.log.integrity import IndexSum
from horolog.broker.log.segments.segment_folder import SegmentFolder
from horolog.broker.log.storage import StorageFault

log = logging.getLogger(__name__)

LOG_SUFFIX = ".log"
OFFSET_INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
FILE_SUFFIXES = (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX)
"""The suffixes of the files that every segment has."""


def segment_path(directory: str, base_offset: int, suffix: str) -> str:
    return f"{directory}/{base_offset:020d}{suffix}"


class SegmentFiles:
    """The files by kind: one of the suffixes above, or that of the transaction index."""

    __slots__ = ("_base_offset", "_folder", "suffix")

    def __init__(self, folder: SegmentFolder, base_offset: int, suffix: str = "") -> None:
        self._folder = folder
        self._base_offset = base_offset
        self.suffix = suffix

    def __repr__(self) -> str:
        return f"<SegmentFiles {self.path('')}>"

    def path(self, kind: str) -> str:
        return segment_path(self._folder.directory, self._base_offset, kind + self.suffix)

    @property
    def index_paths(self) -> tuple[str, str]:
        """The paths of the offset index and of the time index."""
        return self.path(OFFSET_INDEX_SUFFIX), self.path(TIME_INDEX_SUFFIX)

    def modified_ns(self) -> int:
        """When the log was last written."""
        return self._folder.storage.stat(self.path(LOG_SUFFIX))[1]

    def modified_ms(self) -> int:
        """The same in milliseconds: the age of a segment without timestamps."""
        return self.modified_ns() // 1_000_000

    def sum_of_transactions(self) -> IndexSum:
        """The sum of the current transaction index, which is synced with every entry; that of nothing if there is no file."""
        storage, path = self._folder.storage, self.path(transaction_index.SUFFIX)
        return IndexSum.of(storage.read_all(path) if storage.exists(path) else b"")

    def rename(self, suffix: str) -> None:
        """Give the closed files another suffix, such as `.deleted`. If the log keeps its name, all do, and the fault is raised.

        An index that keeps its name without its log is removed at the next start.
        """
        storage, before = self._folder.storage, self.suffix
        old_paths = [self.path(kind) for kind in FILE_SUFFIXES]
        self.suffix = suffix
        for kind, old in zip(FILE_SUFFIXES, old_paths, strict=True):
            try:
                if storage.exists(old):
                    storage.rename(old, self.path(kind))
            except StorageFault as fault:
                if kind == LOG_SUFFIX:
                    self.suffix = before
                    raise
                log.warning("%s could not be renamed: %s", old, fault)

    def remove(self) -> None:
        """Delete the closed files; safe in a worker thread."""
        storage = self._folder.storage
        for kind in FILE_SUFFIXES:
            if storage.exists(self.path(kind)):
                storage.remove(self.path(kind))
