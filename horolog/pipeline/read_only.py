"""A storage for looking at a log that may be somebody else's: reads come from the files, writes stay in memory.

Opening a partition recovers it: a torn tail is cut, index files are made anew, leftovers removed. Over this storage all of that is
done exactly as the broker does it, and nothing of it reaches the disk; files are opened for reading only. So a
folder can be read while its broker writes to it, from a read-only mount, or in a copy that is to stay as it is.
"""

# Paths are plain strings here, as in the storage that this stands in for.
import os
from collections.abc import Iterable, Sequence

from horolog.broker.log.storage import Buffer, DiskLooks, FileMissing, StorageFault, fault, parent_of

SMALL_FILE_BYTES = 64 << 20
"""A file up to this size may be copied into memory because something was to be changed inside of it."""


Patch = tuple[int, bytes]
"""Bytes that stand for those at a position of a file."""


def difference(old: bytes, new: bytes, position: int) -> Patch:
    """The patch that makes new bytes, of the same length, of old ones: from the first that differs to the last."""
    differing = [at for at in range(len(old)) if old[at] != new[at]] if old != new else []
    if not differing:
        return position, b""
    return position + differing[0], new[differing[0] : differing[-1] + 1]


def with_patches(data: bytes, position: int, patches: Iterable[Patch]) -> bytes:
    """What was read from a position, with the patches that lie in it."""
    patched = None
    for at, new in patches:
        start, end = max(at, position), min(at + len(new), position + len(data))
        if start < end:
            patched = bytearray(data) if patched is None else patched
            patched[start - position : end - position] = new[start - at : end - at]
    return data if patched is None else bytes(patched)


class BytesRead:
    """How much has been read from the files."""

    def __init__(self) -> None:
        self.bytes = 0


class ReadOnlyFile:
    """A file as it is, or as it would be by now."""

    __slots__ = ("_descriptor", "_storage", "path")

    def __init__(self, storage: "ReadOnlyStorage", path: str) -> None:
        self._storage = storage
        self._descriptor = -1
        self.path = path

    def pread(self, size: int, position: int) -> bytes:
        changed = self._storage.changed.get(self.path)
        if changed is not None:
            data = bytes(changed[position : position + size])
        elif position + size > self.size():
            raise StorageFault(f"read {self.path}: ends before {position + size}", path=self.path)
        else:
            data = with_patches(self._pread(size, position), position, self._storage.patches.get(self.path, ()))
        if len(data) != size:
            raise StorageFault(f"read {self.path}: ends before {position + size}", path=self.path)
        return data

    def _pread(self, size: int, position: int) -> bytes:
        try:
            if self._descriptor < 0:
                self._descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            parts = []
            while size:
                parts.append(os.pread(self._descriptor, size, position))
                if not parts[-1]:
                    break
                size -= len(parts[-1])
                position += len(parts[-1])
        except OSError as error:
            raise fault("read", self.path, error) from error
        data = parts[0] if len(parts) == 1 else b"".join(parts)
        self._storage.bytes_read.bytes += len(data)
        return data

    def pwritev(self, buffers: Sequence[Buffer], position: int) -> None:
        data = b"".join(buffers)
        if self.path not in self._storage.changed and position + len(data) <= self.size():
            self._storage.patches.setdefault(self.path, []).append(
                difference(self.pread(len(data), position), data, position)
            )
            return
        content = self._storage.own_copy(self.path)
        if len(content) < position:
            content += bytes(position - len(content))
        content[position : position + len(data)] = data

    def truncate(self, size: int) -> None:
        if self.path in self._storage.changed:
            content = self._storage.changed[self.path]
            del content[size:]
            content += bytes(size - len(content))
        elif size <= self.size():
            self._storage.cut_at[self.path] = size
        else:
            content = self._storage.own_copy(self.path)
            content += bytes(size - len(content))

    def allocate(self, size: int) -> None:
        """Nothing is written, so no space is needed."""

    def datasync(self) -> None:
        """Nothing is written, so nothing is synced."""

    def size(self) -> int:
        return self._storage.stat(self.path)[0]

    def check_in_place(self) -> None:
        """Nobody waits here for files to go."""

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __del__(self) -> None:
        self.close()


