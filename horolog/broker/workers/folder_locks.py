"""The locks of the data folders, held for all workers: they inherit the descriptors, so a folder stays locked until the last of them ends.

Of the two locks that the storage takes on a file, `flock` belongs to the open file, which workers share; the POSIX lock, which keeps a
real Kafka away, belongs to the supervisor alone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Protocol

from horolog.broker.log.storage import NOT_WRITABLE, FolderInUse, RealStorage, StorageFault, parent_of

log = logging.getLogger(__name__)

LOCK_FILE = ".lock"


class _Held(Protocol):
    """A lock, and the descriptor that holds it."""

    def fileno(self) -> int: ...
    def release(self) -> None: ...


class FolderLocks:
    """Held from the begin to `release`."""

    def __init__(self, paths: Iterable[str]) -> None:
        """A folder whose disk does not work is left aside, unless it was the last. Raises StorageFault."""
        self._storage = RealStorage()
        self._locks: list[_Held] = []
        self.paths: list[str] = []
        """The folders that are locked."""
        faults: list[StorageFault] = []
        for path in paths:
            try:
                self._locks.append(self._lock(path))
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

    def _lock(self, path: str) -> _Held:
        """Make the folder if it is missing, and lock it, with the words of one process where that fails."""
        try:
            self._make(path)
        except StorageFault as error:
            raise StorageFault(f"the data folder cannot be made: {error}", path=path, code=error.code) from error
        try:
            self._storage.check_writable(path)
            return self._storage.lock(f"{path}/{LOCK_FILE}")
        except FolderInUse as error:
            raise FolderInUse(f"{path} is in use by another broker: {error}", path=path, code=error.code) from error
        except StorageFault as error:
            advice = "; horolog.read.only=true serves its partitions" if error.code in NOT_WRITABLE else ""
            raise StorageFault(f"{path} cannot be used: {error}{advice}", path=path, code=error.code) from error

    def _make(self, path: str) -> None:
        """A folder that is missing, with those above it, durably."""
        if not self._storage.is_dir(path):
            self._make(parent_of(path))
            self._storage.make_dir(path)
            self._storage.sync_dir(parent_of(path))
