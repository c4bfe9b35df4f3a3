"""The times inside one batch, boiled down to what a look-up needs, and a bounded memory of them.

A look-up asks for the first record at or after a time. Of a batch only the records matter that are later than all before
them: the *highs*. Their times increase, so the answer is a binary search, also where the records are out of order. Making
the list takes about a quarter of a microsecond per record, and a batch may hold ten thousand: what was found is remembered.
"""

from array import array
from bisect import bisect_left

from protocol.errors import DecodeError
from protocol.primitives import MAX_VARLONG_BYTES, decode_unsigned_varint, decode_varint
from protocol.records.batch import BatchHeader, iter_records_of, read_header, records_of
from protocol.records.entries import iter_records

REMEMBERED_HIGHS = 512 * 1024
"""At 16 bytes each, over all partitions."""

_LOG_APPEND_TIME_BIT = 8


class Highs:
    """The records of a batch that are later than all before them: times and offsets, both increasing."""

    __slots__ = ("offsets", "timestamps")

    def __init__(self) -> None:
        self.timestamps: array[int] = array("q")
        self.offsets: array[int] = array("q")

    def __len__(self) -> int:
        return len(self.timestamps)

    def add(self, timestamp: int, offset: int) -> None:
        """Note a record; those not later than one before are passed over."""
        if timestamp >= 0 and (not self.timestamps or timestamp > self.timestamps[-1]):
            self.timestamps.append(timestamp)
            self.offsets.append(offset)

    def first_at_or_after(self, timestamp: int) -> tuple[int, int] | None:
        """(timestamp, offset) of the first record not before a time."""
        number = bisect_left(self.timestamps, timestamp)
        return (self.timestamps[number], self.offsets[number]) if number < len(self.timestamps) else None


class HighsCache:
    """The highs of the batches last looked into, longest unused first."""

    __slots__ = ("_batches", "_count", "limit")

    def __init__(self, limit: int = REMEMBERED_HIGHS) -> None:
        self.limit = limit
        self._count = 0
        self._batches: dict[tuple[int, int], Highs] = {}

    def __repr__(self) -> str:
        return f"<HighsCache of {len(self._batches)} batches with {self._count} highs>"

    def get(self, log: int, position: int) -> Highs | None:
        """`log` is a number that stands for one log file for as long as the process runs."""
        key = (log, position)
        highs = self._batches.pop(key, None)
        if highs is not None:
            self._batches[key] = highs
        return highs

    def put(self, log: int, position: int, highs: Highs) -> None:
        self._batches[log, position] = highs
        self._count += len(highs) + 1
        while self._count > self.limit and len(self._batches) > 1:
            oldest = next(iter(self._batches))
            self._count -= len(self._batches.pop(oldest)) + 1


def highs_of(data: bytes, magic: int, start_offset: int = 0) -> Highs:
    """The highs among the records from `start_offset` on of a whole batch or message. Raises DecodeError."""
    highs = Highs()
    if magic < 2:
        for record in iter_records(data):
            if record.offset >= start_offset:
                highs.add(record.timestamp, record.offset)
        return highs
    header = read_header(data)
    records = records_of(data, header)
    try:
        if header.attributes & _LOG_APPEND_TIME_BIT:
            _add_first(highs, records, header, start_offset)
        else:
            _add_records(highs, records, header, start_offset)
    except IndexError:
        raise DecodeError("a record runs past the end of its batch") from None
    return highs


def _add_first(highs: Highs, records: bytes, header: BatchHeader, start_offset: int) -> None:
    """All records have the batch's time, so the first one answers for all."""
    for record in iter_records_of(records, header):
        if record.offset >= start_offset:
            highs.add(header.max_timestamp, record.offset)
            return


def _add_records(highs: Highs, data: bytes, header: BatchHeader, start_offset: int) -> None:
    """One varint after the other: length, attributes, timestamp delta, offset delta; the rest of a record is jumped over."""
    base_timestamp, base_offset = header.base_timestamp, header.base_offset
    highest = -1 - base_timestamp  # as a delta: a time below zero is none
    position = 0
    for _ in range(header.count):
        raw = data[position]
        position += 1
        if raw > 127:
            raw, position = decode_unsigned_varint(data, position - 1)
        stop = position + (raw >> 1)
        raw = data[position + 1]
        position += 2
        if raw > 127:
            raw, position = decode_unsigned_varint(data, position - 1, MAX_VARLONG_BYTES)
        delta = raw >> 1 ^ -(raw & 1)
        if delta > highest:
            offset_delta, _ = decode_varint(data, position)
            if base_offset + offset_delta >= start_offset:
                highest = delta
                highs.timestamps.append(base_timestamp + delta)
                highs.offsets.append(base_offset + offset_delta)
        position = stop
