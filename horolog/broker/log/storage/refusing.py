"""Files and storages that are only read: the bases that refuse every change with StorageFault."""

# Paths are plain strings here, as in `storage`.
import errno
from collections.abc import Sequence

from mypy_extensions import mypyc_attr

from horolog.broker.log.storage.faults import StorageFault
from horolog.broker.log.storage.storage import File, Lock
from horolog.protocol.primitives import Buffer, Unread


def refused(operation: str, path: str) -> StorageFault:
    return StorageFault(f"{operation} {path}: this storage is only read", path=path, code=errno.EROFS)


@mypyc_attr(allow_interpreted_subclasses=True)
class RefusingFile:
    """What a `storage.File` needs besides reads and a size."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path

    def unread(self, size: int, position: int) -> Unread | None:  # noqa: ARG002
        """None: no slice is handed out unread."""
        return None

    def withdraw(self) -> None:
        """Do nothing: no slice is handed out unread."""

    def check_in_place(self) -> None:
        """Do nothing: removed files are not watched for."""

    def close(self) -> None:
        """Nothing is open."""

    def datasync(self) -> None:
        """There is nothing to sync."""

    def pwritev(self, buffers: Sequence[Buffer], position: int) -> None:  # noqa: ARG002
        raise refused("write", self.path)

    def truncate(self, size: int) -> None:  # noqa: ARG002
        raise refused("truncate", self.path)

    def allocate(self, size: int) -> None:  # noqa: ARG002
        raise refused("allocate", self.path)

    def reserve(self, position: int, size: int) -> bool:  # noqa: ARG002
        """False: nothing is written."""
        return False


@mypyc_attr(allow_interpreted_subclasses=True)
class RefusingStorage:
    """What a `storage.Storage` needs besides looks and reads."""

    def open(self, path: str) -> File:
        raise NotImplementedError

    def open_apart(self, path: str, *, create: bool = False) -> File:
        """Nothing of such a file is shared: each that is opened is apart."""
        return self.create(path) if create else self.open(path)

    def create(self, path: str) -> File:
        raise refused("create", path)

    def set_mtime_ms(self, path: str, mtime_ms: int) -> None:  # noqa: ARG002
        raise refused("touch", path)

    def rename(self, old: str, new: str) -> None:  # noqa: ARG002
        raise refused("rename", old)

    def remove(self, path: str) -> None:
        raise refused("remove", path)

    def remove_dir(self, path: str) -> None:
        raise refused("remove", path)

    def make_dir(self, path: str) -> None:
        raise refused("make", path)

    def sync_dir(self, path: str) -> None:
        """There is nothing to sync."""

    def write_atomically(self, path: str, data: bytes, *, synced: bool = True) -> None:  # noqa: ARG002
        raise refused("write", path)

    def check_writable(self, path: str) -> None:
        raise refused("write", path)

    def lock(self, path: str) -> Lock:
        raise refused("lock", path)

    def lock_in_turn(self, path: str) -> Lock:
        raise refused("lock", path)
