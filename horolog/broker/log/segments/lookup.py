"""Finds records by time: the first one at or after a time, and the latest one, exactly and whatever the order of times.

Within a segment the time index names the largest timestamp up to some place, and an entry of it is considered at every entry of
the offset index. So, with E' the first time entry not before the target and (j) the last offset entry at or before the offset
that E' names: every batch up to entry j-1 is earlier than the target: otherwise an earlier time entry would reach it. The walk
begins at that batch and meets the answer within about two index intervals; how long the segment is, and how disordered its
times are, plays no part.

Batches that are plain, and of which many lie in one read, are passed over and looked into where they were read. Whatever is
anything else ends that, and is walked head by head.

Where batches are large each has an entry, and the batch at entry j holds the answer if it follows the one at entry j-1 and
reaches the target. So it is looked at first, in one read; if its samples are remembered, in none.

Which batches are looked into is decided by their headers: control batches, batches that the cleaner has emptied (their
header still shows a time) and messages without a time are passed over, and so are all whose largest time is before the target.
"""

from typing import Final

from mypy_extensions import i64

from horolog.broker.log.indexes import offset_index, time_index
from horolog.broker.log.segments.batch_times import (
    LOG_APPEND_TIME_BIT,
    SMALL_BATCH_BYTES,
    BatchSamples,
    DecompressedBatch,
    Highs,
    TimedRecord,
    TimesCache,
    find_record,
    highs_of,
    highs_of_opened,
)
from horolog.broker.log.segments.index_loading import indexes_of
from horolog.broker.log.segments.reader import heads_from
from horolog.broker.log.segments.segment import Segment
from horolog.broker.log.segments.verification import verify
from horolog.broker.log.storage import StorageFault
from horolog.protocol.errors import DecodeError
from horolog.protocol.records.batch import read_header, records_of
from horolog.protocol.records.compression import CODEC_MASK
from horolog.protocol.records.head import (
    ATTRIBUTES_LOW_AT,
    BASE_TIMESTAMP_AT,
    BATCH_MAGIC,
    CONTROL_BIT,
    COUNT_AT,
    DELTA_AT,
    EPOCH_AT,
    HEADER_BYTES,
    LENGTH_AT,
    LENGTH_ENDS_AT,
    MAGIC_AT,
    MAX_TIMESTAMP_AT,
    NO_OFFSET,
    WALK_BYTES,
    Head,
)
from horolog.protocol.records.numbers import int32_at, int64_at
from horolog.protocol.records.record import MAX_INT64

WALKED_AT_ONCE_BYTES: Final = 64 * 1024
"""A plain batch above this size is walked to its end when it is first looked into: each part of the way would read all that follows."""

NOT_PLAIN: Final = CODEC_MASK | LOG_APPEND_TIME_BIT | CONTROL_BIT


class Found:
    """A lookup's answer; the leader epoch is -1 for formats that carry none."""

    __slots__ = ("leader_epoch", "offset", "timestamp")

    def __init__(self, place: TimedRecord, leader_epoch: int) -> None:
        self.timestamp, self.offset = place
        self.leader_epoch = leader_epoch

    def __repr__(self) -> str:
        return f"<Found offset {self.offset} of {self.timestamp}, leader epoch {self.leader_epoch}>"


def start_number(offset_entries: bytes | bytearray, time_entries: bytes | bytearray, timestamp: int) -> int:
    """The offset entry (j-1) to begin the walk at, to the first record at or after a time; see the module's docstring."""
    entry = time_index.first_at_or_after(time_entries, timestamp)
    if entry is None:
        return offset_index.count(offset_entries) - 1
    number, _, offset = entry
    return offset_index.last_at_or_before(offset_entries, offset, guess=number) - 1  # where times only grow it is that


def start_position(offset_entries: bytes | bytearray, time_entries: bytes | bytearray, timestamp: int) -> int:
    """Where to begin the walk to the first record at or after a time."""
    return offset_index.position_of(offset_entries, start_number(offset_entries, time_entries, timestamp))


def first_in_segment(
    segment: Segment, timestamp: int, start_offset: int, end_offset: int, cache: TimesCache
) -> Found | None:
    """The first record of a segment at or after a time, in the offsets from `start_offset` up to `end_offset`."""
    offsets, times = indexes_of(segment)
    entries = offsets.entries
    number = start_number(entries, times.entries, timestamp)
    at_once = _at_entry(segment, entries, number + 1, timestamp, start_offset, cache)
    if at_once is not None:
        return at_once if at_once.offset < end_offset else None
    position = offset_index.position_of(entries, number)
    position, found = _among_plain(segment, position, timestamp, start_offset, end_offset)
    if found is not None:
        return found if found.offset < end_offset else None
    for head in heads_from(segment, position):
        if head.max_timestamp < timestamp or head.last_offset < start_offset:
            if head.base_offset >= end_offset:
                return None
            continue
        try:
            place = _in_batch(segment, head, timestamp, start_offset, cache)
        except DecodeError as error:
            raise _damaged(segment, head.position, error) from error
        if place is not None:
            return Found(place, head.leader_epoch) if place[1] < end_offset else None
    return None


