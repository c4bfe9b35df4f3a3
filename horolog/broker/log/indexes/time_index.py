"""The time index of one segment: from which record on something at or after a time can be found.

File `<base offset, 20 digits>.timeindex`, entries of 12 bytes, big-endian, both fields increasing:

    timestamp         int64   the largest timestamp in the segment so far, in milliseconds since the epoch
    relative offset   int32   offset of the record that holds it, - base offset of the segment

An entry is considered whenever an offset index entry is written, after it, and includes the bytes being appended just
then; it is added only if its timestamp is greater than the last one's. On roll and on close the largest timestamp is
added in the same way, so that the last entry of a closed segment has it. The offset is that of the record itself in
plain v0 and v1 sets (the first one among equals), of a compressed set or a v2 batch its last offset. Records without a time,
transaction markers and batches that the cleaner has emptied add nothing; a segment of such has an empty file.

An entry (T, O) promises that every record later than T lies behind O. And because an entry is considered at *every* entry
of the offset index, the first record at or after a time T' lies between two neighbours of the offset index, however
disordered the timestamps are: see `lookup.start_position`. One slot is kept for the closing entry, so an index
counts as full with one entry less than would fit.
"""

from struct import Struct
from typing import ClassVar, Final

from mypy_extensions import i64

from horolog.broker.log.indexes.index_file import Entries, IndexFile

ENTRY: Final = Struct(">qi")
_ENTRY_BYTES: Final[i64] = ENTRY.size
_read_entry: Final = ENTRY.unpack_from
_read_timestamp: Final = Struct(">q").unpack_from


class TimeIndex(IndexFile):
    __slots__ = ()

    ENTRY: ClassVar[Struct] = ENTRY

    @property
    def is_full(self) -> bool:
        return len(self.entries) >= self.max_bytes - ENTRY.size

    @property
    def last_timestamp(self) -> int:
        """-1 while there is no entry."""
        if not self.entries:
            return -1
        timestamp: int = _read_timestamp(self.entries, len(self.entries) - 12)[0]
        return timestamp

    def append(self, timestamp: int, relative_offset: int) -> None:
        """Add an entry if its timestamp is greater than the last one's."""
        if timestamp > self.last_timestamp:
            self.entries += ENTRY.pack(timestamp, relative_offset)
            assert ends_in_order(self.entries), f"{self!r} got {timestamp} at {relative_offset}"


def ends_in_order(entries: Entries) -> bool:
    """Whether the last entry lies behind the one before. Asserted of entries that are added, and asked of a file that is loaded."""
    size = len(entries)
    if size % 12 or size < 24:
        return not size % 12
    before, at = _read_entry(entries, size - 24)
    last, behind = _read_entry(entries, size - 12)
    return bool(before < last and at < behind)


def first_at_or_after(entries: Entries, timestamp: int) -> tuple[int, int, int] | None:
    """The first entry (its number, timestamp, relative offset) that is not before `timestamp`."""
    low: i64 = 0
    high: i64 = len(entries) // _ENTRY_BYTES
    while low < high:  # `bisect` would need a call for each entry
        middle: i64 = (low + high) // 2
        if _read_timestamp(entries, middle * _ENTRY_BYTES)[0] < timestamp:
            low = middle + 1
        else:
            high = middle
    if low * _ENTRY_BYTES >= len(entries):
        return None
    found, relative_offset = _read_entry(entries, low * _ENTRY_BYTES)
    return low, found, relative_offset
