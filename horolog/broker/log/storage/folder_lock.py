"""Creates, checks and locks a data folder for its owner; errors are worded for the operator."""

from collections.abc import Callable
from typing import TypeVar

from horolog.broker.log.storage.faults import FolderInUse, StorageFault
from horolog.broker.log.storage.real_file import NOT_WRITABLE
from horolog.broker.log.storage.storage import Storage, parent_of

LOCK_FILE = ".lock"

Held = TypeVar("Held")


def make_folder(storage: Storage, path: str) -> None:
    """Create a missing folder and its parents, durably. Raises StorageFault."""
    missing = []
    above = path
    while not storage.is_dir(above):
        missing.append(above)
        above = parent_of(above)
    try:
        for one in reversed(missing):
            storage.make_dir(one)
            storage.sync_dir(parent_of(one))
    except StorageFault as error:
        raise StorageFault(f"the data folder cannot be created: {error}", path=path, code=error.code) from error


def lock_folder(storage: Storage, path: str, lock: Callable[[str], Held]) -> Held:
    """Lock a writable folder with `lock`. Raises FolderInUse, or StorageFault for its disk."""
    try:
        storage.check_writable(path)
        return lock(f"{path}/{LOCK_FILE}")
    except FolderInUse as error:
        raise FolderInUse(f"{path} is in use by another broker: {error}", path=path, code=error.code) from error
    except StorageFault as error:
        advice = "; horolog.read.only=true serves its partitions" if error.code in NOT_WRITABLE else ""
        raise StorageFault(f"{path} cannot be used: {error}{advice}", path=path, code=error.code) from error
