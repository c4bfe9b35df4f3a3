"""Reads a log file from end to end and separates good batches from damage, without deciding what to do about damage.

`scan` is pure except for its `read`: it yields `Batch` for every batch or message whose checksum is right and whose place
fits its neighbours, and `Damage` for every range between them. Memory is bounded by one chunk or one batch. These are
checked, because a checksum alone is not enough:

- the size, which no checksum covers: at least a header, not beyond the end of the file;
- the checksum (crc32 for v0 and v1, crc32c for v2) and the magic;
- the offset, which no checksum covers: not before the end of the batch before (out of order, repeated, stale), not at or
  behind the next segment's base offset, not behind the batch that follows: of two neighbours that disagree the one that
  fits both its sides stays.

After damage the next good batch is looked for at every byte: a pattern finds places where the offset, the size and
the magic are possible, and only those are checked in full. Random bytes rarely pass that; records that contain whole batches
may, if their offsets fit.
"""

import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from crc32c import crc32c

from horolog.protocol.errors import DecodeError
from horolog.protocol.records.head import (
    ATTRIBUTES_AT,
    BATCH_MAGIC,
    CRC,
    CRC_AT,
    HEADER_BYTES,
    LENGTH,
    LENGTH_AT,
    LENGTH_ENDS_AT,
    MAGIC_AT,
    MESSAGE_COVERED_FROM,
    MESSAGE_START,
    SMALLEST_ENTRY_BYTES,
    Head,
    contradiction,
    read_head,
)
from horolog.protocol.records.message_set import offsets_in_wrapper, read_message

CHUNK_BYTES = 1 << 20
_LARGEST_CHECKED_FACTOR = 16
"""How many times the file's size may be spent on checksums of places that only look like a batch."""


Read = Callable[[int, int], bytes]
"""(size, position) -> exactly `size` bytes."""

_NO_DATA = memoryview(b"")