def _among_plain(
    segment: Segment, position: int, timestamp: int, start_offset: int, end_offset: int
) -> tuple[int, Found | None]:
    """The first record at or after a time if it lies in a small plain batch; if not, where the walk over heads begins."""
    end: i64 = segment.size_bytes
    if segment.holes:
        return position, None
    while position < end:
        size: i64 = min(end - position, WALK_BYTES)
        if segment.unverified is not None:
            verify(segment, position, position + size)
        data = segment.log.pread(size, position)
        at: i64 = 0
        while at + HEADER_BYTES <= size:
            following: i64 = at + LENGTH_ENDS_AT + int32_at(data, at + LENGTH_AT)
            if data[at + MAGIC_AT] != BATCH_MAGIC or following < at + HEADER_BYTES or position + following > end:
                return position + at, None
            base_offset: i64 = int64_at(data, at)
            if (
                int64_at(data, at + MAX_TIMESTAMP_AT) >= timestamp
                and base_offset >= start_offset - int32_at(data, at + DELTA_AT)
                and int32_at(data, at + COUNT_AT) > 0
                and not data[at + ATTRIBUTES_LOW_AT] & CONTROL_BIT
            ):
                if (
                    data[at + ATTRIBUTES_LOW_AT] & NOT_PLAIN
                    or base_offset < start_offset
                    or following - at > SMALL_BATCH_BYTES
                ):
                    return position + at, None
                if following > size:
                    break
                count = int32_at(data, at + COUNT_AT)
                base_timestamp = int64_at(data, at + BASE_TIMESTAMP_AT)
                try:
                    place = find_record(data, at + HEADER_BYTES, count, base_offset, base_timestamp, timestamp)
                except DecodeError:
                    return position + at, None
                if place is not None:
                    return position + at, Found(place, int32_at(data, at + EPOCH_AT))
            elif base_offset >= end_offset:
                return position + at, None
            at = following
        if not at:
            break
        position += at
    return position, None


def _at_entry(
    segment: Segment, entries: bytes | bytearray, number: int, timestamp: int, start_offset: int, cache: TimesCache
) -> Found | None:
    """The first record at or after a time, if the batch at an offset entry is a plain one of some size and contains it."""
    if not 0 < number < offset_index.count(entries):
        return None
    position = offset_index.position_of(entries, number)
    samples, data = cache.get(segment.number, position), None
    try:
        if samples is None:
            samples, data = _samples_at(segment, entries, number, position)
        if not isinstance(samples, BatchSamples) or samples.header.attributes & NOT_PLAIN:
            return None
        header = samples.header
        follows = header.base_offset == segment.base_offset + offset_index.offset_of(entries, number - 1) + 1
        if not follows or header.max_timestamp < timestamp or header.base_offset < start_offset:
            return None
        if data is not None:
            cache.put(segment.number, position, samples)
        place = _in_samples(segment, position, samples, timestamp, data)
    except DecodeError as error:
        raise _damaged(segment, position, error) from error
    return None if place is None else Found(place, header.leader_epoch)


def _samples_at(
    segment: Segment, entries: bytes | bytearray, number: int, position: int
) -> tuple[BatchSamples | None, bytes | None]:
    """Empty samples for the batch at an offset entry, and its bytes; None if the batch does not suit. Raises DecodeError."""
    following = number + 1
    is_last = following == offset_index.count(entries)
    end = segment.size_bytes  # entries may be of batches that are not written yet
    if not is_last:
        end = min(end, offset_index.position_of(entries, following))
    if not 2 * segment.index_interval_bytes < end - position <= WALKED_AT_ONCE_BYTES:  # between are many small batches
        return None, None
    if segment.holes or segment.unverified is not None:
        return None, None
    data = segment.log.pread(end - position, position)
    if data[MAGIC_AT] != BATCH_MAGIC or data[ATTRIBUTES_LOW_AT] & NOT_PLAIN:
        return None, None
    header = read_header(data)
    return (BatchSamples(header), data) if header.count > 0 and header.size_bytes > SMALL_BATCH_BYTES else (None, None)


