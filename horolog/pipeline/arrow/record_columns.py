"""Decodes the records of many v2 batches together: first where each record begins, then one field of all records at a time.

A record's start is known only once the length of the record before it is read. In a run of records of one length
that takes one comparison of every `stride`-th byte; else a walk from length to length, which may be compiled. Everything else, all
varints and all checks, is done with numpy over all records of a stretch.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from horolog.pipeline.arrow.columns import Columns, HeaderSpans, Spans
from horolog.pipeline.base.varints import MAX_VARLONG_BYTES, Array, Irregular, read_signed
from horolog.protocol.errors import DecodeError
from horolog.protocol.records.scan_columns import same_bytes
from horolog.protocol.records.timestamps import TIMESTAMP_TYPE_BIT
from horolog.protocol.records.walk import record_starts

_SMALLEST_RUN = 16
_FIRST_WALK, _LONGEST_WALK = 8, 4096
_MOST_HEADERS = 10_000
"""Of one record; more are left to the plain decoder."""


class BatchPlace(NamedTuple):
    """The records of one batch: where they lie in the data of a stretch, and what the batch's header says."""

    start: int
    end: int
    count: int  # type: ignore[assignment]  # hides tuple.count, which is not used here
    base_offset: int
    base_timestamp: int
    max_timestamp: int
    attributes: int


def decode_records(data: bytes, places: Sequence[BatchPlace]) -> Columns:
    """All records of all batches; Irregular when anything is not as expected."""
    starts = _starts(data, places)
    bytes_ = np.frombuffer(data, np.uint8)
    sizes, at = read_signed(bytes_, starts)
    ends = at + sizes
    time_deltas, at = read_signed(bytes_, at + 1, MAX_VARLONG_BYTES)
    offset_deltas, at = read_signed(bytes_, at)
    key_start, key_end, key_is_null = _bytes_at(bytes_, at)
    value_start, value_end, value_is_null = _bytes_at(bytes_, key_end)
    header_counts, at = read_signed(bytes_, value_end)
    headers = None
    if header_counts.any():
        headers, at = _headers(bytes_, header_counts, at)
    if not np.array_equal(at, ends):
        raise Irregular("a record does not end where its length says")
    counts = np.array([place.count for place in places])
    appended = np.array([bool(place.attributes & TIMESTAMP_TYPE_BIT) for place in places])
    timestamps: Array = np.repeat(np.array([_base_time(place) for place in places], np.int64), counts)
    if appended.any():
        time_deltas[np.repeat(appended, counts)] = 0
    if _may_overflow(timestamps, time_deltas):
        raise Irregular("times near the ends of 64 bits")
    return Columns(
        data,
        np.repeat(np.array([place.base_offset for place in places], np.int64), counts) + offset_deltas,
        timestamps + time_deltas,
        np.repeat(appended.astype(np.int32), counts),
        Spans(key_start, key_end, key_is_null, value_start, value_end, value_is_null),
        headers,
    )


def _base_time(place: BatchPlace) -> int:
    return place.max_timestamp if place.attributes & TIMESTAMP_TYPE_BIT else place.base_timestamp


def _may_overflow(times: Array, deltas: Array) -> bool:
    half = 1 << 62
    return bool(len(times)) and bool(
        times.max() >= half or times.min() < -half or deltas.max() >= half or deltas.min() < -half
    )


def _bytes_at(data: Array, at: Array) -> tuple[Array, Array, Array]:
    """Start and end of the fields after the lengths at these places, and whether each is null."""
    lengths, start = read_signed(data, at)
    is_null = lengths < 0
    end = start + np.maximum(lengths, 0)
    if len(end) and end.max() > len(data):
        raise Irregular("a key or value runs past the end of the data")
    return start, end, is_null


def _headers(data: Array, counts: Array, at: Array) -> tuple[HeaderSpans, Array]:
    """Headers number 0 of all records that have one, then those number 1, and so on; put in order at the end."""
    most = int(counts.max())
    if counts.min() < 0 or most > _MOST_HEADERS:
        raise Irregular(f"a record claims {most} headers")
    at = at.copy()
    first = np.cumsum(counts) - counts
    total = int(counts.sum())
    if 2 * total > len(data):
        raise Irregular(f"{total} headers in {len(data)} bytes")
    spans = Spans(*(np.zeros(total, np.bool_ if name.endswith("null") else np.int64) for name in Spans._fields))
    for number in range(most):
        rows = np.flatnonzero(counts > number)
        key_start, key_end, key_is_null = _bytes_at(data, at[rows])
        if key_is_null.any():
            raise Irregular("a header without a key")
        value_start, value_end, value_is_null = _bytes_at(data, key_end)
        target = first[rows] + number
        found = Spans(key_start, key_end, key_is_null, value_start, value_end, value_is_null)
        for column, values in zip(spans, found, strict=True):
            column[target] = values
        at[rows] = value_end
    return HeaderSpans(counts, spans), at


def _starts(data: bytes, places: Sequence[BatchPlace]) -> Array:
    """Where every record begins."""
    parts: list[Array] = []
    try:
        for place in places:
            end = _starts_in(data, place, parts)
            if end != place.end:
                raise Irregular(f"the last record ends {end - place.end:+d} bytes from the end of its batch")
    except IndexError:
        raise Irregular("a record runs past the end of the data") from None
    except DecodeError as error:
        raise Irregular(str(error)) from None
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _starts_in(data: bytes, place: BatchPlace, parts: list[Array]) -> int:
    """Add the starts of one batch's records; where the last of them ends."""
    position, left = place.start, place.count
    walk = _FIRST_WALK
    while left:
        if left >= _SMALLEST_RUN:
            run, stride = _run(data, position, left, place.end)
            if run:
                parts.append(np.arange(position, position + run * stride, stride, dtype=np.int64))
                position += run * stride
                left -= run
                walk = _FIRST_WALK
                continue
        steps = min(walk, left)
        walked: list[int] = []
        position = record_starts(data, position, steps, walked)
        parts.append(np.array(walked, np.int64))
        left -= steps
        walk = min(8 * walk, _LONGEST_WALK)
    return position


def _run(data: bytes, position: int, left: int, end: int) -> tuple[int, int]:
    """How many records from `position` on are as long as the first, if enough to be worthwhile, and that length."""
    size = data[position]
    width = 1
    if size > 127:
        high = data[position + 1]
        if high > 127:
            return 0, 0
        size += (high << 7) - 128
        width = 2
    stride = width + (size >> 1)
    length = min(left, (end - position) // stride)
    for at in range(width):
        if length < _SMALLEST_RUN:
            return 0, 0
        length = same_bytes(data[position + at : position + length * stride : stride])
    return (length, stride) if length >= _SMALLEST_RUN else (0, 0)
