"""The storage of read-only callers: it opens files for reading, so that it needs no other rights, and refuses everything else.

Every change raises StorageFault; with an overlay over it changes stay in memory. A broker may write the files meanwhile:
each keeps the size that it had when its size was first read.
"""

# Paths are plain strings here, as in `storage`.
import errno
import os

from horolog.broker.log.storage.faults import StorageFault, fault
from horolog.broker.log.storage.refusing import RefusingFile, RefusingStorage
from horolog.broker.log.storage.storage import DiskLooks, File


class ReadOnlyFile(RefusingFile):
    """A file that is open from its first read until `close`, or until it is garbage-collected; counts the bytes read."""

    __slots__ = ("_descriptor", "_storage")

    def __init__(self, storage: "ReadOnlyStorage", path: str) -> None:
        super().__init__(path)
        self._storage = storage
        self._descriptor = -1

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

    def size(self) -> int:
        return self._storage.stat(self.path)[0]

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        self.close()


class ReadOnlyStorage(RefusingStorage, DiskLooks):
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


def _end_of_data(descriptor: int, size_bytes: int) -> int:
    end = 0
    while end < size_bytes:
        try:
            start = os.lseek(descriptor, end, os.SEEK_DATA)
        except OSError as error:
            return end if error.errno == errno.ENXIO else size_bytes
        end = os.lseek(descriptor, start, os.SEEK_HOLE)
    return end
