"""Finds the first record at or after a time inside one batch, and remembers what a walk through a large one has found.

Three ways, by what the batch is:

- A small plain v2 batch is walked, record by record, until the answer is met: about 0.2 microseconds each.
- Of a larger plain v2 batch `Samples` are taken: every 16 records the largest time so far and the place in the file. Where
  there are some a look-up is a binary search, a read of some kilobytes and a walk over at most 16 records; the first to come
  further walks on from the last of them.
- A compressed batch or set is opened once for its `Highs`, the records that are later than all before them; only they can
  be an answer, and their times increase, so a look-up is a binary search.

Samples and highs are remembered, bounded over all partitions, longest unused forgotten first.
"""

from array import array
from bisect import bisect_left
from typing import NamedTuple

from horolog.protocol.errors import DecodeError
from horolog.protocol.primitives import MAX_VARLONG_BYTES, Buffer, decode_unsigned_varint, decode_varint
from horolog.protocol.records.batch import BatchHeader, iter_records_of, read_header, records_of
from horolog.protocol.records.entries import iter_records
from horolog.protocol.records.head import HEADER_BYTES

REMEMBERED_TIMES = 1024 * 1024
"""Samples and highs, over all partitions, at 16 bytes each."""

BATCH_COST = 64
"""What a remembered batch takes beside its times, counted as so many of them."""

SMALL_BATCH_BYTES = 4 * 1024
RECORDS_PER_SAMPLE = 16

LOG_APPEND_TIME_BIT = 8


class Place(NamedTuple):
    """A record: its time and its offset."""

    timestamp: int
    offset: int


class Highs:
    """The records of a batch that are later than all before them: times and offsets, both increasing."""

    __slots__ = ("offsets", "timestamps")

    def __init__(self) -> None:
        self.timestamps: array[int] = array("q")
        self.offsets: array[int] = array("q")

    def __len__(self) -> int:
        return len(self.timestamps)

    def add(self, timestamp: int, offset: int) -> None:
        """Note a record; those not later than one before are passed over, and those without a time."""
        if timestamp >= 0 and (not self.timestamps or timestamp > self.timestamps[-1]):
            self.timestamps.append(timestamp)
            self.offsets.append(offset)

    def first_at_or_after(self, timestamp: int) -> Place | None:
        number = bisect_left(self.timestamps, timestamp)
        return Place(self.timestamps[number], self.offsets[number]) if number < len(self.timestamps) else None


class Samples:
    """Of every 16 records of a plain v2 batch: where they begin, and the largest time up to and including them.

    They are taken as far as look-ups have come, so that the first one in a batch walks no further than to its answer.
    """

    __slots__ = ("_highest", "_left", "header", "positions", "timestamps")

    def __init__(self, header: BatchHeader) -> None:
        self.header = header
        self.positions: array[int] = array("q", (HEADER_BYTES,))  # in the batch; the last is that of the next sample
        self.timestamps: array[int] = array("q")
        self._highest = _doubled(-1, header)
        self._left = header.count

    def __len__(self) -> int:
        """How many times there are once all are taken."""
        return (self.header.count + RECORDS_PER_SAMPLE - 1) // RECORDS_PER_SAMPLE

    def lacks(self, timestamp: int) -> bool:
        """Whether samples that are not taken yet decide where the answer is."""
        timestamps = self.timestamps
        return self._left > 0 and not (timestamps and timestamps[-1] >= timestamp)

    def walk_on(self, data: Buffer, start: int, timestamp: int) -> None:
        """Take samples until one reaches a time; `data` is the batch from the place `start` on. Raises DecodeError."""
        position = self.positions[-1] - start
        while self.lacks(timestamp):
            count = min(RECORDS_PER_SAMPLE, self._left)
            position, self._highest = _walk(data, position, count, self._highest, None)
            self._left -= count
            self.positions.append(position + start)
            self.timestamps.append(self.header.base_timestamp + (self._highest >> 1))

    def span_for(self, timestamp: int) -> tuple[int, int, int] | None:
        """(count, start, end) of the records among which the answer is; None if it is not in what has been walked."""
        number = bisect_left(self.timestamps, timestamp)
        if number == len(self.timestamps):
            return None
        count = min(RECORDS_PER_SAMPLE, self.header.count - number * RECORDS_PER_SAMPLE)
        return count, self.positions[number], self.positions[number + 1]


