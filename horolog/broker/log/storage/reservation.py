"""Sets blocks of the disk aside for bytes that a file is about to get, without a change of its size.

Writes into such blocks take less time: the file system finds room once for all of them. Python has `posix_fallocate` only, which makes
the file larger, and where the file system cannot do it writes zeros instead.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

KEEP_SIZE: Final = 1
"""The mode of Linux's `fallocate`, FALLOC_FL_KEEP_SIZE."""


def reserve(descriptor: int, position: int, size_bytes: int) -> bool:
    """Whether the file system has set the blocks aside. If not, writes work all the same."""
    return _fallocate()(descriptor, KEEP_SIZE, position, size_bytes) == 0


@cache
def _fallocate() -> Callable[[int, int, int, int], int]:
    import ctypes

    found: Callable[[int, int, int, int], int] | None = getattr(ctypes.CDLL(None), "fallocate", None)
    if found is None:
        return _is_not_there
    found.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long)  # type: ignore[attr-defined]
    return found


def _is_not_there(_descriptor: int, _mode: int, _position: int, _size_bytes: int) -> int:
    return -1
