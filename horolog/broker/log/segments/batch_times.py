"""Finds the first record at or after a time inside one batch, and caches the findings of a walk through a large one.

Three ways, by what the batch is:

- A small plain v2 batch is walked, record by record, until the answer is met: about 0.2 microseconds each.
- Of a larger plain v2 batch `BatchSamples` are taken: every 16 records the largest time so far and the place in the file. Where
  there are some a lookup is a binary search, a read of some kilobytes and a walk over at most 16 records; the first to come
  further walks on from the last of them.
- Of a compressed v2 batch samples are taken behind its codec. What was opened last stays open, up to 4 MiB over all
  partitions: lookups at neighbouring times open a batch once, and those all over a long log remember a sample of 16 records each.
- A compressed set, or a batch that is larger than that when it is opened, is opened once for its `Highs`, the records that
  are later than all before them; only they can be an answer, and their times increase, so a lookup is a binary search.

BatchSamples and highs are remembered, bounded over all partitions, longest unused forgotten first.
"""

from array import array
from bisect import bisect_left
from typing import Final, NamedTuple

from mypy_extensions import i64

from horolog.protocol.errors import DecodeError
from horolog.protocol.primitives import Buffer
from horolog.protocol.records.batch import BatchHeader, iter_records_of, read_header, read_varint, records_of
from horolog.protocol.records.entries import iter_records
from horolog.protocol.records.head import HEADER_BYTES
from horolog.protocol.records.record import MAX_INT64
from horolog.protocol.records.walk import first_later, later_records

REMEMBERED_TIMES = 1024 * 1024
"""Samples and highs, over all partitions, at 16 bytes each."""

BATCH_COST = 64
"""The cost of a cached batch in addition to its times, counted in times."""

OPENED_BYTES = 4 * 1024 * 1024
"""The limit of decompressed records, over all partitions."""

SMALL_BATCH_BYTES: Final = 4 * 1024
RECORDS_PER_SAMPLE = 16

LOG_APPEND_TIME_BIT = 8

_NEAR: Final = 1 << 61
"""Compiled code compares a delta that is nearer than this in place."""

TimedRecord = tuple[int, int]
"""A record: its time and its offset."""


class DecompressedBatch(NamedTuple):
    """A decompressed batch."""

    header: BatchHeader
    records: bytes


class Highs:
    """The records of a batch that are later than all before them: times and offsets, both increasing."""

    __slots__ = ("offsets", "timestamps")

    def __init__(self) -> None:
        self.timestamps: array[int] = array("q")
        self.offsets: array[int] = array("q")

    def __len__(self) -> int:
        return len(self.timestamps)

    def add(self, timestamp: int, offset: int) -> None:
        """Note a record; those without a time, or not later than an earlier one, are skipped."""
        if timestamp >= 0 and (not self.timestamps or timestamp > self.timestamps[-1]):
            self.timestamps.append(timestamp)
            self.offsets.append(offset)

    def first_at_or_after(self, timestamp: int) -> TimedRecord | None:
        number = bisect_left(self.timestamps, timestamp)
        return (self.timestamps[number], self.offsets[number]) if number < len(self.timestamps) else None


class BatchSamples:
    """For every 16 records of a v2 batch: where they begin, and the largest time up to and including them.

    They are taken as far as lookups have come, so that the first one in a batch walks no further than to its answer. Places are
    those in the batch, or in its opened records where it is compressed: `start` is that of the first record.
    """

    __slots__ = ("_highest", "_left", "header", "positions", "timestamps")

    def __init__(self, header: BatchHeader, start: int = HEADER_BYTES) -> None:
        self.header = header
        self.positions: array[int] = array("q", (start,))  # the last is that of the next sample
        self.timestamps: array[int] = array("q")
        self._highest = _delta(-1, header.base_timestamp)
        self._left = header.count

    def __len__(self) -> int:
        """The number of samples once all are taken."""
        return (self.header.count + RECORDS_PER_SAMPLE - 1) // RECORDS_PER_SAMPLE

    def lacks(self, timestamp: int) -> bool:
        """Whether the answer may be in samples that are not taken yet."""
        timestamps = self.timestamps
        return self._left > 0 and not (timestamps and timestamps[-1] >= timestamp)

    def walk_on(self, data: bytes, start: int, timestamp: int) -> None:
        """Take samples until one reaches a time; `data` is the batch from the place `start` on. Raises DecodeError."""
        position = self.positions[-1] - start
        while self.lacks(timestamp):
            count = min(RECORDS_PER_SAMPLE, self._left)
            position, self._highest = _walk(data, position, count, self._highest)
            self._left -= count
            self.positions.append(position + start)
            self.timestamps.append(self.header.base_timestamp + self._highest)

    def span_for(self, timestamp: int) -> tuple[int, int, int] | None:
        """(count, start, end) of the records that contain the answer; None if it is not in the walked part."""
        number = bisect_left(self.timestamps, timestamp)
        if number == len(self.timestamps):
            return None
        count = min(RECORDS_PER_SAMPLE, self.header.count - number * RECORDS_PER_SAMPLE)
        return count, self.positions[number], self.positions[number + 1]