class TimesCache:
    """The samples and highs of the batches last looked into."""

    __slots__ = ("_batches", "_count", "limit")

    def __init__(self, limit: int = REMEMBERED_TIMES) -> None:
        self.limit = limit
        self._count = 0
        self._batches: dict[tuple[int, int], Highs | Samples] = {}

    def __repr__(self) -> str:
        return f"<TimesCache of {len(self._batches)} batches with {self._count} times>"

    def get(self, log: int, position: int) -> Highs | Samples | None:
        """`log` is a number that stands for one log file for as long as the process runs."""
        key = (log, position)
        known = self._batches.pop(key, None)
        if known is not None:
            self._batches[key] = known
        return known

    def put(self, log: int, position: int, times: Highs | Samples) -> None:
        self._batches[log, position] = times
        self._count += len(times) + BATCH_COST
        while self._count > self.limit and len(self._batches) > 1:
            oldest = next(iter(self._batches))
            self._count -= len(self._batches.pop(oldest)) + BATCH_COST


def highs_of(data: Buffer, magic: int, start_offset: int = 0) -> Highs:
    """The highs among the records from `start_offset` on of a whole batch or message. Raises DecodeError."""
    if magic >= 2 and not start_offset:
        return _highs_of_batch(data)
    highs = Highs()
    for record in iter_records(data):
        if record.offset >= start_offset:
            highs.add(record.timestamp, record.offset)
    return highs


def _highs_of_batch(data: Buffer) -> Highs:
    highs = Highs()
    header = read_header(data)
    records = records_of(data, header)
    if header.attributes & LOG_APPEND_TIME_BIT:
        highs.add(header.max_timestamp, next(iter_records_of(records, header)).offset)
        return highs
    found: list[tuple[int, int]] = []
    _walk(records, 0, header.count, _doubled(-1, header), found)
    for doubled, offset_at in found:
        highs.timestamps.append(header.base_timestamp + (doubled >> 1))
        highs.offsets.append(header.base_offset + decode_varint(records, offset_at)[0])
    return highs


def find_record(data: Buffer, position: int, count: int, header: BatchHeader, timestamp: int) -> Place | None:
    """The first of `count` records that is not before a time; `data` holds them from `position` on. Raises DecodeError."""
    found: list[tuple[int, int]] = []
    _walk(data, position, count, _doubled(timestamp, header) - 1, found, only_first=True)
    if not found:
        return None
    doubled, offset_at = found[0]
    return Place(header.base_timestamp + (doubled >> 1), header.base_offset + decode_varint(data, offset_at)[0])


def _doubled(timestamp: int, header: BatchHeader) -> int:
    """A time as `_walk` compares it: twice its distance from the base timestamp, which is what its varint says."""
    return 2 * (timestamp - header.base_timestamp)


def _walk(
    data: Buffer,
    position: int,
    count: int,
    above: int,
    found: list[tuple[int, int]] | None,
    *,
    only_first: bool = False,
) -> tuple[int, int]:
    """Go over `count` records; into `found` go those later than all before them and than `above`: (doubled time, offset's place).

    Gives the position behind the last record and the largest doubled time. The tight loop of look-ups: length and time are
    unpacked in place as long as their varints have at most two and three bytes.
    """
    try:
        for _ in range(count):
            raw = data[position]
            if raw < 128:
                at = position + 2
            elif data[position + 1] < 128:
                raw += (data[position + 1] << 7) - 128
                at = position + 3
            else:
                raw, at = decode_unsigned_varint(data, position)
                at += 1
            position = at - 1 + (raw >> 1)
            raw = data[at]
            at += 1
            if raw > 127:
                if data[at] < 128:
                    raw += (data[at] << 7) - 128
                    at += 1
                elif data[at + 1] < 128:
                    raw += (data[at] << 7) + (data[at + 1] << 14) - 16512
                    at += 2
                else:
                    raw, at = decode_unsigned_varint(data, at - 1, MAX_VARLONG_BYTES)
            if raw & 1:
                raw = -1 - raw
            if raw <= above:
                continue
            above = raw
            if found is None:
                continue
            found.append((raw, at))
            if only_first:
                break
    except IndexError:
        raise DecodeError("a record runs past the end of its batch") from None
    return position, above
