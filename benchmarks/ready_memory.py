"""Memory as on a machine that has run for long: full of cached files, so that what a broker writes takes the place of what was there.

A virtual machine may give free memory back to its host, which then has to find a page at the first write to it. Measured on one such:
a write of 110 KB to a file takes 34 microseconds of CPU, and 260 where the host finds its pages. Which broker's turn meets such pages
is chance, and the difference is many times what its own code takes. Where no memory is free none is given back.
"""

import itertools
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

WRITES_MUCH = ("raw", "oldproduce", "clientproduce", "clientproducers", "javaproduce")
"""Modes of `benchmarks.load`. Others are not filled for: their records have to stay where they are, in the page cache."""

READS_KEPT_RECORDS = ("consume", "clientconsume", "share", "timelookup", "maxlookup", "oldlookup", "halfload")
"""Modes that read a topic written long before, which may have left the page cache since."""

LEFT_FREE_BYTES = 256 << 20
PIECE_BYTES = 4 << 20


def free_bytes() -> int:
    """What the kernel has no use for."""
    lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    fields = dict(line.split(":") for line in lines)
    return int(fields["MemFree"].split()[0]) * 1024


def read_whole(folder: Path) -> int:
    """Have the folder's files in the page cache; how many bytes they are."""
    size_bytes = 0
    for path in folder.iterdir():
        with path.open("rb", buffering=0) as file:
            while piece := file.read(PIECE_BYTES):
                size_bytes += len(piece)
    return size_bytes


class Filling:
    """A file whose pages fill the memory that nobody else needs."""

    def __init__(self, file: BinaryIO, size_bytes: int) -> None:
        self._file = file
        self._pieces = size_bytes // PIECE_BYTES
        self._next = 0
        file.writelines(itertools.repeat(bytes(PIECE_BYTES), self._pieces))
        os.fsync(file.fileno())

    def __repr__(self) -> str:
        return f"<Filling of {self.size_bytes >> 20:,} MiB>"

    @property
    def size_bytes(self) -> int:
        return self._pieces * PIECE_BYTES

    def again(self) -> int:
        """Fill what has become free since; how many pieces were read for it. Read, for written pages have to go to the disk.

        The kernel gives up the pages first that were used longest ago, so one round through the file finds them.
        """
        count = 0
        while count < self._pieces and free_bytes() > LEFT_FREE_BYTES:
            os.pread(self._file.fileno(), PIECE_BYTES, self._next * PIECE_BYTES)
            self._next = (self._next + 1) % self._pieces
            count += 1
        return count


@contextmanager
def filled(folder: Path) -> Iterator[Filling]:
    """Fill free memory with a file in this folder, which is there until the end. The disk keeps half of its room."""
    wanted_bytes = max(0, min(free_bytes() - LEFT_FREE_BYTES, shutil.disk_usage(folder).free // 2))
    path = folder / "filling"
    try:
        with path.open("wb+", buffering=0) as file:
            yield Filling(file, wanted_bytes)
    finally:
        path.unlink()
