"""Finds records by time: the first one at or after a time, and the latest one, exactly and whatever the order of times.

Within a segment the time index names the largest timestamp up to some place, and an entry of it is considered at every entry of
the offset index. So, with E' the first time entry not before the target and (j) the last offset entry at or before the offset
that E' names: every batch up to entry j-1 is earlier than the target: otherwise an earlier time entry would reach it. The walk
begins at that batch and meets the answer within about two index intervals; how long the segment is, and how disordered its
times are, plays no part.

Which batches are looked into is decided by their headers: control batches, batches that the cleaner has emptied (their
header still shows a time) and messages without a time are passed over, and so are all whose largest time is before the target.
"""

from collections.abc import Iterator
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
from horolog.broker.log.segments.reader import WALK_BYTES, good_ranges, misfit
from horolog.broker.log.segments.segment import Segment
from horolog.protocol.errors import DecodeError
from horolog.protocol.records.batch import CONTROL_BIT, read_header
from horolog.protocol.records.compression import CODEC_MASK
from horolog.protocol.records.head import (
    HEADER,
    HEADER_BYTES,
    LENGTH_ENDS_AT,
    MESSAGE_ATTRIBUTES_AT,
    MESSAGE_TIMESTAMP_AT,
    SMALLEST_ENTRY_BYTES,
    TIMESTAMP,
)

_unpack_header = HEADER.unpack_from
_read_timestamp = TIMESTAMP.unpack_from


class Found(NamedTuple):
    """A look-up's answer; the leader epoch is -1 for formats that carry none."""

    timestamp: int
    offset: int
    leader_epoch: int


class _Head(NamedTuple):
    """What the headers tell of a batch."""

    position: int
    size_bytes: int
    base_offset: int
    last_offset: int
    magic: int
    attributes: int
    timestamp: int  # the largest that carries meaning, -1 if none does
    leader_epoch: int


def start_position(offset_entries: bytes | bytearray, time_entries: bytes | bytearray, timestamp: int) -> int:
    """Where to begin the walk to the first record at or after a time; see the module's docstring."""
    entry = time_index.first_at_or_after(time_entries, timestamp)
    if entry is None:
        number = len(offset_entries) // offset_index.ENTRY.size - 1
    else:
        number = offset_index.last_at_or_before(offset_entries, entry[1]) - 1
    return offset_index.position_of(offset_entries, number)


def first_in_segment(
    segment: Segment, timestamp: int, start_offset: int, end_offset: int, cache: TimesCache
) -> Found | None:
    """The first record of a segment at or after a time, among the offsets from `start_offset` up to `end_offset`."""
    offsets, times = segment.indexes()
    for head in heads(segment, start_position(offsets.entries, times.entries, timestamp)):
        if head.timestamp < timestamp or head.last_offset < start_offset:
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


def _in_batch(segment: Segment, head: _Head, timestamp: int, start_offset: int, cache: TimesCache) -> Place | None:
    """The first record of a batch at or after a time, not before an offset. Raises DecodeError."""
    if head.magic < 2 and not head.attributes & CODEC_MASK:
        return Place(head.timestamp, head.last_offset)
    if head.magic < 2 or head.attributes & (CODEC_MASK | LOG_APPEND_TIME_BIT) or head.base_offset < start_offset:
        return _among_highs(segment, head, timestamp, start_offset, cache)
    if head.size_bytes > SMALL_BATCH_BYTES:
        return _among_samples(segment, head, timestamp, cache)
    data = segment.log.pread(head.size_bytes, head.position)
    header = read_header(data)
    return find_record(data, HEADER_BYTES, header.count, header, timestamp)


def _among_highs(segment: Segment, head: _Head, timestamp: int, start_offset: int, cache: TimesCache) -> Place | None:
    highs = cache.get(segment.number, head.position)
    if not isinstance(highs, Highs):
        highs = highs_of(segment.log.pread(head.size_bytes, head.position), head.magic)
        cache.put(segment.number, head.position, highs)
    if head.base_offset < start_offset or (highs.offsets and highs.offsets[0] < start_offset):
        highs = highs_of(segment.log.pread(head.size_bytes, head.position), head.magic, start_offset)
    return highs.first_at_or_after(timestamp)


def _among_samples(segment: Segment, head: _Head, timestamp: int, cache: TimesCache) -> Place | None:
    samples = cache.get(segment.number, head.position)
    if not isinstance(samples, Samples):
        samples = samples_of(segment.log.pread(head.size_bytes, head.position))
        cache.put(segment.number, head.position, samples)
    span = samples.span_for(timestamp)
    if span is None:
        return None
    count, start, end = span
    data = segment.log.pread(end - start, head.position + start)
    return find_record(data, 0, count, samples.header, timestamp)


def largest_in_segment(segment: Segment, start_offset: int, end_offset: int) -> int:
    """The largest timestamp among the offsets from `start_offset` up to `end_offset`, read from headers where possible."""
    largest = -1
    for head in heads(segment, 0):
        if head.base_offset >= end_offset:
            break
        if head.last_offset < start_offset or head.timestamp <= largest:
            continue
        if head.base_offset >= start_offset and head.last_offset < end_offset and head.magic >= 2:
            largest = head.timestamp
        else:
            largest = max(largest, _largest_in_batch(segment, head, start_offset))
    return largest


def _largest_in_batch(segment: Segment, head: _Head, start_offset: int) -> int:
    data = segment.log.pread(head.size_bytes, head.position)
    try:
        timestamps = highs_of(data, head.magic, start_offset).timestamps
    except DecodeError as error:
        raise segment.suspected(f"damaged at {head.position}: {error}") from error
    return timestamps[-1] if timestamps else -1


def heads(segment: Segment, position: int) -> Iterator[_Head]:
    """The headers of all batches that have been written, from a position on."""
    for start, end in good_ranges(segment, position):
        yield from _heads_between(segment, start, end)


def _heads_between(segment: Segment, position: int, end: int) -> Iterator[_Head]:
    pread = segment.log.pread
    padding = bytes(HEADER_BYTES)
    while position < end:
        if segment.unverified is not None:
            segment.verify(position, min(position + WALK_BYTES, end))
        chunk = pread(min(WALK_BYTES, end - position), position)
        limit = len(chunk) - HEADER_BYTES
        if len(chunk) == end - position:
            limit = len(chunk) - 1
            chunk += padding  # messages of the old formats may be smaller than what is unpacked
        at = 0
        while at <= limit:
            head = _head(chunk, at, position + at)
            if head.size_bytes < SMALLEST_ENTRY_BYTES:
                raise misfit(segment, position + at)
            yield head
            at += head.size_bytes
        position += at


def _head(chunk: bytes, at: int, position: int) -> _Head:
    base, length, epoch, magic, _, attributes, delta, _, largest, _, _, _, count = _unpack_header(chunk, at)
    size_bytes = LENGTH_ENDS_AT + length
    if magic >= 2:
        timed = count > 0 and not attributes & CONTROL_BIT
        return _Head(position, size_bytes, base, base + delta, magic, attributes, largest if timed else -1, epoch)
    timestamp = _read_timestamp(chunk, at + MESSAGE_TIMESTAMP_AT)[0] if magic else -1
    return _Head(position, size_bytes, base, base, magic, chunk[at + MESSAGE_ATTRIBUTES_AT], timestamp, -1)
