"""How much free memory the C library keeps for the next requests, instead of giving it back to the system.

Left alone, glibc gives back what lies free at the end of its heap beyond 128 KiB, and takes larger blocks from the system one by
one. A broker takes and frees some hundred KiB with every request of many records: each time the kernel has to clear pages and
map them, which costs as much as the request itself.

What lies free behind some small object that is in use is not given back at all, however much it is: after a crowd of clients has left,
the process would stay as large as it was. `FreeMemory` has the library look for it when the process has grown and is calm.

Other C libraries have no such settings and stay as they are.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

# Of glibc's malloc.h.
TRIM_THRESHOLD: Final = -1
TOP_PAD: Final = -2
MMAP_THRESHOLD: Final = -3
_LEAST_MMAP_THRESHOLD: Final = 128 * 2**10  # glibc's own; with less, small blocks would be mapped one by one
_LARGEST_MMAP_THRESHOLD: Final = 32 * 2**20  # glibc refuses more: half of what a thread's heap may be
_LARGEST_TOP_PAD: Final = 2**20  # the steps in which the heap grows; pages without a write take no memory
LOOKS_EVERY_MS: Final = 15_000
GROWN_BYTES: Final = 4 * 2**20
"""The growth since free memory was last given back that makes it worth looking for more."""
CALM_SHARE: Final = 0.5
"""Of a processor. A busier process would take the memory again at once."""

_STATM: Final = Path("/proc/self/statm")


class FreeMemory:
    """Gives free memory back to the system, wherever it lies, once it is no longer needed."""

    __slots__ = ("_cpu_s", "_library", "_looked_s", "_resident", "_resident_bytes")

    def __init__(self, library: Any = None, resident: Callable[[], int] | None = None) -> None:
        self._library = library or _c_library()
        self._resident = resident or resident_bytes
        self._resident_bytes = self._resident()  # that cannot be given back
        self._looked_s, self._cpu_s = time.monotonic(), time.process_time()

    def __repr__(self) -> str:
        return f"<FreeMemory, of which nothing is in {self._resident_bytes} bytes>"

    def look(self) -> None:
        resident, now_s, cpu_s = self._resident(), time.monotonic(), time.process_time()
        is_calm = cpu_s - self._cpu_s < CALM_SHARE * (now_s - self._looked_s)
        self._looked_s, self._cpu_s = now_s, cpu_s
        if resident < self._resident_bytes + GROWN_BYTES:
            self._resident_bytes = min(resident, self._resident_bytes)
        elif is_calm and hasattr(self._library, "malloc_trim"):
            self._library.malloc_trim(0)
            self._resident_bytes = self._resident()


def resident_bytes() -> int:
    """The resident memory of the process; 0 if the system does not report it."""
    try:
        return int(_STATM.read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def keep_free_memory(keep_bytes: int, library: Any = None) -> bool:
    """Let up to `keep_bytes` lie free before any of it is given back; 0 changes nothing. Returns whether the C library accepted it."""
    if not keep_bytes:
        return False
    library = library or _c_library()
    if not hasattr(library, "gnu_get_libc_version"):
        return False
    mapped_from = min(max(keep_bytes, _LEAST_MMAP_THRESHOLD), _LARGEST_MMAP_THRESHOLD)
    taken = (
        library.mallopt(MMAP_THRESHOLD, mapped_from),
        library.mallopt(TRIM_THRESHOLD, keep_bytes),
        library.mallopt(TOP_PAD, min(keep_bytes, _LARGEST_TOP_PAD)),
    )
    return all(taken)


def _c_library() -> Any:
    import ctypes

    return ctypes.CDLL(None)
