"""A file system in memory that knows what has been synced, and fails, tears and loses power on demand.

It has the semantics of `storage.RealStorage` and is stricter than most disks: what was not synced is gone after
`crash()`, a file whose folder was not synced vanishes with its contents, and with a random source any part of what was
not synced may have arrived, the last of it torn.

Faults are asked for with `fail`: the next operations of a kind, on paths that contain a text, raise `StorageFault`;
a failed write may leave a part of its bytes behind, a failed sync forgets what it should have synced (as a kernel
does, which marks the pages clean): readers see it until they are `evicted`, a later sync succeeds and does not have it on the disk. `capacity_bytes` makes a full disk, `unwritable` files and folders that are only read. `power_off_after` ends the world at the n-th
operation that changes anything: from then on everything raises `PowerCut`. `die` is the milder end: the process is gone and
what it had written is there. `corrupt` damages what is at rest, and `while_syncing` is what goes on while a sync waits for the disk.
"""

import errno
import os
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from horolog.broker.log.storage.storage import Buffer, FileMissing, FolderInUse, StorageFault, fault, parent_of

ALL = 1 << 62
"""`times` for a fault that lasts until `heal`."""

_CHANGING = frozenset({"create", "write", "truncate", "rename", "remove", "make"})


class PowerCut(BaseException):
    """The machine has stopped; nothing may catch this and go on."""


@dataclass(slots=True)
class _Node:
    """A file: what a reader sees, what is on the disk, and the changes between the two in order.

    `data` may be shorter than the file, which then goes on with zeros that take no space.
    """

    data: bytearray = field(default_factory=bytearray)
    size: int = 0
    durable: bytearray = field(default_factory=bytearray)
    durable_size: int = 0
    changes: list[tuple[int, bytes | None]] = field(default_factory=list)  # (position, bytes), or (new size, None)
    mtime_ns: int = 0

    def apply(self, position: int, change: bytes | None) -> None:
        self.size = _apply(self.data, self.size, position, change)
        self.changes.append((position, change))

    def sync(self) -> None:
        """What has changed since the last sync gets to the disk, and nothing else does."""
        for position, change in self.changes:
            self.durable_size = _apply(self.durable, self.durable_size, position, change)
        self.changes = []

    def evict(self) -> None:
        """The cache gives up what it had: readers see the disk again, and zeros where it has nothing."""
        self.changes = []
        self.data = bytearray(self.durable[: self.size])


@dataclass(slots=True)
class _Folder:
    """A folder: names as they are, names as they are on the disk, and the changes between the two in order."""

    names: dict[str, "_Node | _Folder"] = field(default_factory=dict)
    durable: dict[str, "_Node | _Folder"] = field(default_factory=dict)
    changes: list[dict[str, "_Node | _Folder | None"]] = field(default_factory=list)

    def change(self, changes: dict[str, "_Node | _Folder | None"]) -> None:
        _apply_names(self.names, changes)
        self.changes.append(changes)


@dataclass(slots=True)
class _Fault:
    operation: str
    part: str
    times: int
    code: int
    torn_bytes: int
    evicting: bool


def _apply(data: bytearray, size: int, position: int, change: bytes | None) -> int:
    """Change `data` in place; gives the new size."""
    if change is None:
        del data[position:]
        return position
    if len(data) < position:
        data.extend(bytes(position - len(data)))
    data[position : position + len(change)] = change
    return max(size, position + len(change))


def _flipped(change: bytes | None, place: int, mask: int) -> bytes | None:
    """A change with a byte of it corrupted, if it has that place."""
    if change is None or not 0 <= place < len(change):
        return change
    return change[:place] + bytes([change[place] ^ mask]) + change[place + 1 :]


def _apply_names(names: dict[str, _Node | _Folder], changes: dict[str, _Node | _Folder | None]) -> None:
    for name, node in changes.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


class MemoryFile:
    """One open file of a `MemoryStorage`."""

    __slots__ = ("_node", "_storage", "path")

    def __init__(self, storage: "MemoryStorage", path: str, node: _Node | None) -> None:
        self._storage = storage
        self._node = node
        self.path = path

    def _opened(self) -> _Node:
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


