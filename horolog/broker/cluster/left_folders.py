"""Data folders as several workers have left them, for a single process that reads or opens them.

Next to the files that Kafka knows are a journal and the checkpoints of each worker; a broker alone that was killed has left a journal.
`settling` reads them, and is imported only if they are there. A merge removes the journal last, so folders without such files need no merge. If only the journal is
missing, it was lost.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Sequence

from horolog.broker.base.unix_sockets import SOCKETS
from horolog.broker.log.storage import DAMAGED_SUFFIX, FileMissing, OverlayStorage, Storage, StorageFault
from horolog.broker.on_record.cluster_file import FILE_NAME, JOURNAL, StoredTopic, parse

log = logging.getLogger(__name__)

WORKER_CHECKPOINT = "horolog-checkpoint."
"""The prefix of the files that `workers.worker_checkpoints` writes."""
DAMAGED_CHECKPOINTS = f"{WORKER_CHECKPOINT.removesuffix('.')}{DAMAGED_SUFFIX}"
"""The damaged ones that the last look has found, one behind the other, until the owner has seen them."""

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


class NoRoomToMerge(StorageFault):
    """The disk has no room for the merged files. A worker can still serve the folders as they are."""


def as_left(storage: Storage, data_dirs: Sequence[str]) -> Storage:
    """The folders merged in memory, for read-only callers; workers may still be running on them."""
    if not any(storage.exists(f"{one}/{JOURNAL}") for one in data_dirs):
        return storage  # it may be in another folder of the workers
    overlay = OverlayStorage(storage)
    return overlay if merge_what_workers_left(overlay, data_dirs) else storage


def topics_left(storage: Storage, data_dir: str) -> dict[str, StoredTopic]:
    """The topics that a folder's file of the cluster names, by name; none where there is no file. Raises NewerClusterFile."""
    left = as_left(storage, [data_dir])
    path = f"{data_dir}/{FILE_NAME}"
    return parse(left.read_all(path)).topics if left.exists(path) else {}


def merge_what_workers_left(storage: Storage, data_dirs: Sequence[str]) -> bool:
    """Make the folders as a broker alone leaves them; returns whether workers were here. Raises StorageFault, and NoRoomToMerge."""
    if not any(_were_here(storage, one) for one in data_dirs):
        return False
    from horolog.broker.cluster import settling

    try:
        settling.merge(storage, data_dirs)
    except StorageFault as fault:
        if fault.code in NO_ROOM:
            raise NoRoomToMerge(str(fault), path=fault.path, code=fault.code) from fault
        raise
    return True


def merged_for_one(storage: Storage, data_dirs: Sequence[str]) -> Storage:
    """The folders as a broker alone reads them: merged on the disk, or in memory if it takes nothing and a broker alone has left them.

    Raises StorageFault, and NoRoomToMerge for what several have left.
    """
    try:
        merge_what_workers_left(storage, data_dirs)
    except StorageFault as fault:
        from horolog.broker.cluster import found_journals

        journals = found_journals.find_all(storage, data_dirs)
        if not any(one.head.is_of_one for one in journals):
            raise
        log.error("the changes since the last start could not be saved; the broker continues with them: %s", fault)
        return as_left(storage, data_dirs)
    return storage


def remove_sockets(storage: Storage, data_dirs: Sequence[str]) -> None:
    """Remove the sockets that killed workers left, as far as possible. The data folders must be locked, so that no worker listens."""
    for path in (f"{one}/{SOCKETS}" for one in data_dirs):
        try:
            if storage.is_dir(path):
                for name in storage.list_dir(path):
                    storage.remove(f"{path}/{name}")
                storage.remove_dir(path)
        except StorageFault as fault:
            log.warning("the sockets of workers could not be removed: %s", fault)


def _were_here(storage: Storage, data_dir: str) -> bool:
    if storage.exists(f"{data_dir}/{JOURNAL}"):
        return True
    try:
        names = storage.list_dir(data_dir)
        return any(name.startswith(WORKER_CHECKPOINT) and name != DAMAGED_CHECKPOINTS for name in names) or (
            FILE_NAME in names and parse(storage.read_all(f"{data_dir}/{FILE_NAME}")).has_journal
        )
    except FileMissing:
        return False