def _in_batch(segment: Segment, head: Head, timestamp: int, start_offset: int, cache: TimesCache) -> TimedRecord | None:
    """The first record of a batch at or after a time, not before an offset. Raises DecodeError."""
    if head.magic < 2 and not head.attributes & CODEC_MASK:
        return head.max_timestamp, head.last_offset
    if head.magic < 2 or head.attributes & LOG_APPEND_TIME_BIT or head.base_offset < start_offset:
        return _among_highs(segment, head, timestamp, start_offset, cache)
    if head.attributes & CODEC_MASK:
        return _among_opened(segment, head, timestamp, cache)
    if head.size_bytes > SMALL_BATCH_BYTES:
        return _among_samples(segment, head, timestamp, cache)
    data = segment.log.pread(head.size_bytes, head.position)
    header = read_header(data)
    return find_record(data, HEADER_BYTES, header.count, header.base_offset, header.base_timestamp, timestamp)


def _among_highs(
    segment: Segment, head: Head, timestamp: int, start_offset: int, cache: TimesCache
) -> TimedRecord | None:
    highs = cache.get(segment.number, head.position)
    if not isinstance(highs, Highs):
        highs = highs_of(segment.log.pread(head.size_bytes, head.position), head.magic)
        cache.put(segment.number, head.position, highs)
    if 0 <= head.base_offset < start_offset or (highs.offsets and highs.offsets[0] < start_offset):
        highs = highs_of(segment.log.pread(head.size_bytes, head.position), head.magic, start_offset)
    return highs.first_at_or_after(timestamp)


def _among_opened(segment: Segment, head: Head, timestamp: int, cache: TimesCache) -> TimedRecord | None:
    """The first record at or after a time in a compressed v2 batch."""
    known = cache.get(segment.number, head.position)
    if isinstance(known, Highs):
        return known.first_at_or_after(timestamp)
    batch = cache.opened(segment.number, head.position)
    if batch is None:
        data = segment.log.pread(head.size_bytes, head.position)
        header = read_header(data)
        batch = DecompressedBatch(header, records_of(data, header))
        if not cache.keep_open(segment.number, head.position, batch):
            highs = highs_of_opened(batch)
            cache.put(segment.number, head.position, highs)
            return highs.first_at_or_after(timestamp)
    if known is None:
        known = BatchSamples(batch.header, 0)
        cache.put(segment.number, head.position, known)
    return _in_samples(segment, head.position, known, timestamp, batch.records)


def _among_samples(segment: Segment, head: Head, timestamp: int, cache: TimesCache) -> TimedRecord | None:
    samples = cache.get(segment.number, head.position)
    data = None
    if not isinstance(samples, BatchSamples):
        data = segment.log.pread(head.size_bytes, head.position)
        samples = BatchSamples(read_header(data))
        if head.size_bytes > WALKED_AT_ONCE_BYTES:
            samples.walk_on(data, 0, MAX_INT64)
        cache.put(segment.number, head.position, samples)
    return _in_samples(segment, head.position, samples, timestamp, data)


def _in_samples(
    segment: Segment, position: int, samples: BatchSamples, timestamp: int, data: bytes | None = None
) -> TimedRecord | None:
    """The first record of a batch at or after a time; `data` is that batch where it has been read. Raises DecodeError."""
    start = 0  # of `data` in the batch
    if samples.lacks(timestamp):
        if data is None:
            start = samples.positions[-1]
            data = segment.log.pread(samples.header.size_bytes - start, position + start)
        samples.walk_on(data, start, timestamp)
    span = samples.span_for(timestamp)
    if span is None:
        return None
    count, at, end = span
    if data is None:
        start = at
        data = segment.log.pread(end - start, position + start)
    header = samples.header
    return find_record(data, at - start, count, header.base_offset, header.base_timestamp, timestamp)


def largest_in_segment(segment: Segment, start_offset: int, end_offset: int) -> int:
    """The largest timestamp among the offsets from `start_offset` up to `end_offset`, read from headers where possible."""
    largest = -1
    for head in heads_from(segment, 0):
        if (head.last_offset if head.base_offset == NO_OFFSET else head.base_offset) >= end_offset:
            break
        if head.last_offset < start_offset or head.max_timestamp <= largest:
            continue
        if head.base_offset >= start_offset and head.last_offset < end_offset and head.magic >= 2:
            largest = head.max_timestamp
        else:
            largest = max(largest, _largest_in_batch(segment, head, start_offset))
    return largest


def _largest_in_batch(segment: Segment, head: Head, start_offset: int) -> int:
    data = segment.log.pread(head.size_bytes, head.position)
    try:
        timestamps = highs_of(data, head.magic, start_offset).timestamps
    except DecodeError as error:
        raise _damaged(segment, head.position, error) from error
    return timestamps[-1] if timestamps else -1


def _damaged(segment: Segment, position: int, error: DecodeError) -> StorageFault:
    return segment.suspected(f"damaged at {position}: {error}")