@dataclass(slots=True)
class Batch(Head):
    """A good batch or message, whose first offset is known even for a wrapper."""

    data: memoryview = _NO_DATA
    """The whole batch; valid until the next one is requested."""


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes that are not a batch, and their first fault."""

    position: int
    end: int
    reason: str


Span = Batch | Damage


class Window:
    """The part of a file that is in memory, moved along by reads of a chunk or, for a larger batch, of the batch."""

    __slots__ = ("_read", "data", "size_bytes", "start")

    def __init__(self, read: Read, size_bytes: int) -> None:
        self._read = read
        self.data = memoryview(b"")
        self.start = 0
        self.size_bytes = size_bytes

    def get(self, position: int, size: int) -> memoryview:
        """`size` bytes from `position`, fewer at the end of the file."""
        size = min(size, self.size_bytes - position)
        at = position - self.start
        if at < 0 or at + size > len(self.data):
            wanted = min(max(size, CHUNK_BYTES), self.size_bytes - position)
            self.data = memoryview(self._read(wanted, position))
            self.start = position
            at = 0
        return self.data[at : at + size]


def scan(read: Read, size_bytes: int, *, first_offset: int, end_offset: int, position: int = 0) -> Iterator[Span]:
    """The spans of a file from a batch boundary on. Possible offsets are `first_offset` up to but not including `end_offset`."""
    window = Window(read, size_bytes)
    held: Batch | None = None  # the last good batch, not yet yielded: its offset may prove too far ahead
    expected = first_offset  # of what follows the batch before `held`
    while position < size_bytes:
        following = held.last_offset + 1 if held is not None else expected
        found = _quick_check(window, position, following, end_offset) or check(window, position, following, end_offset)
        if isinstance(found, str) and held is not None:
            other = _without(held, expected, window, position, end_offset)
            if other is not None:
                yield Damage(held.position, held.end, f"offset {held.base_offset} is ahead of what follows")
                held, found = None, other
        if held is not None:
            expected = held.last_offset + 1
            yield held
            held = None
        if isinstance(found, str):
            end = _next_good(window, position + 1, expected, end_offset)
            yield Damage(position, end, found)
            position = end
        else:
            held = found
            position = found.end
    if held is not None:
        yield held


def _without(held: Batch, expected: int, window: Window, position: int, end_offset: int) -> Batch | None:
    """The batch at `position`, if it is `held` before it that is out of order."""
    if held.base_offset == expected:
        return None
    found = check(window, position, expected, end_offset)
    if not isinstance(found, Batch):
        return None
    goes_on = found.base_offset == expected + held.last_offset - held.base_offset + 1  # from where `held` belongs
    return found if goes_on or _fits(window, found, end_offset) else None


def _fits(window: Window, batch: Batch, end_offset: int) -> bool:
    """Whether the batch behind this one continues its offsets, or nothing is behind it."""
    if batch.end >= window.size_bytes:
        return True
    return isinstance(check(window, batch.end, batch.last_offset + 1, end_offset), Batch)


def _quick_check(window: Window, position: int, first_offset: int, end_offset: int) -> Batch | None:
    """The v2 batch at `position` if it is in memory and good, as nearly all are; otherwise call `check`."""
    data, at = window.data, position - window.start
    if at < 0 or at + HEADER_BYTES > len(data) or data[at + MAGIC_AT] != BATCH_MAGIC:
        return None
    batch = read_head(data, at, position, Batch)
    end = at + batch.size_bytes
    if batch.size_bytes < HEADER_BYTES or end > len(data):
        return None
    if contradiction(batch.last_offset - batch.base_offset, batch.count) is not None:
        return None
    if batch.base_offset < first_offset or batch.last_offset >= end_offset:
        return None
    if crc32c(data[at + ATTRIBUTES_AT : end]) != CRC.unpack_from(data, at + CRC_AT)[0]:
        return None
    batch.data = data[at:end]
    return batch


def check(window: Window, position: int, first_offset: int, end_offset: int) -> Batch | str:
    """The batch at `position`, or its damage."""
    start = window.get(position, HEADER_BYTES)
    left = window.size_bytes - position
    if len(start) < SMALLEST_ENTRY_BYTES:
        return f"{left} bytes are less than a message"
    offset, length, crc, magic = MESSAGE_START.unpack_from(start)
    size = LENGTH_ENDS_AT + length
    smallest = HEADER_BYTES if magic == 2 else SMALLEST_ENTRY_BYTES
    if not 0 <= magic <= 2:
        return f"magic {magic}"
    if size < smallest:
        return f"a size of {size} bytes is less than a header"
    if size > left:
        return f"it is cut: {left} of {size} bytes are there"
    if not first_offset <= offset < end_offset:
        return f"offset {offset} is not in {first_offset} to {end_offset}"
    data = window.get(position, size)
    batch = _check_v2(data, position) if magic == 2 else _check_message(data, position, offset, crc)
    if isinstance(batch, Batch) and batch.last_offset >= end_offset:
        return f"last offset {batch.last_offset} is not below {end_offset}"
    if isinstance(batch, Batch) and batch.base_offset < first_offset:
        return f"its first offset {batch.base_offset} is not in {first_offset} to {end_offset}"
    return batch


def _check_v2(data: memoryview, position: int) -> Batch | str:
    if crc32c(data[ATTRIBUTES_AT:]) != CRC.unpack_from(data, CRC_AT)[0]:
        return "the checksum is wrong"
    batch = read_head(data, 0, position, Batch)
    wrong = contradiction(batch.last_offset - batch.base_offset, batch.count)
    if wrong is not None:
        return wrong
    batch.data = data
    return batch


def _check_message(data: memoryview, position: int, offset: int, crc: int) -> Batch | str:
    if zlib.crc32(data[MESSAGE_COVERED_FROM:]) != crc:
        return "the checksum is wrong"
    batch = read_head(data, 0, position, Batch)
    batch.base_offset, batch.data = offset, data
    if batch.is_compressed:  # the messages inside determine the wrapper's offset, which no checksum covers
        with suppress(DecodeError):
            batch.base_offset, batch.last_offset = offsets_in_wrapper(read_message(data))
    if batch.last_offset != offset:
        return f"offset {offset} of a set that ends with {batch.last_offset}"
    return batch


def _next_good(window: Window, position: int, first_offset: int, end_offset: int) -> int:
    """Where the next good batch begins; the end of the file if there is none."""
    if first_offset >= end_offset:
        return window.size_bytes
    pattern = _candidates(first_offset, end_offset)
    budget = _LARGEST_CHECKED_FACTOR * window.size_bytes
    size_bytes = window.size_bytes
    while position + SMALLEST_ENTRY_BYTES <= size_bytes and budget > 0:
        chunk = bytes(window.get(position, CHUNK_BYTES))
        for match in pattern.finditer(chunk):
            candidate = position + match.start()
            found = check(window, candidate, first_offset, end_offset)
            if isinstance(found, Batch):
                return candidate
            if found == "the checksum is wrong":
                budget -= LENGTH_ENDS_AT + LENGTH.unpack_from(chunk, match.start() + LENGTH_AT)[0]
        position += max(1, len(chunk) - MESSAGE_START.size + 1)
    return size_bytes


def _candidates(first_offset: int, end_offset: int) -> re.Pattern[bytes]:
    """A pattern of possible beginnings of a batch: an offset in range by its high bytes, a size, a magic."""
    first, last = first_offset.to_bytes(8, "big"), (end_offset - 1).to_bytes(8, "big")
    same = next((n for n in range(8) if first[n] != last[n]), 8)
    low_high = (
        b"" if same == 8 else b"[" + re.escape(first[same : same + 1]) + b"-" + re.escape(last[same : same + 1]) + b"]"
    )
    rest = b".{%d}" % (7 - same) if same < 7 else b""
    head = re.escape(first[:same]) + low_high + rest
    return re.compile(b"(?s)(?=" + head + rb"[\x00-\x7f].{3}.{4}[\x00-\x02])")
