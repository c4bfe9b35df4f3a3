"""Checks the records of a v2 batch and summarizes their times, offsets and keys, without making a value of each.

Records of one batch usually look alike: the same lengths, the same headers, times close to each other. One record shows which
bytes hold lengths; if every `stride`-th byte from there is the same in the records after it, all of them are as well formed as
the first. Such a column is one slice and one comparison at C speed, for any number of records: a *run*. Records that differ only in
the length of the value are *kin*: their first bytes, picked out and put side by side, make columns too (`scan_kin`). Records that
are not alike are walked, one varint after the other. A compiled walk is faster than any column: then all records are walked.
Of records that are long on average nothing but the value's length matters: each is walked without its value (`_scan_long`).
"""

from typing import Final, NamedTuple

from horolog.protocol.errors import DecodeError
from horolog.protocol.primitives import Buffer, decode_varint, encode_varint
from horolog.protocol.records.scan_columns import expected_offsets, extremes, same_bytes, same_width, until_next_width
from horolog.protocol.records.scan_kin import take_heads
from horolog.protocol.records.scan_shape import Bytes, Shape, shape_at
from horolog.protocol.records.walk import IS_COMPILED, walk

_SMALLEST_RUN: Final = 16  # fewer alike are walked faster than compared
# How many records are walked before the next attempt: many more after each that did not pay, few again when one did.
_FIRST_WALK, _LONGEST_WALK = 8, 1024
_PAYING_RUN: Final = 64
_FEWEST_KIN, _MOST_KIN = 64, 1024
_WIDEST_NUMBER: Final = 8  # bytes; wider timestamp deltas are walked
_NO_DELTA_YET: Final = 1 << 63
LONG_RECORD_BYTES: Final = 128 * 1024
"""The average size from which it takes longer to copy a record than to leave out its value."""
_LONGEST_DELTA: Final = 10  # bytes of a timestamp delta


class Scan(NamedTuple):
    lowest_delta: int  # of the timestamps, against the base timestamp
    highest_delta: int
    in_order: bool  # the offset deltas are 0, 1, 2 ...
    has_null_key: bool


_new_scan: Final = tuple.__new__  # a third of the cost of a named tuple's own constructor


class _State:
    """The findings so far, and where the next record begins."""

    __slots__ = ("has_null_key", "highest", "in_order", "index", "kin", "lowest", "position")

    def __init__(self, position: int) -> None:
        self.position = position
        self.index = 0
        self.lowest = _NO_DELTA_YET
        self.highest = -_NO_DELTA_YET
        self.in_order = True
        self.kin = _FEWEST_KIN  # how many records are tried as kin the next time
        self.has_null_key = False


def scan_records(data: Buffer, start: int, count: int) -> Scan:
    """Check that `data` holds exactly `count` records from `start` to its end; DecodeError if not."""
    try:
        if len(data) > LONG_RECORD_BYTES * count:
            end, scan = _scan_long(memoryview(data), start, count)
        else:
            # A compiled walk reads `bytes` only. Plain code reads a bytearray alike, and its columns are no views.
            content: bytes = data if not IS_COMPILED and type(data) is bytearray else bytes(data)  # type: ignore[assignment]
            if IS_COMPILED or count < _SMALLEST_RUN:
                end, lowest, highest, in_order, has_null_key = walk(content, start, 0, count)
                scan = _new_scan(Scan, (lowest, highest, in_order, has_null_key))
            else:
                end, scan = _scan_alike(content, start, count)
    except IndexError:
        raise DecodeError("a record runs past the end of its batch") from None
    if end != len(data):
        raise DecodeError(f"the last record ends {end - len(data):+d} bytes from the end of its batch")
    return scan


def _scan_long(data: memoryview, start: int, count: int) -> tuple[int, Scan]:
    lowest, highest = _NO_DELTA_YET - 1, -_NO_DELTA_YET  # compiled code compares them as 64 bits
    position, in_order, has_null_key = start, True, False
    for index in range(count):
        record, position = _without_value(data, position)
        _, low, high, is_in_order, lacks_key = walk(record, 0, index, 1)
        lowest, highest = min(lowest, low), max(highest, high)
        in_order, has_null_key = in_order and is_in_order, has_null_key or lacks_key
    return position, Scan(lowest, highest, in_order, has_null_key)


