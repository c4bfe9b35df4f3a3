"""Storages that can be full on demand, in memory and on the disk: whatever takes space then fails as on a full disk.

Reading, removing and truncating still work. Each write checks whether its file has no space left, in test brokers only.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

from horolog.broker.log.storage import MemoryStorage, RealFile, RealStorage, fault
from horolog.protocol.primitives import Buffer

TAKES_SPACE = frozenset({"create", "write", "make"})


class Fullness:
    """The files for which there is no space left."""

    def __init__(self) -> None:
        self._patterns: list[re.Pattern[str]] = []

    def __repr__(self) -> str:
        return f"<Fullness of {[one.pattern for one in self._patterns]}>"

    def fill(self, topic: str | None = None, partition: int | None = None) -> re.Pattern[str]:
        """Fill the whole disk, or the folders of a topic or of one partition; returns the argument for `clear`."""
        index = r"\d+" if partition is None else str(partition)
        pattern = re.compile("" if topic is None else rf"/{re.escape(topic)}-{index}(/|$)")
        self._patterns.append(pattern)
        return pattern

    def clear(self, pattern: re.Pattern[str]) -> None:
        self._patterns.remove(pattern)

    def covers(self, path: str) -> bool:
        return any(one.search(path) for one in self._patterns)


class FillableMemory(MemoryStorage):
    """A disk in memory."""

    def __init__(self, now_ns: Callable[[], int], fullness: Fullness) -> None:
        super().__init__(now_ns)
        self._fullness = fullness

    def copied(self, *, synced_only: bool = False) -> FillableMemory:
        """The same files as they are now, without locks; or only what a power cut would leave of them."""
        found = FillableMemory(self.now_ns, self._fullness)
        found._root = deepcopy(self._root)
        if synced_only:
            found.crash()
        return found

    def check(self, operation: str, path: str) -> None:
        self._check_space_for(operation, path)
        super().check(operation, path)

    def change(self, operation: str, path: str, node: Any, position: int, data: bytes | None) -> None:
        self._check_space_for(operation, path)
        super().change(operation, path, node, position, data)

    def _check_space_for(self, operation: str, path: str) -> None:
        if operation in TAKES_SPACE:
            _check(operation, path, self._fullness)


class FillableFile(RealFile):
    """A file of a `FillableDisk`."""

    __slots__ = ("_fullness",)

    def __init__(self, storage: RealStorage, path: str, fullness: Fullness) -> None:
        super().__init__(storage, path)
        self._fullness = fullness

    def pwritev(self, buffers: Sequence[Buffer], position: int) -> None:
        _check("write", self.path, self._fullness)
        super().pwritev(buffers, position)

    def allocate(self, size: int) -> None:
        _check("allocate", self.path, self._fullness)
        super().allocate(size)


class FillableDisk(RealStorage):
    """The disk of this machine."""

    def __init__(self, fullness: Fullness) -> None:
        super().__init__()
        self._fullness = fullness

    def open(self, path: str) -> RealFile:
        return FillableFile(self, path, self._fullness)

    def create(self, path: str) -> RealFile:
        _check("create", path, self._fullness)
        super().create(path).close()
        return self.open(path)

    def make_dir(self, path: str) -> None:
        _check("make", path, self._fullness)
        super().make_dir(path)

    def write_atomically(self, path: str, data: bytes, *, synced: bool = True) -> None:
        _check("write", path, self._fullness)
        super().write_atomically(path, data, synced=synced)


def _check(operation: str, path: str, fullness: Fullness) -> None:
    if fullness.covers(path):
        raise fault(operation, path, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
