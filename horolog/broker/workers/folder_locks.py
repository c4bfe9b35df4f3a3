"""The locks of the data folders, held for all workers: they inherit the descriptors, so a folder stays locked until the last of them ends.

Of the two locks that the storage takes on a file, `flock` belongs to the open file, which workers share; the POSIX lock, which keeps a
real Kafka away, belongs to the supervisor alone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Protocol

from horolog.broker.log.storage import FolderInUse, RealStorage, StorageFault, lock_folder, make_folder

log = logging.getLogger(__name__)


class _Held(Protocol):
    """A lock, and the descriptor that holds it."""

    def fileno(self) -> int: ...
    def release(self) -> None: ...


class FolderLocks:
    """Locks held from construction to `release`."""

    def __init__(self, paths: Iterable[str]) -> None:
        """A folder whose disk does not work is left out, unless none remains. Raises StorageFault."""
        storage = RealStorage()
        self._locks: list[_Held] = []
        self.paths: list[str] = []
        """The folders that are locked."""
        faults: list[StorageFault] = []
        for path in paths:
            try:
                make_folder(storage, path)
                self._locks.append(lock_folder(storage, path, storage.lock))
                self.paths.append(path)
            except FolderInUse:
                self.release()
                raise
            except StorageFault as fault:
                faults.append(fault)
        if not self._locks:
            raise faults[-1]
        for away in faults:
            log.error("%s", away)

    def __repr__(self) -> str:
        return f"<FolderLocks: {len(self._locks)} held>"

    @property
    def descriptors(self) -> list[int]:
        return [lock.fileno() for lock in self._locks]

    def release(self) -> None:
        for lock in self._locks:
            lock.release()
        self._locks.clear()
