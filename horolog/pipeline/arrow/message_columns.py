"""Decodes many messages of formats v0 and v1 together: a walk over their sizes, then one field of all of them at a time."""

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

import numpy as np

from horolog.pipeline.arrow.columns import Columns, Spans
from horolog.pipeline.base.varints import Array, Irregular
from horolog.protocol.records.compression import CODEC_MASK
from horolog.protocol.records.head import (
    LENGTH_AT,
    LENGTH_ENDS_AT,
    MAGIC_AT,
    MESSAGE_ATTRIBUTES_AT,
    MESSAGE_TIMESTAMP_AT,
    SMALLEST_MESSAGE_LENGTH,
)
from horolog.protocol.records.timestamps import NO_TIMESTAMP, TIMESTAMP_TYPE_BIT, TimestampType

_read_size = Struct(">i").unpack_from
_INT32_BYTES, _INT64_BYTES = 4, 8


class SetPlace(NamedTuple):
    """One plain message, or the set inside a wrapper: where it lies, and what the wrapper says about its content."""

    start: int
    end: int
    last_offset: int | None  # of a wrapper: the offset of its last message; None for plain messages
    wrapper_attributes: int
    wrapper_timestamp: int


def decode_messages(data: bytes, places: Sequence[SetPlace], magic: int) -> Columns:
    """All messages, all of one magic; Irregular when anything is not as expected."""
    starts, counts = _starts(data, places, magic)
    bytes_ = np.frombuffer(data, np.uint8)
    offsets = _integers(bytes_, starts, _INT64_BYTES)
    attributes = bytes_.take(starts + MESSAGE_ATTRIBUTES_AT).astype(np.int64)
    if (bytes_.take(starts + MAGIC_AT) != magic).any():
        raise Irregular("a message of another magic")
    if magic:
        timestamps = _integers(bytes_, starts + MESSAGE_TIMESTAMP_AT, _INT64_BYTES)
        key_at = starts + MESSAGE_TIMESTAMP_AT + _INT64_BYTES
    else:
        timestamps = np.full(len(starts), NO_TIMESTAMP, np.int64)
        key_at = starts + MESSAGE_TIMESTAMP_AT
    ends = starts + LENGTH_ENDS_AT + _integers(bytes_, starts + LENGTH_AT, _INT32_BYTES)
    key_start, key_end, key_is_null = _bytes_at(bytes_, key_at, ends)
    value_start, value_end, value_is_null = _bytes_at(bytes_, key_end, ends)
    offsets, timestamps, types = _as_wrapped(places, counts, magic, offsets, timestamps, attributes)
    spans = Spans(key_start, key_end, key_is_null, value_start, value_end, value_is_null)
    return Columns(data, offsets, timestamps, types, spans)


def _as_wrapped(
    places: Sequence[SetPlace],
    counts: Array,
    magic: int,
    offsets: Array,
    timestamps: Array,
    attributes: Array,
) -> tuple[Array, Array, Array]:
    """Offsets, times and types of the messages, after what their wrappers say."""
    wrapped = np.array([place.last_offset is not None for place in places])
    inside: Array = np.repeat(wrapped, counts)
    if (attributes[inside] & CODEC_MASK).any():
        raise Irregular("a wrapper inside a wrapper")
    if magic and wrapped.any():
        lasts = np.cumsum(counts) - 1
        outer = np.array([place.last_offset or 0 for place in places], np.int64)
        shifts = np.where(wrapped, outer - offsets[lasts], 0)
        offsets = offsets + np.repeat(shifts, counts)
    if not magic:
        return offsets, timestamps, np.full(len(offsets), TimestampType.NONE, np.int32)
    outer_attributes: Array = np.repeat(np.array([place.wrapper_attributes for place in places], np.int64), counts)
    counting: Array = np.where(inside, outer_attributes, attributes)
    appended: Array = counting & TIMESTAMP_TYPE_BIT != 0
    outer_times: Array = np.repeat(np.array([place.wrapper_timestamp for place in places], np.int64), counts)
    return offsets, np.where(inside & appended, outer_times, timestamps), appended.astype(np.int32)


def _starts(data: bytes, places: Sequence[SetPlace], magic: int) -> tuple[Array, Array]:
    """Where every message begins, and how many there are in each place."""
    smallest = SMALLEST_MESSAGE_LENGTH[magic]
    starts: list[int] = []
    counts: list[int] = []
    for place in places:
        position, end = place.start, place.end
        before = len(starts)
        while position < end:
            if position + LENGTH_ENDS_AT > end:
                raise Irregular("a message ends inside its head")
            size = _read_size(data, position + LENGTH_AT)[0]
            if size < smallest:
                raise Irregular("a message smaller than its head")
            starts.append(position)
            position += LENGTH_ENDS_AT + size
        if position != end or len(starts) == before:
            raise Irregular("a set that does not end where it should")
        counts.append(len(starts) - before)
    return np.array(starts, np.int64), np.array(counts, np.int64)


def _integers(data: Array, at: Array, width: int) -> Array:
    """Big-endian integers of `width` bytes."""
    try:
        picked = data.take(at[:, None] + np.arange(width))
    except IndexError:
        raise Irregular("a number runs past the end of the data") from None
    return picked.view(f">i{width}").reshape(-1).astype(np.int64)


def _bytes_at(data: Array, at: Array, ends: Array) -> tuple[Array, Array, Array]:
    lengths = _integers(data, at, _INT32_BYTES)
    start = at + _INT32_BYTES
    end = start + np.maximum(lengths, 0)
    if (end > ends).any():
        raise Irregular("a key or value runs past the end of its message")
    return start, end, lengths < 0
