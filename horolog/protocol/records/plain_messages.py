"""Writes plain v0 and v1 messages as the records of a v2 batch, at a fraction of what one value for each message costs.

It ends where anything is unusual: `message_set` names the faults.

This module may be compiled (see `tools.compiled`): places and sizes are a machine's integers then. Times and offsets are not, since
their sums may take more than 64 bits.
"""

from typing import Final, NamedTuple

from mypy_extensions import i64

from horolog.protocol.primitives import encode_varint
from horolog.protocol.records.compression import CODEC_MASK
from horolog.protocol.records.head import (
    LENGTH,
    LENGTH_ENDS_AT,
    MESSAGE_COVERED_FROM,
    MESSAGE_UP_TO_KEY,
    SMALLEST_MESSAGE_LENGTH,
)
from horolog.protocol.records.message_sums import crc32_of_messages
from horolog.protocol.records.record import MAX_INT64, MIN_INT64
from horolog.protocol.records.timestamps import NO_TIMESTAMP, TIMESTAMP_TYPE_BIT

LARGEST_DELTA: Final = 2**31 - 1
UNBOUNDED: Final = 2**62

_ENDS_AT: Final[i64] = LENGTH_ENDS_AT
_COVERED_FROM: Final[i64] = MESSAGE_COVERED_FROM
_LENGTH_BYTES: Final[i64] = LENGTH.size
_RECORD_HEAD_BYTES: Final[i64] = 28
"""The most that a record takes besides key and value, as long as times and offsets are not ages apart."""
_NO_ATTRIBUTES: Final = b"\0"
_NO_HEADERS: Final = b"\0"
_FIXED_BYTES: Final = len(_NO_ATTRIBUTES + _NO_HEADERS)
_FEW: Final = 4096
_VARINTS: Final = (*map(encode_varint, range(_FEW)), encode_varint(-1))
"""The varints of small numbers, and in the last place that of -1, which stands for null."""
_HEADS: Final = tuple([_NO_HEADERS + length + _NO_ATTRIBUTES for length in _VARINTS])
"""The end of the previous record and the beginning of one, by its size."""


class AsRecords(NamedTuple):
    """The records of `count` messages, and what a batch of them says; the messages end at `end`."""

    records: bytes
    end: int
    count: int  # type: ignore[assignment]  # hides tuple.count, which is not needed here
    first_offset: int
    last_offset: int
    base_timestamp: int
    max_timestamp: int
    is_appended: bool


def as_records(  # noqa: PLR0915 - calls would cost half the time
    data: bytes, position: i64, magic: int, most_bytes: i64, *, wrapped: bool = False, append_time: int | None = None
) -> AsRecords:
    """The messages from `position` on that one batch can hold: of one format, timestamp type and append time.

    Their offsets ascend, no distance is too large for a batch, and they take no more than `most_bytes`, unless the first alone does.
    Inside a wrapper no checksum is verified, and the wrapper gives the type of all and, in `append_time`, their largest time.
    """
    view, crc32 = memoryview(data), crc32_of_messages()
    parts: list[bytes] = []
    read, read_length = MESSAGE_UP_TO_KEY[magic].unpack_from, LENGTH.unpack_from
    key_from: i64 = MESSAGE_UP_TO_KEY[magic].size
    smallest: i64 = SMALLEST_MESSAGE_LENGTH[magic]
    end: i64 = len(data)
    last_start: i64 = end - _ENDS_AT - smallest
    crc: i64
    size: i64
    length: i64
    value_length: i64
    timestamp, is_appended, time = NO_TIMESTAMP, append_time is not None, _VARINTS[0]
    count = known_bits = first_offset = next_offset = last_offset = base = highest = last_time = earliest = latest = 0
    while position <= last_start:
        if magic:
            offset, size, crc, found, attributes, timestamp, length = read(data, position)
        else:
            offset, size, crc, found, attributes, length = read(data, position)
        stop: i64 = position + _ENDS_AT + size
        if found != magic or size < smallest or stop > end or attributes & CODEC_MASK:
            break
        if not wrapped and attributes != known_bits and count:
            break
        if not wrapped and crc32(view[position + _COVERED_FROM : stop]) != crc:
            break
        at: i64 = position + key_from
        key_end: i64 = at + length if length >= 0 else at
        if key_end + _LENGTH_BYTES > stop:
            break
        (value_length,) = read_length(data, key_end)
        value_at: i64 = key_end + _LENGTH_BYTES
        value_end: i64 = value_at + value_length if value_length >= 0 else value_at
        if value_end > stop:
            break
        content_bytes: i64 = key_end - at + value_end - value_at
        most_bytes -= _RECORD_HEAD_BYTES + content_bytes
        if not count:
            known_bits, first_offset, last_offset = attributes, offset, offset + LARGEST_DELTA
            base = highest = last_time = earliest = latest = timestamp
            if not wrapped and magic:
                is_appended = bool(attributes & TIMESTAMP_TYPE_BIT)
            if not is_appended or append_time is not None:
                earliest, latest, highest = timestamp + MIN_INT64, timestamp + MAX_INT64, max(timestamp, NO_TIMESTAMP)
        elif most_bytes < 0 or not next_offset <= offset <= last_offset or not earliest <= timestamp <= latest:
            break
        if timestamp != last_time:
            last_time, since = timestamp, timestamp - base
            time = _VARINTS[since] if 0 <= since < _FEW else encode_varint(since)
            if timestamp > highest:  # noqa: PLR1730 - max() costs five times as much
                highest = timestamp
        distance = offset - first_offset
        delta = _VARINTS[distance] if distance < _FEW else encode_varint(distance)
        key_head = _VARINTS[length] if -1 <= length < _FEW else encode_varint(max(length, -1))
        value_head = _VARINTS[value_length] if -1 <= value_length < _FEW else encode_varint(max(value_length, -1))
        size = len(time) + len(delta) + len(key_head) + len(value_head) + content_bytes + _FIXED_BYTES
        head = _HEADS[size] if size < _FEW else _NO_HEADERS + encode_varint(size) + _NO_ATTRIBUTES
        parts += (head, time, delta, key_head, data[at:key_end], value_head, data[value_at:value_end])
        count, next_offset, position = count + 1, offset + 1, stop
    records = b"".join(parts)[len(_NO_HEADERS) :] + _NO_HEADERS
    largest = highest if append_time is None else append_time
    return AsRecords(records, position, count, first_offset, next_offset - 1, base, largest, is_appended)