class ReadOnlyStorage(DiskLooks):
    """The files below, and what would have become of them."""

    def __init__(self) -> None:
        self.changed: dict[str, bytearray] = {}
        self.patches: dict[str, list[Patch]] = {}
        self.cut_at: dict[str, int] = {}
        self.gone: set[str] = set()
        self.bytes_read = BytesRead()
        self._sizes: dict[str, tuple[int, int]] = {}

    def own_copy(self, path: str) -> bytearray:
        """The content of a file, in memory from now on."""
        if path not in self.changed:
            size = self.stat(path)[0] if self.exists(path) else 0
            if size > SMALL_FILE_BYTES:
                raise StorageFault(f"{path} is to be changed, but {size} bytes are too many to copy", path=path)
            self.changed[path] = bytearray(self.read_all(path)) if size else bytearray()
            self.gone.discard(path)
        return self.changed[path]

    def open(self, path: str) -> ReadOnlyFile:
        return ReadOnlyFile(self, path)

    def open_apart(self, path: str) -> ReadOnlyFile:
        return ReadOnlyFile(self, path)

    def create(self, path: str) -> ReadOnlyFile:
        self.gone.discard(path)
        self.changed[path] = bytearray()
        return ReadOnlyFile(self, path)

    def list_dir(self, path: str) -> list[str]:
        here = {name for name in super().list_dir(path) if f"{path}/{name}" not in self.gone}
        return sorted(here | {own.rpartition("/")[2] for own in self.changed if parent_of(own) == path})

    def exists(self, path: str) -> bool:
        return path in self.changed or (path not in self.gone and super().exists(path))

    def stat(self, path: str) -> tuple[int, int]:
        """Size and mtime; the size of a file that grows meanwhile stays what it was when first asked for."""
        if path in self.changed:
            return len(self.changed[path]), 0
        if path in self.gone:
            raise FileMissing(f"stat {path}: it is gone", path=path)
        if path not in self._sizes:
            self._sizes[path] = super().stat(path)
        size, modified_ns = self._sizes[path]
        return min(size, self.cut_at.get(path, size)), modified_ns

    def set_mtime_ms(self, path: str, mtime_ms: int) -> None:
        """Times of files matter to retention only."""

    def rename(self, old: str, new: str) -> None:
        self.changed[new] = self.own_copy(old)
        self.remove(old)

    def remove(self, path: str) -> None:
        self.changed.pop(path, None)
        self.gone.add(path)

    def remove_dir(self, path: str) -> None:
        self.gone.add(path)

    def make_dir(self, path: str) -> None:
        raise StorageFault(f"{path} is not there, and nothing is made while only reading", path=path)

    def sync_dir(self, path: str) -> None:
        """Nothing is written, so nothing is synced."""

    def read_all(self, path: str) -> bytes:
        if path in self.changed:
            return bytes(self.changed[path])
        if path in self.gone:
            raise FileMissing(f"read {path}: it is gone", path=path)
        data = super().read_all(path)
        self.bytes_read.bytes += len(data)
        return with_patches(data[: self.cut_at.get(path)], 0, self.patches.get(path, ()))

    def write_atomically(self, path: str, data: bytes) -> None:
        self.gone.discard(path)
        self.changed[path] = bytearray(data)

    def disk_space(self, path: str) -> tuple[int, int]:  # noqa: ARG002 - the protocol's
        """As much as memory has, for all that anybody can tell."""
        return SMALL_FILE_BYTES, SMALL_FILE_BYTES

    def check_writable(self, path: str) -> None:
        """Memory is."""

    def lock(self, path: str) -> "ReadOnlyLock":  # noqa: ARG002 - the protocol's
        return ReadOnlyLock()


class ReadOnlyLock:
    """Readers lock nobody out."""

    def release(self) -> None:
        """Nothing was locked."""
