"""The offset index of one segment: where in the log file to begin looking for an offset.

File `<base offset, 20 digits>.index`, entries of 8 bytes, big-endian, both fields increasing:

    relative offset   int32   offset - base offset of the segment
    position          int32   byte position in the log file of the batch (or message) that the entry names

An entry is added before an append, and inside one append between two messages, when more than `index.interval.bytes`
were appended since the last one; so the first batch of a segment never gets one. For format v2 the entry names the *last*
offset of the batch at `position`, for v0 and v1 the *first* (of a compressed set: its first inner offset). Either
way, an offset at or above the entry's lies at or behind `position`, and an offset below it may lie in that batch (v2) or
before it.
"""

from struct import Struct
from typing import ClassVar, Final

from mypy_extensions import i64

from horolog.broker.log.indexes.index_file import Entries, IndexFile

ENTRY: Final = Struct(">ii")
_ENTRY_BYTES: Final[i64] = ENTRY.size
_POSITION_AT: Final[i64] = 4  # in an entry
_read_int: Final = Struct(">i").unpack_from


class OffsetIndex(IndexFile):
    __slots__ = ()

    ENTRY: ClassVar[Struct] = ENTRY

    @property
    def is_full(self) -> bool:
        return len(self.entries) >= self.max_bytes

    def append(self, relative_offset: int, position: int) -> None:
        self.entries += ENTRY.pack(relative_offset, position)
        assert ends_in_order(self.entries), f"{self!r} got {relative_offset} at {position}"


def ends_in_order(entries: Entries) -> bool:
    """Whether the last entry lies behind the one before. Asserted of entries that are added, and asked of a file that is loaded."""
    if len(entries) < 2 * ENTRY.size:
        return len(entries) % ENTRY.size == 0
    (before, at), (last, behind) = ENTRY.iter_unpack(memoryview(entries)[-2 * ENTRY.size :])
    return len(entries) % ENTRY.size == 0 and before < last and at < behind


def count(entries: Entries) -> int:
    """How many entries there are."""
    return len(entries) // _ENTRY_BYTES


def last_at_or_before(entries: Entries, relative_offset: int, guess: int = -1) -> int:
    """The number of the last entry whose offset is not greater; -1 if there is none. A guess that holds saves the search."""
    following = guess + 1
    if 0 < following < count(entries) and offset_of(entries, guess) <= relative_offset < offset_of(entries, following):
        return guess
    return _last_up_to(entries, relative_offset, 0)


def _last_up_to(entries: Entries, value: i64, at: i64) -> i64:
    """The number of the last entry whose field at a place is not greater than a value; -1 if there is none."""
    low: i64 = 0
    high: i64 = count(entries)
    while low < high:  # `bisect` would need a call for each entry
        middle: i64 = (low + high) // 2
        if _read_int(entries, middle * _ENTRY_BYTES + at)[0] <= value:
            low = middle + 1
        else:
            high = middle
    return low - 1


def last_position_up_to(entries: Entries, position: int) -> int:
    """The largest position of an entry that is not greater than `position`; 0 if there is none."""
    return position_of(entries, _last_up_to(entries, position, _POSITION_AT))


def position_of(entries: Entries, number: int) -> int:
    """The position of entry `number`; the start of the file for anything before the first."""
    if number < 0:
        return 0
    position: int = _read_int(entries, number * 8 + 4)[0]
    return position


def offset_of(entries: Entries, number: int) -> int:
    """The relative offset of entry `number`."""
    relative: int = _read_int(entries, number * 8)[0]
    return relative


def lookup(entries: Entries, relative_offset: int) -> int:
    """The position from which a walk finds the batch that holds an offset."""
    return position_of(entries, last_at_or_before(entries, relative_offset))
