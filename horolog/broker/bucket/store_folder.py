"""The data folder of a broker over a store: all in it is a copy, and one file says of which store, and which process had it last.

`horolog-store` has three lines: the id of the cluster, the WAL of that process, and the host that it ran on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from horolog.broker.bucket.names import Wal
from horolog.broker.log.storage import (
    DataFolderError,
    FileMissing,
    FolderInUse,
    Storage,
    StorageFault,
    lock_folder,
)

STORE_FILE = "horolog-store"


class FolderOfAnother(DataFolderError):
    """A folder that goes with another store, or with none."""


class LastUse(NamedTuple):
    """What the file says."""

    cluster_id: str
    wal: Wal | None = None
    host: str = ""


def read(storage: Storage, folder: str) -> LastUse | None:
    """None if no broker over a store has used the folder. Raises StorageFault."""
    try:
        lines = storage.read_all(f"{folder}/{STORE_FILE}").decode("utf-8", "replace").splitlines()
    except FileMissing:
        return None
    cluster_id, wal, host = (*lines, "", "", "")[:3]
    try:
        return LastUse(cluster_id.strip(), Wal.parse(wal), host)
    except ValueError:
        return LastUse(cluster_id.strip())


def refuse_another(storage: Storage, folder: str, cluster_id: str, *, has_partitions: bool) -> None:
    """Make sure that all in a folder is a copy of what this cluster's store has. Raises FolderOfAnother and StorageFault."""
    found = read(storage, folder)
    if found is None and has_partitions:
        raise FolderOfAnother(f"{folder} has partitions that are in no store: choose an empty folder (log.dirs)")
    if found is not None and found.cluster_id != cluster_id:
        raise FolderOfAnother(
            f"{folder} belongs to the store of cluster {found.cluster_id}, not {cluster_id}: name another folder (log.dirs)"
        )


def claim(storage: Storage, folder: str, use: LastUse) -> None:
    """Note who uses a folder from now on. Raises StorageFault."""
    content = f"{use.cluster_id}\n{use.wal or ''}\n{use.host}\n"
    storage.write_atomically(f"{folder}/{STORE_FILE}", content.encode())


def ended_wal(storage: Storage, folders: Iterable[str], host: str) -> Wal | None:
    """The WAL of the process that had the folders last, if it ran on this host: they are not locked, so it has ended.

    A copy of a folder on another machine says nothing. Raises DataFolderError for a folder that is in use.
    """
    uses = []
    for folder in folders:
        try:
            if not storage.is_dir(folder):
                return None
            lock_folder(storage, folder, storage.lock).release()
            uses.append(read(storage, folder))
        except FolderInUse as error:
            raise DataFolderError(str(error)) from error
        except StorageFault:
            return None  # the start says so
    first = uses[0] if uses else None
    return first.wal if first is not None and first.host == host and uses.count(first) == len(uses) else None
