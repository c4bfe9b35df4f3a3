"""A file system in memory that knows what has been synced, and fails, tears and loses power on demand (see `memory_disk`).

It has the semantics of `storage.RealStorage` and is stricter than most disks: what was not synced is gone after
`crash()`, a file whose folder was not synced vanishes with its contents, and with a random source any part of what was
not synced may have arrived, the last of it torn.
"""

import errno
from collections.abc import Sequence

from horolog.broker.log.storage.faults import FileMissing, FolderInUse, StorageFault
from horolog.broker.log.storage.memory_disk import ALL, MemoryDisk, PowerCut, disk_fault
from horolog.broker.log.storage.memory_tree import Folder, Node
from horolog.broker.log.storage.storage import parent_of
from horolog.protocol.primitives import Buffer


class MemoryFile:
    """One open file of a `MemoryStorage`."""

    __slots__ = ("_node", "_storage", "path")

    def __init__(self, storage: "MemoryStorage", path: str, node: Node | None) -> None:
        self._storage = storage
        self._node = node
        self.path = path

    def _opened(self) -> Node:
        if self._node is None:
            self._storage.check("open", self.path)
            self._node = self._storage.file_node(self.path)
        return self._node

    def pread(self, size: int, position: int) -> bytes:
        node = self._opened()
        self._storage.check("read", self.path)
        if position + size > node.size:
            missing = position + size - node.size
            raise StorageFault(f"read {self.path}: ends {missing} bytes before {position + size}", path=self.path)
        return bytes(node.data[position : position + size]).ljust(size, b"\0")

    def unread(self, size: int, position: int) -> None:
        """None: the file is in memory."""

    def withdraw(self) -> None:
        """Do nothing: no slice is handed out unread."""

    def pwritev(self, buffers: Sequence[Buffer], position: int) -> None:
        node = self._opened()
        data = b"".join(buffers)
        self._storage.change("write", self.path, node, position, data)

    def truncate(self, size: int) -> None:
        self._storage.change("truncate", self.path, self._opened(), size, None)

    def allocate(self, size: int) -> None:
        node = self._opened()
        if node.size < size:
            self._storage.change("write", self.path, node, node.size, bytes(size - node.size))

    def reserve(self, position: int, size: int) -> bool:  # noqa: ARG002
        """False: the file has no blocks."""
        return False

    def datasync(self) -> None:
        self._storage.sync_node(self.path, self._opened())

    def size(self) -> int:
        return self._opened().size

    def check_in_place(self) -> None:
        if self._storage.file_node(self.path) is not self._opened():
            raise FileMissing(f"{self.path} is gone: another file has its name", path=self.path)

    def close(self) -> None:
        self._node = None


class _MemoryLock:
    __slots__ = ("_locks", "_path")

    def __init__(self, locks: set[str], path: str) -> None:
        self._locks = locks
        self._path = path

    def release(self) -> None:
        self._locks.discard(self._path)


class MemoryStorage(MemoryDisk):
    """A storage over a disk in memory."""

    def open(self, path: str) -> MemoryFile:
        return MemoryFile(self, path, None)

    def open_apart(self, path: str, *, create: bool = False) -> MemoryFile:
        return self.create(path) if create else MemoryFile(self, path, self.file_node(path))

    def create(self, path: str) -> MemoryFile:
        self.check("create", path)
        node = self.node(path)
        if isinstance(node, Node):
            self.change("truncate", path, node, 0, None)
        else:
            node = Node(mtime_ns=self.now_ns())
            self.change_names(path, {_name(path): node})
        return MemoryFile(self, path, node)

    def list_dir(self, path: str) -> list[str]:
        self.check("list", path)
        return list(self.folder(path).names)

    def exists(self, path: str) -> bool:
        return self.node(path) is not None

    def is_dir(self, path: str) -> bool:
        return isinstance(self.node(path), Folder)

    def stat(self, path: str) -> tuple[int, int]:
        self.check("stat", path)
        node = self.file_node(path)
        return node.size, node.mtime_ns

    def set_mtime_ms(self, path: str, mtime_ms: int) -> None:
        """Set the time of a file's last change."""
        self.file_node(path).mtime_ns = mtime_ms * 1_000_000

    def rename(self, old: str, new: str) -> None:
        self.check("rename", old)
        node = self.node(old)
        if node is None:
            raise disk_fault("rename", old, errno.ENOENT)
        if parent_of(old) != parent_of(new):
            raise StorageFault(f"rename {old}: the log never moves a file to another folder", path=old)
        self.change_names(new, {_name(old): None, _name(new): node})

    def remove(self, path: str) -> None:
        self.check("remove", path)
        self.file_node(path)
        self.change_names(path, {_name(path): None})

    def remove_dir(self, path: str) -> None:
        self.check("remove", path)
        if self.folder(path).names:
            raise disk_fault("remove", path, errno.ENOTEMPTY)
        self.change_names(path, {_name(path): None})

    def make_dir(self, path: str) -> None:
        self.check("make", path)
        if self.node(path) is not None:
            raise disk_fault("make", path, errno.EEXIST)
        self.change_names(path, {_name(path): Folder()})

    def sync_dir(self, path: str) -> None:
        self.check("sync_dir", path)
        folder = self.folder(path)
        if self.count_change():
            raise PowerCut
        folder.durable = dict(folder.names)
        folder.changes = []

    def read_all(self, path: str) -> bytes:
        self.check("read", path)
        node = self.file_node(path)
        return bytes(node.data).ljust(node.size, b"\0")

    def write_atomically(self, path: str, data: bytes, *, synced: bool = True) -> None:
        aside = self.create(path + ".tmp")
        aside.pwritev([data], 0)
        if synced:
            aside.datasync()
        self.rename(path + ".tmp", path)
        if synced:
            self.sync_dir(parent_of(path))

    def disk_space(self, path: str) -> tuple[int, int]:  # noqa: ARG002 - there is one file system
        total = ALL if self.capacity_bytes is None else self.capacity_bytes
        return total, max(0, total - self.used_bytes())

    def lock(self, path: str) -> _MemoryLock:
        if path in self.locks:
            raise FolderInUse(f"lock {path}: another broker has this folder open", path=path, code=errno.EAGAIN)
        if not self.exists(path):
            self.create(path)
        self.locks.add(path)
        return _MemoryLock(self.locks, path)

    def lock_in_turn(self, path: str) -> _MemoryLock:
        """All users of this storage share one thread, so there is no wait."""
        self.file_node(path)
        return self.lock(path)


def _name(path: str) -> str:
    return path.rpartition("/")[2]