def _without_value(data: memoryview, start: int) -> tuple[bytes, int]:
    """A record as it would be with an empty value, and where the record ends."""
    size, body_at = decode_varint(data, start)
    end = body_at + size
    _, position = decode_varint(data, body_at + 1, _LONGEST_DELTA)
    _, position = decode_varint(data, position)
    key_bytes, position = decode_varint(data, position)
    value_at = position + max(key_bytes, 0)
    value_bytes, position = decode_varint(data, value_at)
    headers = data[position + max(value_bytes, 0) : end]
    body = b"".join((data[body_at:value_at], encode_varint(min(value_bytes, 0)), headers))
    return encode_varint(len(body)) + body, end


def _scan_alike(data: bytes, start: int, count: int) -> tuple[int, Scan]:
    """Where the records end, and what they hold."""
    state = _State(start)
    pace = _FIRST_WALK
    while state.index < count:
        before = state.index
        left = count - before
        if left >= _SMALLEST_RUN:
            shape = shape_at(data, state.position)
            taken = _take_run(data, state, shape, left) or _take_kin(data, state, shape, left)
            if taken and state.index - before >= _PAYING_RUN:
                pace = _FIRST_WALK
                continue
        walked = min(pace, count - state.index)
        state.position, lowest, highest, in_order, has_null_key = walk(data, state.position, state.index, walked)
        state.index += walked
        state.lowest = min(state.lowest, lowest)
        state.highest = max(state.highest, highest)
        state.in_order = state.in_order and in_order
        state.has_null_key = state.has_null_key or has_null_key
        pace = min(16 * pace, _LONGEST_WALK)
    return state.position, Scan(state.lowest, state.highest, state.in_order, state.has_null_key)


def _take_run(data: Bytes, state: _State, shape: Shape, left: int) -> bool:
    """Move past the records that have exactly the shape of the next one, if there are enough to be worth it."""
    start, stride = state.position, shape.stride
    length = min(left, (len(data) - start) // stride)
    for at in shape.fixed:
        if length < _SMALLEST_RUN:
            return False
        length = same_bytes(data[start + at : start + length * stride : stride])
    end = start + length * stride
    numbers = _Numbers(
        [data[start + at : end : stride] for at in shape.timestamp],
        [data[start + at : end : stride] for at in shape.offset],
    )
    length = min(length, numbers.same_width())
    return _take(state, shape, numbers, length, start + length * stride)


def _take_kin(data: Bytes, state: _State, shape: Shape, left: int) -> bool:
    """Move past the records that differ only in the value's length; how many are tried depends on the last attempt."""
    heads = take_heads(data, state.position, shape, min(left, state.kin, until_next_width(state.index)))
    length = 0
    if heads is not None:
        numbers = _Numbers(heads.times, heads.offsets)
        length = min(heads.length, numbers.same_width())
    state.kin = min(max(2 * length, _FEWEST_KIN), _MOST_KIN)
    return heads is not None and _take(state, shape, numbers, length, heads.ends[length - 1])


class _Numbers(NamedTuple):
    """The columns of what may differ from record to record."""

    times: list[Bytes]
    offsets: list[Bytes]

    def same_width(self) -> int:
        return min(same_width(self.times), same_width(self.offsets))


def _take(state: _State, shape: Shape, numbers: _Numbers, length: int, end: int) -> bool:
    """Note what the first `length` records of these columns say, unless they are too few to have been worth it."""
    if length < _SMALLEST_RUN or len(numbers.times) > _WIDEST_NUMBER:
        return False
    lowest, highest = extremes([column[:length] for column in numbers.times], shape.timestamp_delta)
    state.lowest = min(state.lowest, lowest)
    state.highest = max(state.highest, highest)
    if state.in_order:
        expected = expected_offsets(state.index, length, len(numbers.offsets))
        state.in_order = [column[:length] for column in numbers.offsets] == expected
    state.has_null_key = state.has_null_key or shape.has_null_key
    state.index += length
    state.position = end
    return True
