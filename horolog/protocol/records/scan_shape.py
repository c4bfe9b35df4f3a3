"""The shape of one v2 record: where in it the lengths and the numbers are."""

from typing import NamedTuple

from horolog.protocol.errors import DecodeError
from horolog.protocol.primitives import MAX_VARLONG_BYTES, decode_varint
from horolog.protocol.records.walk import misfit

Bytes = bytes | bytearray


class Shape(NamedTuple):
    """Places are counted from the record's first byte; the numbers are deltas, the lengths as they stand in the record."""

    stride: int  # the size of the record with its own length in front
    fixed: list[int]  # the bytes that say how long something is: a record with the same ones there is laid out alike
    size: range
    timestamp: range
    offset: range
    key_size: range
    value_size: range
    has_headers: bool
    has_null_key: bool
    timestamp_delta: int
    frame_bytes: int  # what the record's length counts besides the value


def shape_at(data: Bytes, start: int) -> Shape:
    length, position = decode_varint(data, start)
    stop = position + length
    timestamp_at = position + 1
    timestamp_delta, offset_at = decode_varint(data, timestamp_at, MAX_VARLONG_BYTES)
    _, key_at = decode_varint(data, offset_at)
    fixed = list(range(position - start))
    size = range(position - start)
    key_length, key_size, position = _skip_bytes(data, start, key_at, fixed)
    value_length, value_size, position = _skip_bytes(data, start, position, fixed)
    count, headers_at = decode_varint(data, position)
    fixed += range(position - start, headers_at - start)
    position = skip_headers(data, headers_at, count, fixed, start)
    if position != stop:
        raise misfit(position - stop)
    return Shape(
        stop - start,
        fixed,
        size,
        range(timestamp_at - start, offset_at - start),
        range(offset_at - start, key_at - start),
        key_size,
        value_size,
        count != 0,
        key_length < 0,
        timestamp_delta,
        length - max(value_length, 0),
    )


def _skip_bytes(data: Bytes, start: int, position: int, fixed: list[int]) -> tuple[int, range, int]:
    """A length, its own place, and the position behind what it announces; any negative length announces nothing."""
    length, stop = decode_varint(data, position)
    place = range(position - start, stop - start)
    fixed += place
    return length, place, stop + max(length, 0)


def skip_headers(data: Bytes, position: int, count: int, fixed: list[int], start: int = 0) -> int:
    """The position behind `count` headers; where their lengths are is added to `fixed`."""
    if not 0 <= 2 * count <= len(data) - position:
        raise DecodeError(f"a record claims {count} headers")
    for _ in range(count):
        key_length, _, position = _skip_bytes(data, start, position, fixed)
        if key_length < 0:
            raise DecodeError("a header without a key")
        _, _, position = _skip_bytes(data, start, position, fixed)
    return position
