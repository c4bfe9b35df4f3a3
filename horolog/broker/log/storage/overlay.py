"""A storage over another one: it reads that one's files, and keeps every change in memory.

It serves to try out and inspect recovery, to serve a read-only folder, and to read a partition whose disk is full until
there is room. Bytes rewritten unchanged take no memory; of files that recovery sets aside (`aside_names` has their names)
only the size is kept, so that memory does not depend on the damage.

Files are identified by their paths: an open file sees later changes under its path, also through another overlay that
shares the changes (`over`).
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from horolog.broker.log.storage import aside_names
from horolog.broker.log.storage.faults import FileMissing, FolderInUse, StorageFault
from horolog.broker.log.storage.storage import (
    CANNOT_WRITE,
    File,
    Lock,
    Storage,
    parent_of,
)
from horolog.protocol.primitives import Buffer

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Changed:
    """A file that differs from the one below: the first `kept_bytes` of `source`, and the writes over them."""

    source: str | None
    kept_bytes: int
    size_bytes: int
    modified_ns: int
    hollow: bool = False
    patches: list[tuple[int, bytearray]] = field(default_factory=list)

    def truncate(self, size_bytes: int) -> None:
        self.kept_bytes = min(self.kept_bytes, size_bytes)
        if size_bytes < self.size_bytes:
            self.patches = [(at, data[: size_bytes - at]) for at, data in self.patches if at < size_bytes]
        self.size_bytes = size_bytes

    def write(self, data: bytes, position: int) -> None:
        if not self.hollow:
            if self.patches and sum((self.patches[-1][0], len(self.patches[-1][1]))) == position:
                self.patches[-1][1].extend(data)
            else:
                self.patches.append((position, bytearray(data)))
        self.size_bytes = max(self.size_bytes, position + len(data))


ChangedFiles = dict[str, Changed | None]
"""By path; None for a file that was removed."""


class NoLock:
    def release(self) -> None:
        """Do nothing: no lock is held."""


class OverlayFile:
    """A file of an overlay; like a real one it is only a name until it is used."""

    __slots__ = ("_below", "_storage", "path")

    def __init__(self, storage: "OverlayStorage", path: str) -> None:
        self._storage = storage
        self._below: File | None = None
        self.path = path

    def pread(self, size: int, position: int) -> bytes:
        if self.path not in self._storage.changed:
            return self._source(self.path).pread(size, position)
        changed = self._storage.changed[self.path]
        if changed is None or position + size > changed.size_bytes:
            raise FileMissing(f"read {self.path}: it does not reach so far", path=self.path)
        data = bytearray(size)
        kept = min(max(changed.kept_bytes - position, 0), size)
        if kept and changed.source is not None:
            data[:kept] = self._source(changed.source).pread(kept, position)
        for at, patch in changed.patches:
            start, end = max(at, position), min(at + len(patch), position + size)
            if start < end:
                data[start - position : end - position] = patch[start - at : end - at]
        return bytes(data)

    def unread(self, size: int, position: int) -> None:
        """None: changes are in memory."""

    def withdraw(self) -> None:
        """Do nothing: no slice is handed out unread."""

    def _source(self, path: str) -> File:
        if self._below is None or self._below.path != path:
            self.close()
            self._below = self._storage.below.open(path)
        return self._below

    def pwritev(self, buffers: Sequence[Buffer], position: int) -> None:
        data = b"".join(buffers)
        there = min(max(self.size() - position, 0), len(data))
        if not there or data[:there] != self.pread(there, position):
            there = 0
        if there < len(data):
            self._storage.changing(self.path).write(data[there:], position + there)

    def truncate(self, size: int) -> None:
        if size != self.size():
            self._storage.changing(self.path).truncate(size)

    def allocate(self, size: int) -> None:
        self.truncate(max(size, self.size()))

    def reserve(self, position: int, size: int) -> bool:  # noqa: ARG002
        """False: changes are in memory."""
        return False

    def size(self) -> int:
        return self._storage.stat(self.path)[0]

    def datasync(self) -> None:
        """Nothing is to survive."""

    def check_in_place(self) -> None:
        if not self._storage.exists(self.path):
            raise FileMissing(f"{self.path} is gone", path=self.path)

    def close(self) -> None:
        if self._below is not None:
            self._below.close()
            self._below = None


def _held_by_nobody_else(_storage: "OverlayStorage", _path: str) -> Lock:
    """Changes kept in memory cannot be locked by another process."""
    return NoLock()


class OverlayStorage:
    """See the module's docstring. With `frees`, removals and renames are made below as well, if possible."""

    def __init__(self, below: Storage, changed: ChangedFiles | None = None, *, frees: bool = False) -> None:
        self.below = below
        self.changed: ChangedFiles = {} if changed is None else changed
        self._frees = frees
        self._made: set[str] = set()
        self.now_ns = below.now_ns

    def __repr__(self) -> str:
        return f"<OverlayStorage over {self.below!r}: {len(self.changed)} files changed>"

    def over(self, below: Storage) -> "OverlayStorage":
        """The same files with other descriptors, for a worker thread."""
        other = OverlayStorage(below, self.changed, frees=self._frees)
        other._made = self._made
        return other

    def changing(self, path: str) -> Changed:
        """The file's entry for a change, created if missing."""
        if path not in self.changed:
            size_bytes, modified_ns = self.below.stat(path)
            self.changed[path] = Changed(path, size_bytes, size_bytes, modified_ns)
        changed = self.changed[path]
        if changed is None:
            raise FileMissing(f"open {path}: it was removed", path=path)
        return changed

    def _new(self, path: str, data: bytes = b"") -> None:
        hollow = aside_names.parse_name(path.rpartition("/")[2].removesuffix(".tmp")) is not None
        self.changed[path] = new = Changed(None, 0, 0, self.now_ns(), hollow=hollow)
        new.write(data, 0)

    # -- the interface of a storage

    def open(self, path: str) -> OverlayFile:
        return OverlayFile(self, path)

    def open_apart(self, path: str, *, create: bool = False) -> OverlayFile:
        if create:
            return self.create(path)
        self.stat(path)
        return OverlayFile(self, path)

    def create(self, path: str) -> OverlayFile:
        self._new(path)
        return OverlayFile(self, path)

    def list_dir(self, path: str) -> list[str]:
        names = set() if path in self._made else set(self.below.list_dir(path))
        for changed, content in list(self.changed.items()):
            if parent_of(changed) == path:
                name = changed.rpartition("/")[2]
                (names.discard if content is None else names.add)(name)
        names.update(made.rpartition("/")[2] for made in self._made if parent_of(made) == path)
        return sorted(names)

    def exists(self, path: str) -> bool:
        if path in self.changed:
            return self.changed[path] is not None
        return path in self._made or self.below.exists(path)

    def is_dir(self, path: str) -> bool:
        return path in self._made or self.below.is_dir(path)

    def stat(self, path: str) -> tuple[int, int]:
        if path not in self.changed:
            return self.below.stat(path)
        changed = self.changed[path]
        if changed is None:
            raise FileMissing(f"stat {path}: it was removed", path=path)
        return changed.size_bytes, changed.modified_ns

    def set_mtime_ms(self, path: str, mtime_ms: int) -> None:
        """Set the time of a file's last change."""
        self.changing(path).modified_ns = mtime_ms * 1_000_000

    def read_all(self, path: str) -> bytes:
        if path not in self.changed:
            return self.below.read_all(path)
        file = OverlayFile(self, path)
        try:
            return file.pread(self.stat(path)[0], 0)
        finally:
            file.close()

    def write_atomically(self, path: str, data: bytes, *, synced: bool = True) -> None:  # noqa: ARG002
        self._new(path, data)

    def _done_below(self, path: str, change: Callable[[], None]) -> bool:
        """Try a change of names below, for a file that is unchanged there; whether it was made."""
        if not self._frees or path in self.changed:
            return False
        try:
            change()
        except FileMissing:
            raise
        except StorageFault as fault:
            if fault.code not in CANNOT_WRITE:
                raise
            return False
        return True

    def rename(self, old: str, new: str) -> None:
        if self._done_below(old, lambda: self.below.rename(old, new)):
            self.changed.pop(new, None)
            return
        if self.is_dir(old):
            raise StorageFault(f"rename {old}: folders keep their names in memory", path=old)
        content = self.changing(old)
        self.changed[old] = None
        self.changed[new] = content

    def remove(self, path: str) -> None:
        if self._done_below(path, lambda: self.below.remove(path)):
            return
        self.changing(path)
        self.changed[path] = None

    def make_dir(self, path: str) -> None:
        if self.exists(path):
            raise StorageFault(f"make {path}: it is there", path=path)
        self._made.add(path)

    def remove_dir(self, path: str) -> None:
        if path not in self._made:
            raise StorageFault(f"remove {path}: folders stay where they are", path=path)
        self._made.discard(path)

    def sync_dir(self, path: str) -> None:
        """Nothing is to survive."""

    def disk_space(self, path: str) -> tuple[int, int]:
        return self.below.disk_space(path)

    def check_writable(self, path: str) -> None:
        """Do nothing: memory is writable."""

    def lock(self, path: str) -> Lock:
        """Readers share the folder with other readers; if it cannot be locked, no process is kept out."""
        try:
            return self.below.lock(path)
        except FolderInUse:
            raise
        except StorageFault as fault:
            log.warning("the folder is read without a lock, so other processes can write to it: %s", fault)
            return NoLock()

    lock_in_turn = _held_by_nobody_else

    # -- the changes

    def differences(self) -> Iterator[tuple[str, Changed | None]]:
        """Files that differ from those below, None for removed ones. Files created and removed again are left out."""
        for path, content in sorted(self.changed.items()):
            if content is not None or self.below.exists(path):
                yield path, content