class TimesCache:
    """The samples and highs of recently used batches, and the records of compressed ones recently opened."""

    __slots__ = ("_batches", "_count", "_opened", "_opened_bytes", "limit", "opened_limit")

    def __init__(self, limit: int = REMEMBERED_TIMES, opened_limit: int = OPENED_BYTES) -> None:
        self.limit = limit
        self.opened_limit = opened_limit
        self._count = self._opened_bytes = 0
        self._batches: dict[tuple[int, int], Highs | BatchSamples] = {}
        self._opened: dict[tuple[int, int], DecompressedBatch] = {}

    def __repr__(self) -> str:
        return f"<TimesCache of {len(self._batches)} batches with {self._count} times>"

    def get(self, log: int, position: int) -> Highs | BatchSamples | None:
        """`log` is a number that identifies one log file while the process runs."""
        key = (log, position)
        known = self._batches.pop(key, None)
        if known is not None:
            self._batches[key] = known
        return known

    def put(self, log: int, position: int, times: Highs | BatchSamples) -> None:
        key = (log, position)
        before = self._batches.pop(key, None)
        if before is not None:
            self._count -= len(before) + BATCH_COST
        self._batches[key] = times
        self._count += len(times) + BATCH_COST
        while self._count > self.limit and len(self._batches) > 1:
            oldest = next(iter(self._batches))
            self._count -= len(self._batches.pop(oldest)) + BATCH_COST

    def opened(self, log: int, position: int) -> DecompressedBatch | None:
        """A compressed batch, if it is still open."""
        key = (log, position)
        batch = self._opened.pop(key, None)
        if batch is not None:
            self._opened[key] = batch
        return batch

    def keep_open(self, log: int, position: int, batch: DecompressedBatch) -> bool:
        """Cache a batch, evicting the least recently used ones; False if it is too large."""
        size_bytes = len(batch.records)
        if size_bytes > self.opened_limit:
            return False
        before = self._opened.pop((log, position), None)
        self._opened[log, position] = batch
        self._opened_bytes += size_bytes - (0 if before is None else len(before.records))
        while self._opened_bytes > self.opened_limit:
            self._opened_bytes -= len(self._opened.pop(next(iter(self._opened))).records)
        return True


def highs_of(data: Buffer, magic: int, start_offset: int = 0) -> Highs:
    """The highs among the records from `start_offset` on of a whole batch or message. Raises DecodeError."""
    if magic >= 2 and not start_offset:
        header = read_header(data)
        return highs_of_opened(DecompressedBatch(header, records_of(data, header)))
    highs = Highs()
    for record in iter_records(data):
        if record.offset >= start_offset:
            highs.add(record.timestamp, record.offset)
    return highs


def highs_of_opened(batch: DecompressedBatch) -> Highs:
    """The highs of a v2 batch. Raises DecodeError."""
    header, records = batch
    highs = Highs()
    if header.attributes & LOG_APPEND_TIME_BIT:
        highs.add(header.max_timestamp, next(iter_records_of(records, header)).offset)
        return highs
    found: list[tuple[i64, i64]] = []
    _walk(records, 0, header.count, _delta(-1, header.base_timestamp), found)
    for delta, offset_at in found:
        highs.timestamps.append(header.base_timestamp + delta)
        highs.offsets.append(header.base_offset + _offset_delta(records, offset_at))
    return highs


def find_record(
    data: bytes, position: i64, count: i64, base_offset: int, base_timestamp: int, timestamp: int
) -> TimedRecord | None:
    """The first of `count` records that is not before a time; `data` holds them from `position` on. Raises DecodeError."""
    try:
        delta, offset_at = first_later(data, position, count, _delta(timestamp - 1, base_timestamp))
    except IndexError:
        raise _cut_short() from None
    return (base_timestamp + delta, base_offset + _offset_delta(data, offset_at)) if offset_at else None


def _offset_delta(data: bytes, position: int) -> int:
    """The offset delta of a record, which lies at a position."""
    try:
        return read_varint(data, position)[0]
    except IndexError:
        raise _cut_short() from None


def _delta(timestamp: int, base_timestamp: int) -> int:
    """A time as a delta of a batch's records, or the nearest possible one."""
    delta = timestamp - base_timestamp
    return delta if -_NEAR < delta < _NEAR else min(max(delta, -MAX_INT64), MAX_INT64)


def _walk(
    data: bytes, position: int, count: int, above: int, found: list[tuple[i64, i64]] | None = None
) -> tuple[int, int]:
    """`later_records`, which raises DecodeError for damage."""
    try:
        return later_records(data, position, count, above, found)
    except IndexError:
        raise _cut_short() from None


def _cut_short() -> DecodeError:
    return DecodeError("a record runs past the end of its batch")
