"""The storage of read-only callers: it opens files for reading, so that it needs no other rights, and refuses everything else.

Every change raises StorageFault; with an overlay over it changes stay in memory. A broker may write the files meanwhile:
each keeps the size that it had when its size was first read.
"""

# Paths are plain strings here, as in `storage`.
import errno
import os
from collections.abc import Sequence

from horolog.broker.log.storage.faults import StorageFault, fault
from horolog.broker.log.storage.storage import (
    Buffer,
    DiskLooks,
    File,
    Lock,
)


class ReadOnlyFile:
    """A file that is open from its first read until `close`, or until it is garbage-collected; counts the bytes read."""

    __slots__ = ("_descriptor", "_storage", "path")

    def __init__(self, storage: "ReadOnlyStorage", path: str) -> None:
        self._storage = storage
        self._descriptor = -1
        self.path = path

    def pread(self, size: int, position: int) -> bytes:
        try:
            if self._descriptor < 0:
                self._descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            parts = []
            while size > 0:
                data = os.pread(self._descriptor, size, position)
                if not data:
                    raise StorageFault(f"read {self.path}: ends {size} bytes before {position + size}", path=self.path)
                parts.append(data)
                size -= len(data)
                position += len(data)
        except OSError as error:
            raise fault("read", self.path, error) from error
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        self._storage.count(self.path, len(data))
        return data

    def unread(self, size: int, position: int) -> None:
        """None: bytes read are counted."""

    def withdraw(self) -> None:
        """Do nothing: no slice is handed out unread."""

    def size(self) -> int:
        return self._storage.stat(self.path)[0]

    def check_in_place(self) -> None:
        """Do nothing: a single look does not watch for removed files."""

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        self.close()

    def pwritev(self, buffers: Sequence[Buffer], position: int) -> None:  # noqa: ARG002
        raise refused("write", self.path)

    def truncate(self, size: int) -> None:  # noqa: ARG002
        raise refused("truncate", self.path)

    def allocate(self, size: int) -> None:  # noqa: ARG002
        raise refused("allocate", self.path)

    def datasync(self) -> None:
        """There is nothing to sync."""


class ReadOnlyStorage(DiskLooks):
    """See the module's docstring. `bytes_read` has the bytes read of each file."""

    def __init__(self) -> None:
        self.bytes_read: dict[str, int] = {}
        self._looks: dict[str, tuple[int, int]] = {}

    def stat(self, path: str) -> tuple[int, int]:
        look = self._looks.get(path)
        if look is None:
            look = self._looks[path] = super().stat(path)
        return look

    def count(self, path: str, size_bytes: int) -> None:
        self.bytes_read[path] = self.bytes_read.get(path, 0) + size_bytes

    def open(self, path: str) -> File:
        return ReadOnlyFile(self, path)

    def open_apart(self, path: str) -> File:
        return ReadOnlyFile(self, path)

    def read_all(self, path: str) -> bytes:
        data = super().read_all(path)
        self.count(path, len(data))
        return data

    def end_of_data(self, path: str) -> int:
        """Where the preallocated, unwritten part of a file begins; the file's size if the system reports no holes."""
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                return _end_of_data(descriptor, os.fstat(descriptor).st_size)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise fault("read", path, error) from error

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

    def write_atomically(self, path: str, data: bytes) -> None:  # noqa: ARG002
        raise refused("write", path)

    def check_writable(self, path: str) -> None:
        raise refused("write", path)

    def lock(self, path: str) -> Lock:
        raise refused("lock", path)

    def lock_in_turn(self, path: str) -> Lock:
        raise refused("lock", path)


def _end_of_data(descriptor: int, size_bytes: int) -> int:
    end = 0
    while end < size_bytes:
        try:
            start = os.lseek(descriptor, end, os.SEEK_DATA)
        except OSError as error:
            return end if error.errno == errno.ENXIO else size_bytes
        end = os.lseek(descriptor, start, os.SEEK_HOLE)
    return end


def refused(operation: str, path: str) -> StorageFault:
    return StorageFault(f"{operation} {path}: this storage is only read", path=path, code=errno.EROFS)
