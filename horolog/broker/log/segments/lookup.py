"""Finds records by time: the first one at or after a time, and the latest one, exactly and whatever the order of times.

Within a segment the time index names the largest timestamp up to some place, and an entry of it is considered at every entry of
the offset index. So, with E' the first time entry not before the target and (j) the last offset entry at or before the offset
that E' names: every batch up to entry j-1 is earlier than the target: otherwise an earlier time entry would reach it. The walk
begins at that batch and meets the answer within about two index intervals; how long the segment is, and how disordered its
times are, plays no part.

Where batches are large each has an entry, and the batch at entry j holds the answer if it follows the one at entry j-1 and
reaches the target. If its samples are remembered that is known without a look at the file.

Which batches are looked into is decided by their headers: control batches, batches that the cleaner has emptied (their
header still shows a time) and messages without a time are passed over, and so are all whose largest time is before the target.
"""

from typing import NamedTuple

from horolog.broker.log.indexes import offset_index, time_index
from horolog.broker.log.segments.batch_times import (
    LOG_APPEND_TIME_BIT,
    SMALL_BATCH_BYTES,
    Highs,
    Place,
    Samples,
    TimesCache,
    find_record,
    highs_of,
    samples_of,
)
from horolog.broker.log.segments.index_loading import indexes_of
from horolog.broker.log.segments.reader import heads_from
from horolog.broker.log.segments.segment import Segment
from horolog.protocol.errors import DecodeError
from horolog.protocol.records.batch import read_header
from horolog.protocol.records.compression import CODEC_MASK
from horolog.protocol.records.head import HEADER_BYTES, NO_OFFSET, Head


class Found(NamedTuple):
    """A look-up's answer; the leader epoch is -1 for formats that carry none."""

    timestamp: int
    offset: int
    leader_epoch: int


def start_number(offset_entries: bytes | bytearray, time_entries: bytes | bytearray, timestamp: int) -> int:
    """The offset entry (j-1) to begin the walk at, to the first record at or after a time; see the module's docstring."""
    entry = time_index.first_at_or_after(time_entries, timestamp)
    if entry is None:
        return len(offset_entries) // offset_index.ENTRY.size - 1
    return offset_index.last_at_or_before(offset_entries, entry[1]) - 1


def start_position(offset_entries: bytes | bytearray, time_entries: bytes | bytearray, timestamp: int) -> int:
    """Where to begin the walk to the first record at or after a time."""
    return offset_index.position_of(offset_entries, start_number(offset_entries, time_entries, timestamp))


def first_in_segment(
    segment: Segment, timestamp: int, start_offset: int, end_offset: int, cache: TimesCache
) -> Found | None:
    """The first record of a segment at or after a time, among the offsets from `start_offset` up to `end_offset`."""
    offsets, times = indexes_of(segment)
    entries = offsets.entries
    number = start_number(entries, times.entries, timestamp)
    remembered = _remembered_at(segment, entries, number + 1, timestamp, start_offset, cache)
    if remembered is not None:
        position, samples = remembered
        place = _in_samples(segment, position, samples, timestamp)
        if place is not None:
            return Found(*place, samples.header.leader_epoch) if place.offset < end_offset else None
    for head in heads_from(segment, offset_index.position_of(entries, number)):
        if head.max_timestamp < timestamp or head.last_offset < start_offset:
            if head.base_offset >= end_offset:
                return None
            continue
        try:
            found = _in_batch(segment, head, timestamp, start_offset, cache)
        except DecodeError as error:
            raise segment.suspected(f"damaged at {head.position}: {error}") from error
        if found is not None:
            return Found(*found, head.leader_epoch) if found.offset < end_offset else None
    return None


def _remembered_at(
    segment: Segment, entries: bytes | bytearray, number: int, timestamp: int, start_offset: int, cache: TimesCache
) -> tuple[int, Samples] | None:
    """The position and samples of the batch at an offset entry, if they say that the first record at or after a time is in it."""
    if not 0 < number < len(entries) // offset_index.ENTRY.size:
        return None
    position = offset_index.position_of(entries, number)
    samples = cache.get(segment.number, position)
    if not isinstance(samples, Samples):
        return None
    base_offset = samples.header.base_offset
    follows = base_offset == segment.base_offset + offset_index.offset_of(entries, number - 1) + 1
    reaches = samples.header.max_timestamp >= timestamp
    return (position, samples) if follows and reaches and base_offset >= start_offset else None


def _in_batch(segment: Segment, head: Head, timestamp: int, start_offset: int, cache: TimesCache) -> Place | None:
    """The first record of a batch at or after a time, not before an offset. Raises DecodeError."""
    if head.magic < 2 and not head.attributes & CODEC_MASK:
        return Place(head.max_timestamp, head.last_offset)
    if head.magic < 2 or head.attributes & (CODEC_MASK | LOG_APPEND_TIME_BIT) or head.base_offset < start_offset:
        return _among_highs(segment, head, timestamp, start_offset, cache)
    if head.size_bytes > SMALL_BATCH_BYTES:
        return _among_samples(segment, head, timestamp, cache)
    data = segment.log.pread(head.size_bytes, head.position)
    header = read_header(data)
    return find_record(data, HEADER_BYTES, header.count, header, timestamp)


def _among_highs(segment: Segment, head: Head, timestamp: int, start_offset: int, cache: TimesCache) -> Place | None:
    highs = cache.get(segment.number, head.position)
    if not isinstance(highs, Highs):
        highs = highs_of(segment.log.pread(head.size_bytes, head.position), head.magic)
        cache.put(segment.number, head.position, highs)
    if 0 <= head.base_offset < start_offset or (highs.offsets and highs.offsets[0] < start_offset):
        highs = highs_of(segment.log.pread(head.size_bytes, head.position), head.magic, start_offset)
    return highs.first_at_or_after(timestamp)


def _among_samples(segment: Segment, head: Head, timestamp: int, cache: TimesCache) -> Place | None:
    samples = cache.get(segment.number, head.position)
    if not isinstance(samples, Samples):
        samples = samples_of(segment.log.pread(head.size_bytes, head.position))
        cache.put(segment.number, head.position, samples)
    return _in_samples(segment, head.position, samples, timestamp)


def _in_samples(segment: Segment, position: int, samples: Samples, timestamp: int) -> Place | None:
    span = samples.span_for(timestamp)
    if span is None:
        return None
    count, start, end = span
    data = segment.log.pread(end - start, position + start)
    return find_record(data, 0, count, samples.header, timestamp)


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
        raise segment.suspected(f"damaged at {head.position}: {error}") from error
    return timestamps[-1] if timestamps else -1
