"""The disk of a machine as one of its processes sees it: the same files, faults and locks, and an end that is the process's own.

Between any two operations other processes may go on (`pause`), except while this one holds a lock that is taken in turn: who else wanted
it would wait, and so nobody is let on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from horolog.broker.log.storage import MemoryStorage
from horolog.broker.log.storage.memory_disk import ALL, PowerCut


class _Held:
    """A lock of one process."""

    def __init__(self, storage: ProcessStorage, path: str, *, in_turn: bool) -> None:
        self._storage = storage
        self.path = path
        self.in_turn = in_turn

    def release(self) -> None:
        self._storage.let_go(self)


class ProcessStorage(MemoryStorage):
    """See the module's docstring. `power_off_after` ends this process alone; asked of `disk`, it ends all at once."""

    def __init__(self, disk: MemoryStorage, pause: Callable[[str], None]) -> None:
        super().__init__(disk.now_ns)
        self._disk = disk
        self._pause = pause
        self._root = disk._root
        self._faults = disk._faults
        self.locks = disk.locks
        self.unwritable = disk.unwritable
        self._held: dict[_Held, None] = {}
        self.ends_after_write_to: list[str] = []
        """Parts of paths: the first of the processes that share the list ends when it has written there, before the disk has it."""

    def __repr__(self) -> str:
        return f"<ProcessStorage of {self._disk!r}{', ended' if self.has_ended else ''}>"

    @property
    def has_ended(self) -> bool:
        return self._changes_left <= 0 or self._disk._changes_left <= 0

    def end(self) -> None:
        """Whoever comes next may have what this process held."""
        self._changes_left = 0
        for held in list(self._held):
            self.let_go(held)

    def lock(self, path: str) -> Any:
        return self._hold(path, in_turn=False)

    def lock_in_turn(self, path: str) -> Any:
        self.file_node(path)
        return self._hold(path, in_turn=True)

    def _hold(self, path: str, *, in_turn: bool) -> _Held:
        super().lock(path)
        held = _Held(self, path, in_turn=in_turn)
        self._held[held] = None
        return held

    def let_go(self, held: _Held) -> None:
        if held in self._held:
            del self._held[held]
            self.locks.discard(held.path)

    def _fault_for(self, operation: str, path: str, *, raising: bool = True) -> Any:
        if not any(held.in_turn for held in self._held):
            self._pause(operation)
        if self.has_ended:
            raise PowerCut
        return super()._fault_for(operation, path, raising=raising)

    def count_change(self) -> bool:
        is_last = super().count_change()
        return self._disk.count_change() or is_last

    def change(self, operation: str, path: str, node: Any, position: int, data: bytes | None) -> None:
        self.capacity_bytes = self._disk.capacity_bytes
        if data and self._disk._changes_left == 1 and self._disk._last_write_bytes is not None:
            data = data[: self._disk._last_write_bytes]
        super().change(operation, path, node, position, data)
        if data and any(part in path for part in self.ends_after_write_to):
            self.ends_after_write_to.clear()
            self.end()
            raise PowerCut

    def disk_space(self, path: str) -> tuple[int, int]:
        return self._disk.disk_space(path)

    @property
    def ends_at_a_change(self) -> bool:
        """Whether its end is set."""
        return self._changes_left < ALL // 2
