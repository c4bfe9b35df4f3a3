"""The common base of a segment's two index files: fixed-size big-endian entries, held in memory as the bytes of the file.

A file is only ever appended to. While its segment is active it is preallocated, with zeros, to `segment.index.bytes`
rounded down to whole entries; on roll and on close it is cut to its entries. So a file has one of two sizes: as
large as it may become, or exactly as large as it is. Which bytes may be believed is decided by `seals`, not here.

`entries` is the truth while the segment is open; `flush` writes what the file does not have yet. The file's
descriptor is opened by the first write or read, never before.
"""

from struct import Struct
from typing import ClassVar

from horolog.broker.log.storage import File, Storage

Entries = bytearray | bytes

LARGEST_RELATIVE_OFFSET = 2**31 - 1
"""Indexes keep offsets relative to the segment's base, in 31 bits: no segment reaches further."""


class IndexFile:
    """The entries of one index file, and how many of them are in the file."""

    __slots__ = ("_file", "_storage", "_written", "entries", "max_bytes", "path")

    ENTRY: ClassVar[Struct]

    def __init__(self, storage: Storage, path: str, max_bytes: int, entries: bytes = b"") -> None:
        self._storage = storage
        self._file: File | None = None
        assert len(entries) % self.ENTRY.size == 0, f"{len(entries)} bytes are not whole entries: {path}"
        self._written = len(entries)
        self.path = path
        self.entries = bytearray(entries)
        self.max_bytes = max_bytes - max_bytes % self.ENTRY.size

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.path}: {len(self)} entries, {self.max_bytes // self.ENTRY.size} at most>"

    def __len__(self) -> int:
        return len(self.entries) // self.ENTRY.size

    def create(self) -> None:
        """Create the file again, preallocated."""
        self._file = self._storage.create(self.path)
        self._file.truncate(self.max_bytes)
        self._written = 0

    def preallocate(self) -> None:
        """Grow the file of a segment that takes appends again."""
        self._opened().truncate(max(self.max_bytes, len(self.entries)))

    def flush(self) -> None:
        """Write the entries that are not in the file yet."""
        if self._written != len(self.entries):
            self._opened().pwritev([bytes(memoryview(self.entries)[self._written :])], self._written)
            self._written = len(self.entries)

    def trim(self) -> None:
        """Write the missing entries and cut the file behind them."""
        assert len(self.entries) % self.ENTRY.size == 0, f"{self!r}: {len(self.entries)} bytes are not whole entries"
        self.flush()
        self._opened().truncate(len(self.entries))

    def rewrite(self) -> None:
        """Overwrite the file with the entries; it is created if it is missing."""
        self._file = self._storage.create(self.path)
        self._written = 0
        self.flush()

    def cut_back(self, size_bytes: int) -> None:
        """Drop the entries behind `size_bytes`; those in the file are overwritten or cut off later."""
        assert size_bytes % self.ENTRY.size == 0, f"{self!r} cut to {size_bytes} bytes"
        assert size_bytes <= len(self.entries), f"{self!r} cut to {size_bytes} bytes"
        self._written = min(self._written, size_bytes)
        del self.entries[size_bytes:]

    def datasync(self) -> None:
        """Sync the file; safe in a worker thread."""
        file = self._file
        if file is not None:
            file.datasync()

    def close(self) -> None:
        """Close the descriptor; the next use opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _opened(self) -> File:
        if self._file is None:
            self._file = self._storage.open(self.path)
        return self._file
