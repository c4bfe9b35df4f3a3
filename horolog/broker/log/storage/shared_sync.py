"""Shares syncs of a folder among all callers: thousands of partitions lie in one folder, and each name in it has to be on the disk."""

import threading

from horolog.broker.log.storage.storage import Storage


class SharedSyncs:
    """Counts the syncs of each folder. A sync that began after a name was created covers it, whichever caller requested the sync.

    Safe in worker threads. A failed sync covers nothing: the next caller retries.
    """

    __slots__ = ("_folders", "_storage")

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._folders: dict[str, _Folder] = {}

    def begun(self, path: str) -> int:
        """The argument for `sync`; call this once the name is created."""
        return self._folder(path).begun

    def sync(self, path: str, begun: int) -> None:
        """Sync the names that the folder held when `begun` syncs of it had begun."""
        folder = self._folder(path)
        with folder.guard:
            if folder.covered > begun:
                return
            folder.begun += 1
            self._storage.sync_dir(path)
            folder.covered = folder.begun

    def _folder(self, path: str) -> "_Folder":
        return self._folders.setdefault(path, _Folder())


class _Folder:
    __slots__ = ("begun", "covered", "guard")

    def __init__(self) -> None:
        self.guard = threading.Lock()
        self.begun = 0
        self.covered = 0
        """The last sync that succeeded."""