class MemoryStorage:
    """See the module's docstring. `now_ns` gives the times of files; tests set or advance it."""

    def __init__(self, now_ns: Callable[[], int] = lambda: 0) -> None:
        self._root = _Folder()
        self._faults: list[_Fault] = []
        self._locks: set[str] = set()
        self._now_ns = now_ns
        self._changes_left = ALL
        self._last_write_bytes: int | None = None
        self.while_syncing: Callable[[], None] | None = None
        self.capacity_bytes: int | None = None
        self.unwritable: dict[str, int] = {}
        """Parts of paths that nothing is written to, with the error number that says why."""
        self.operations: dict[str, int] = {}
        """How often each kind of operation was asked for."""

    # What a test asks for.

    def fail(
        self,
        operation: str,
        part: str = "",
        *,
        times: int = 1,
        code: int = errno.EIO,
        torn_bytes: int = 0,
        evicting: bool = False,
    ) -> None:
        """Let the next `times` operations of this kind, on paths that contain `part`, fail.

        Kinds: open, create, read, write, truncate, sync, sync_dir, rename, remove, make, list, stat. `torn_bytes` of
        a failing write do arrive. A sync that fails `evicting` takes what it could not write out of the cache too.
        """
        self._faults.append(_Fault(operation, part, times, code, torn_bytes, evicting))

    def heal(self) -> None:
        """Every fault and the bound on space end."""
        self._faults.clear()
        self.capacity_bytes = None
        self.unwritable.clear()

    def power_off_after(self, changes: int, *, last_write_bytes: int | None = None) -> None:
        """From the n-th change of anything on, every operation raises `PowerCut`, until `crash` or `die`.

        Of the last change, if it is a write, no more than `last_write_bytes` arrive.
        """
        self._changes_left = changes
        self._last_write_bytes = last_write_bytes

    def crash(self, chance: random.Random | None = None, *, survival: float = 0.5) -> None:
        """Lose power: only what was synced remains, and with `chance` some of the rest, each piece whole or torn.

        `survival` is the share of unsynced writes that had reached the disk, in any order.
        """
        self.die()
        self._crash_folder(self._root, chance, survival)

    def die(self) -> None:
        """The process ends, the machine goes on: everything that was written is there, nobody holds a lock."""
        self._changes_left = ALL
        self._faults.clear()
        self._locks.clear()

    def corrupt(self, path: str, position: int, mask: int) -> None:
        """Flip bits of a byte at rest, in what is still on its way to the disk too; nothing tells that this has happened."""
        node = self.file_node(path)
        node.data.extend(bytes(max(0, position + 1 - len(node.data))))
        node.data[position] ^= mask
        if position < len(node.durable):
            node.durable[position] ^= mask
        node.changes = [(start, _flipped(change, position - start, mask)) for start, change in node.changes]

    def files(self) -> list[str]:
        """The paths of all files."""
        return list(_paths(self._root, ""))

    def used_bytes(self) -> int:
        """What all files hold together."""
        return _used(self._root)

    def _crash_folder(self, folder: _Folder, chance: random.Random | None, survival: float) -> None:
        kept = chance.randint(0, len(folder.changes)) if chance else 0
        for changes in folder.changes[:kept]:
            _apply_names(folder.durable, changes)
        folder.names = dict(folder.durable)
        folder.changes = []
        for node in folder.names.values():
            if isinstance(node, _Folder):
                self._crash_folder(node, chance, survival)
            else:
                _crash_node(node, chance, survival)

    # What the operations share.

    def check(self, operation: str, path: str) -> None:
        """Count the operation and let it fail if a fault is due."""
        self._fault_for(operation, path)

    def _fault_for(self, operation: str, path: str, *, raising: bool = True) -> _Fault | None:
        if self._changes_left <= 0:
            raise PowerCut
        self.operations[operation] = self.operations.get(operation, 0) + 1
        for due in self._faults:
            if due.operation == operation and due.part in path:
                due.times -= 1
                if not due.times:
                    self._faults.remove(due)
                if raising:
                    raise _fault(operation, path, due.code)
                return due
        if operation in _CHANGING:
            self.check_writable(path)
        return None

    def _count_change(self) -> bool:
        """Whether this change is the one at which the power fails."""
        self._changes_left -= 1
        return self._changes_left <= 0

    def change(self, operation: str, path: str, node: _Node, position: int, data: bytes | None) -> None:
        """Write or truncate, as far as faults, space and power let it."""
        due = self._fault_for(operation, path, raising=False)
        if due is not None:
            if data and due.torn_bytes:
                node.apply(position, data[: due.torn_bytes])
            raise _fault(operation, path, due.code)
        if data is not None and self.capacity_bytes is not None:
            self._check_space(path, node, position, data)
        if data and self._changes_left == 1 and self._last_write_bytes is not None:
            data = data[: self._last_write_bytes]
        node.apply(position, data)
        node.mtime_ns = self._now_ns()
        if self._count_change():
            raise PowerCut

    def _check_space(self, path: str, node: _Node, position: int, data: bytes) -> None:
        growth = max(0, position + len(data) - len(node.data))
        free = (self.capacity_bytes or 0) - self.used_bytes()
        if growth > max(0, free):
            node.apply(position, data[: max(0, len(data) - growth + max(0, free))])
            raise _fault("write", path, errno.ENOSPC)

    def sync_node(self, path: str, node: _Node) -> None:
        if self.while_syncing is not None:
            self.while_syncing()
        due = self._fault_for("sync", path, raising=False)
        if due is not None:
            # The kernel marks the pages clean: a later sync succeeds without having written them.
            node.changes = []
            if due.evicting:
                node.evict()
            raise _fault("sync", path, due.code)
        if self._count_change():
            raise PowerCut
        node.sync()

    def _node(self, path: str) -> "_Node | _Folder | None":
        node: _Node | _Folder | None = self._root
        for name in path.split("/"):
            if name:
                node = node.names.get(name) if isinstance(node, _Folder) else None
        return node

    def file_node(self, path: str) -> _Node:
        node = self._node(path)
        if not isinstance(node, _Node):
            raise _fault("open", path, errno.ENOENT)
        return node

    def _folder(self, path: str) -> _Folder:
        node = self._node(path)
        if not isinstance(node, _Folder):
            raise _fault("list", path, errno.ENOENT)
        return node

    def _change_names(self, path: str, changes: dict[str, "_Node | _Folder | None"]) -> None:
        self._folder(parent_of(path)).change(changes)
        if self._count_change():
            raise PowerCut

    # Storage.

    def open(self, path: str) -> MemoryFile:
        return MemoryFile(self, path, None)

    def open_apart(self, path: str) -> MemoryFile:
        return MemoryFile(self, path, self.file_node(path))

    def create(self, path: str) -> MemoryFile:
        self.check("create", path)
        node = self._node(path)
        if isinstance(node, _Node):
            self.change("truncate", path, node, 0, None)
        else:
            node = _Node(mtime_ns=self._now_ns())
            self._change_names(path, {_name(path): node})
        return MemoryFile(self, path, node)

    def list_dir(self, path: str) -> list[str]:
        self.check("list", path)
        return list(self._folder(path).names)

    def exists(self, path: str) -> bool:
        return self._node(path) is not None

    def is_dir(self, path: str) -> bool:
        return isinstance(self._node(path), _Folder)

    def stat(self, path: str) -> tuple[int, int]:
        self.check("stat", path)
        node = self.file_node(path)
        return node.size, node.mtime_ns

    def mtime_ms(self, path: str) -> int:
        return self.stat(path)[1] // 1_000_000

    def set_mtime_ms(self, path: str, mtime_ms: int) -> None:
        """Make a file as old as told."""
        self.file_node(path).mtime_ns = mtime_ms * 1_000_000

    def rename(self, old: str, new: str) -> None:
        self.check("rename", old)
        node = self._node(old)
        if node is None:
            raise _fault("rename", old, errno.ENOENT)
        if parent_of(old) != parent_of(new):
            raise StorageFault(f"rename {old}: the log never moves a file to another folder", path=old)
        self._change_names(new, {_name(old): None, _name(new): node})

    def remove(self, path: str) -> None:
        self.check("remove", path)
        self.file_node(path)
        self._change_names(path, {_name(path): None})

    def remove_dir(self, path: str) -> None:
        self.check("remove", path)
        if self._folder(path).names:
            raise _fault("remove", path, errno.ENOTEMPTY)
        self._change_names(path, {_name(path): None})

    def make_dir(self, path: str) -> None:
        self.check("make", path)
        if self._node(path) is not None:
            raise _fault("make", path, errno.EEXIST)
        self._change_names(path, {_name(path): _Folder()})

    def sync_dir(self, path: str) -> None:
        self.check("sync_dir", path)
        folder = self._folder(path)
        if self._count_change():
            raise PowerCut
        folder.durable = dict(folder.names)
        folder.changes = []

    def read_all(self, path: str) -> bytes:
        self.check("read", path)
        node = self.file_node(path)
        return bytes(node.data).ljust(node.size, b"\0")

    def write_atomically(self, path: str, data: bytes) -> None:
        aside = self.create(path + ".tmp")
        aside.pwritev([data], 0)
        aside.datasync()
        self.rename(path + ".tmp", path)
        self.sync_dir(parent_of(path))

    def disk_space(self, path: str) -> tuple[int, int]:  # noqa: ARG002 - there is one file system
        total = ALL if self.capacity_bytes is None else self.capacity_bytes
        return total, max(0, total - self.used_bytes())

    def check_writable(self, path: str) -> None:
        for part, code in self.unwritable.items():
            if part in path:
                raise _fault("write", path, code)

    def lock(self, path: str) -> _MemoryLock:
        if path in self._locks:
            raise FolderInUse(f"lock {path}: another broker has this folder open", path=path, code=errno.EAGAIN)
        if not self.exists(path):
            self.create(path)
        self._locks.add(path)
        return _MemoryLock(self._locks, path)


def _fault(operation: str, path: str, code: int) -> StorageFault:
    return fault(operation, path, OSError(code, os.strerror(code)))


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _used(folder: _Folder) -> int:
    return sum(_used(node) if isinstance(node, _Folder) else len(node.data) for node in folder.names.values())


def _paths(folder: _Folder, above: str) -> Iterator[str]:
    for name, node in folder.names.items():
        if isinstance(node, _Folder):
            yield from _paths(node, f"{above}/{name}")
        else:
            yield f"{above}/{name}"


def _crash_node(node: _Node, chance: random.Random | None, survival: float) -> None:
    data, size = bytearray(node.durable), node.durable_size
    if chance:
        for position, change in node.changes:
            if chance.random() < survival:
                torn = change[: chance.randint(0, len(change))] if change and chance.random() < 0.2 else change
                size = _apply(data, size, position, torn)
    node.data, node.size = data, size
    node.durable, node.durable_size = bytearray(data), size
    node.changes = []
