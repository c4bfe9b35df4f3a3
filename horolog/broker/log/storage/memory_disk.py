"""A disk in memory that fails, tears, fills up and loses power on demand; `memory_storage` makes it a storage.

Faults are asked for with `fail`: the next operations of a kind, on paths that contain a text, raise `StorageFault`;
a failed write may leave a part of its bytes behind, a failed sync forgets what it should have synced (as a kernel
does, which marks the pages clean): readers see it until they are `evicted`, a later sync succeeds and does not have it on the disk. `capacity_bytes` makes a full disk, `unwritable` files and folders that are only read. `power_off_after` ends the world at the n-th
operation that changes anything: from then on everything raises `PowerCut`. `die` is the milder end: the process is gone and
what it had written is there. `corrupt` damages bytes at rest, and `while_syncing` runs while a sync waits for the disk.
"""

import errno
import os
import random
from collections.abc import Callable
from dataclasses import dataclass

from horolog.broker.log.storage import memory_tree
from horolog.broker.log.storage.faults import StorageFault, fault
from horolog.broker.log.storage.memory_tree import Folder, Node
from horolog.broker.log.storage.storage import (
    parent_of,
)

ALL = 1 << 62
"""The `times` of a fault that lasts until `heal`."""

_CHANGING = frozenset({"create", "write", "truncate", "rename", "remove", "make"})


class PowerCut(BaseException):
    """The machine has stopped; no code may catch this and go on."""


@dataclass(slots=True)
class _Fault:
    operation: str
    part: str
    times: int
    code: int
    torn_bytes: int
    evicting: bool


class MemoryDisk:
    """See the module's docstring. `now_ns` gives the times of files; tests set or advance it."""

    def __init__(self, now_ns: Callable[[], int] = lambda: 0) -> None:
        self._root = Folder()
        self._faults: list[_Fault] = []
        self.locks: set[str] = set()
        self.now_ns = now_ns
        self._changes_left = ALL
        self._last_write_bytes: int | None = None
        self.while_syncing: Callable[[], None] | None = None
        self.capacity_bytes: int | None = None
        self.unwritable: dict[str, int] = {}
        """Parts of paths that cannot be written, each with the error number."""
        self.operations: dict[str, int] = {}
        """How often each kind of operation was called."""

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
        """End every fault and the bound on space."""
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
        memory_tree.crash(self._root, chance, survival)

    def die(self) -> None:
        """The process ends, the machine goes on: everything written is kept, all locks are free."""
        self._changes_left = ALL
        self._faults.clear()
        self.locks.clear()

    def corrupt(self, path: str, position: int, mask: int) -> None:
        """Flip bits of a byte, at rest or still in unsynced changes; no error shows it."""
        node = self.file_node(path)
        node.data.extend(bytes(max(0, position + 1 - len(node.data))))
        node.data[position] ^= mask
        if position < len(node.durable):
            node.durable[position] ^= mask
        node.changes = [(start, memory_tree.flipped(change, position - start, mask)) for start, change in node.changes]

    def files(self) -> list[str]:
        """The paths of all files."""
        return list(memory_tree.paths(self._root, ""))

    def used_bytes(self) -> int:
        """The size of all files together."""
        return memory_tree.used_bytes(self._root)

    # Shared by the operations.

    def check(self, operation: str, path: str) -> None:
        """Count the operation, and raise the fault if one is due."""
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
                    raise disk_fault(operation, path, due.code)
                return due
        if operation in _CHANGING:
            self.check_writable(path)
        return None

    def count_change(self) -> bool:
        """Whether the power fails at this change."""
        self._changes_left -= 1
        return self._changes_left <= 0

    def change(self, operation: str, path: str, node: Node, position: int, data: bytes | None) -> None:
        """Write or truncate, as far as faults, space and power let it."""
        due = self._fault_for(operation, path, raising=False)
        if due is not None:
            if data and due.torn_bytes:
                node.apply(position, data[: due.torn_bytes])
            raise disk_fault(operation, path, due.code)
        if data is not None and self.capacity_bytes is not None:
            self._check_space(path, node, position, data)
        if data and self._changes_left == 1 and self._last_write_bytes is not None:
            data = data[: self._last_write_bytes]
        node.apply(position, data)
        node.mtime_ns = self.now_ns()
        if self.count_change():
            raise PowerCut

    def _check_space(self, path: str, node: Node, position: int, data: bytes) -> None:
        growth = max(0, position + len(data) - len(node.data))
        free = (self.capacity_bytes or 0) - self.used_bytes()
        if growth > max(0, free):
            node.apply(position, data[: max(0, len(data) - growth + max(0, free))])
            raise disk_fault("write", path, errno.ENOSPC)

    def sync_node(self, path: str, node: Node) -> None:
        if self.while_syncing is not None:
            self.while_syncing()
        due = self._fault_for("sync", path, raising=False)
        if due is not None:
            # The kernel marks the pages clean: a later sync succeeds without having written them.
            node.changes = []
            if due.evicting:
                node.evict()
            raise disk_fault("sync", path, due.code)
        if self.count_change():
            raise PowerCut
        node.sync()

    def node(self, path: str) -> "Node | Folder | None":
        node: Node | Folder | None = self._root
        for name in path.split("/"):
            if name:
                node = node.names.get(name) if isinstance(node, Folder) else None
        return node

    def file_node(self, path: str) -> Node:
        node = self.node(path)
        if not isinstance(node, Node):
            raise disk_fault("open", path, errno.ENOENT)
        return node

    def folder(self, path: str) -> Folder:
        node = self.node(path)
        if not isinstance(node, Folder):
            raise disk_fault("list", path, errno.ENOENT)
        return node

    def change_names(self, path: str, changes: dict[str, "Node | Folder | None"]) -> None:
        self.folder(parent_of(path)).change(changes)
        if self.count_change():
            raise PowerCut

    def check_writable(self, path: str) -> None:
        for part, code in self.unwritable.items():
            if part in path:
                raise disk_fault("write", path, code)


def disk_fault(operation: str, path: str, code: int) -> StorageFault:
    return fault(operation, path, OSError(code, os.strerror(code)))
