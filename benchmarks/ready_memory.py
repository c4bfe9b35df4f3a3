"""Memory as on a machine that has run for long: full of cached files, so that what a broker writes takes the place of what was there.

A virtual machine may give free memory back to its host, which then has to find a page at the first write to it. Measured on one such:
a write of 110 KB to a file takes 34 microseconds of CPU, and 260 where the host finds its pages. Which broker's turn meets such pages
is chance, and the difference is many times what its own code takes. Where no memory is free none is given back.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LEFT_FREE_BYTES = 256 << 20
PIECE = bytes(4 << 20)


def free_bytes() -> int:
    """What the kernel has no use for."""
    lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    fields = dict(line.split(":") for line in lines)
    return int(fields["MemFree"].split()[0]) * 1024


@contextmanager
def filled(folder: Path, wanted_bytes: int | None = None) -> Iterator[int]:
    """Fill free memory with the pages of a file in this folder, which is there until the end; yields its size.

    The disk keeps half of its room.
    """
    if wanted_bytes is None:
        wanted_bytes = max(0, min(free_bytes() - LEFT_FREE_BYTES, shutil.disk_usage(folder).free // 2))
    path = folder / "filling"
    count = wanted_bytes // len(PIECE)
    try:
        with path.open("wb") as file:
            for _ in range(count):
                file.write(PIECE)
        yield count * len(PIECE)
    finally:
        path.unlink()
