"""How much free memory the C library keeps for the next requests, instead of giving it back to the system.

Left alone, glibc gives back what lies free at the end of its heap beyond 128 KiB, and takes larger blocks from the system one by
one. A broker takes and frees some hundred KiB with every request of many records: each time the kernel has to clear pages and
map them, which costs as much as the request itself.

Other C libraries have no such settings and stay as they are.
"""

from typing import Any, Final

# Of glibc's malloc.h.
TRIM_THRESHOLD: Final = -1
TOP_PAD: Final = -2
MMAP_THRESHOLD: Final = -3
_LEAST_MMAP_THRESHOLD: Final = 128 * 2**10  # glibc's own; with less, small blocks would be mapped one by one
_LARGEST_MMAP_THRESHOLD: Final = 32 * 2**20  # glibc refuses more: half of what a thread's heap may be
_LARGEST_TOP_PAD: Final = 2**20  # the steps in which the heap grows; pages that nobody has written to take no memory


def keep_free_memory(keep_bytes: int, library: Any = None) -> bool:
    """Let up to `keep_bytes` lie free before any of it is given back; 0 changes nothing. Whether the C library took it."""
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
