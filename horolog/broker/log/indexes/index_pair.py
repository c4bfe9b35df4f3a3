"""The two indexes of one segment, which grow together: a time entry is considered at every entry of the offset index."""

from typing import NamedTuple

from horolog.broker.log.indexes.offset_index import OffsetIndex
from horolog.broker.log.indexes.time_index import TimeIndex
from horolog.broker.log.storage import Storage


class IndexPair(NamedTuple):
    """Offsets are relative to the segment's base here, as in the files."""

    offsets: OffsetIndex
    times: TimeIndex

    @classmethod
    def at(
        cls, storage: Storage, paths: tuple[str, str], max_bytes: int, entries: tuple[bytes, bytes] = (b"", b"")
    ) -> "IndexPair":
        """Make both, each with its path, the entries in its file, and the maximum size of the file."""
        (offsets_at, times_at), (offset_entries, time_entries) = paths, entries
        return cls(
            OffsetIndex(storage, offsets_at, max_bytes, offset_entries),
            TimeIndex(storage, times_at, max_bytes, time_entries),
        )

    @property
    def is_full(self) -> bool:
        return self.offsets.is_full or self.times.is_full

    @property
    def size_bytes(self) -> int:
        """The memory of both."""
        return len(self.offsets.entries) + len(self.times.entries)

    def create(self) -> None:
        """Create both files again, preallocated."""
        self.offsets.create()
        self.times.create()

    def preallocate(self) -> None:
        """Grow the files of a segment that takes appends again."""
        self.offsets.preallocate()
        self.times.preallocate()

    def append(self, offset: int, position: int, timestamp: int, timestamp_offset: int) -> None:
        """What lies at a position, and the largest timestamp up to and with it; -1 if there is none."""
        self.offsets.append(offset, position)
        if timestamp >= 0:
            self.times.append(timestamp, timestamp_offset)

    def flush(self) -> None:
        """Write the entries that are not in the files yet."""
        self.offsets.flush()
        self.times.flush()

    def cut_back(self, offset_bytes: int, time_bytes: int) -> None:
        """Drop the entries behind these sizes."""
        self.offsets.cut_back(offset_bytes)
        self.times.cut_back(time_bytes)

    def trim(self) -> None:
        """Write the missing entries and cut the files behind them."""
        self.offsets.trim()
        self.times.trim()

    def rewrite(self) -> None:
        """Overwrite the files with the entries."""
        self.offsets.rewrite()
        self.times.rewrite()

    def datasync(self) -> None:
        """Sync both files; safe in a worker thread."""
        self.offsets.datasync()
        self.times.datasync()

    def close(self) -> None:
        """Close the descriptors."""
        self.offsets.close()
        self.times.close()
