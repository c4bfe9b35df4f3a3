"""Memory that the machine has at hand, so that the page cache of a broker is not paid for by whoever writes first.

A virtual machine may give free memory back to its host, which then has to find a page at the first write to it. Measured on one such:
a write of 110 KB to a file takes 34 microseconds of CPU, and 260 where the host finds its pages. Which broker's turn meets such pages
is chance, and the difference is many times what its own code takes. A host takes free memory back seconds later, so
it is touched right before each load that writes much.
"""

import mmap
from pathlib import Path

WRITES_MUCH = ("raw", "oldproduce", "clientproduce")
"""Modes of `benchmarks.load`."""

MOST_BYTES = 3 << 30
MADV_POPULATE_WRITE = 23
PAGE_BYTES = mmap.PAGESIZE


def available_bytes() -> int:
    """What the kernel has without taking anything from anybody."""
    lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    fields = dict(line.split(":") for line in lines)
    return int(fields["MemAvailable"].split()[0]) * 1024


def touch(wanted_bytes: int | None = None) -> int:
    """Write to so many bytes of free memory and free them again; how many they were. By default a quarter of what there is."""
    size_bytes = min(MOST_BYTES, available_bytes() // 4) if wanted_bytes is None else wanted_bytes
    size_bytes -= size_bytes % PAGE_BYTES
    if not size_bytes:
        return 0
    with mmap.mmap(-1, size_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        try:
            memory.madvise(MADV_POPULATE_WRITE)
        except OSError:  # a kernel before 5.14
            for at in range(0, size_bytes, PAGE_BYTES):
                memory[at] = 1
    return size_bytes
