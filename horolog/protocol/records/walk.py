"""Walks the records of a v2 batch, one varint after the other: checks that they are well formed, notes times, offsets and keys.

Of records that were checked before, a lookup reads only lengths and times (`later_records`). A reader of all fields of many records
needs to know where each begins (`record_starts`).

This module may be compiled (see `tools.compiled`). `i64` is a machine's integer then, and an `int` otherwise: nothing here may
need more than 64 bits. `data` is `bytes`, whose elements compiled code reads in place.
"""

from typing import Final

from mypy_extensions import i64

from horolog.protocol.errors import DecodeError

IS_COMPILED: Final = not __file__.endswith(".py")

_LAST_SHIFT_OF_VARINT: Final = 28  # of the fifth byte
_LAST_SHIFT_OF_VARLONG: Final = 63  # of the tenth, of which one bit is left
_LARGEST_DELTA: Final = (1 << 63) - 1
_LEAST_DELTA: Final = -(1 << 63)
_ALL_64_BITS: Final = -1
"""What a compiled `raw` is when every bit is set; a plain one is never negative."""


def walk(data: bytes, position: i64, index: i64, count: i64) -> tuple[i64, i64, i64, bool, bool]:  # noqa: C901, PLR0912, PLR0915 - calls would cost half the time
    """Where `count` records end, the first of which is number `index`, and the fields of their `scan.Scan`. IndexError: past the data."""
    lowest: i64 = _LARGEST_DELTA
    highest: i64 = _LEAST_DELTA
    in_order, has_null_key = True, False
    last_raw: i64 = _ALL_64_BITS  # consecutive records often have one and the same time
    expected: i64 = 2 * index
    while count > 0:  # a range costs compiled code half the time
        count -= 1
        size: i64 = data[position]
        position += 1
        if size > 127:
            byte: i64 = data[position]
            position += 1
            size += (byte << 7) - 128
            if byte > 127:
                size, position = _rest(data, position, size, _LAST_SHIFT_OF_VARINT)
        stop: i64 = position + (size >> 1)
        raw: i64 = data[position + 1]
        position += 2
        if raw > 127:
            byte = data[position]
            position += 1
            raw += (byte << 7) - 128
            if byte > 127:
                raw, position = _rest(data, position, raw, _LAST_SHIFT_OF_VARLONG)
        if raw != last_raw or raw == _ALL_64_BITS:
            last_raw = raw
            delta: i64 = (raw >> 1 & _LARGEST_DELTA) ^ -(raw & 1)
            if delta < lowest:  # noqa: PLR1730 - min() and max() cost five times as much
                lowest = delta
            if delta > highest:  # noqa: PLR1730
                highest = delta
        raw = data[position]
        position += 1
        if raw > 127:
            byte = data[position]
            position += 1
            raw += (byte << 7) - 128
            if byte > 127:
                raw, position = _rest(data, position, raw, _LAST_SHIFT_OF_VARINT)
        if raw != expected:
            in_order = False
        expected += 2
        raw = data[position]
        position += 1
        if raw > 127:
            raw, position = _unsigned(data, position - 1)
        if raw & 1:
            has_null_key = True
        else:
            position += raw >> 1
        raw = data[position]
        position += 1
        if raw > 127:
            byte = data[position]
            position += 1
            raw += (byte << 7) - 128
            if byte > 127:
                raw, position = _rest(data, position, raw, _LAST_SHIFT_OF_VARINT)
        if not raw & 1:
            position += raw >> 1
        if data[position]:
            position = _skip_headers(data, position)
        else:
            position += 1
        if position != stop or size & 1:
            raise misfit(position - stop)
    return position, lowest, highest, in_order, has_null_key


def misfit(bytes_over: int) -> DecodeError:
    return DecodeError(f"a record ends {bytes_over:+d} bytes from where its length says")


def later_records(
    data: bytes, position: i64, count: i64, above: i64, found: list[tuple[i64, i64]] | None
) -> tuple[i64, i64]:
    """Where `count` records end, and the largest of their timestamp deltas and `above`. IndexError: past the data.

    `found` gets those later than `above` and than all before them: the delta, and where the offset delta lies.
    """
    while count > 0:
        count -= 1
        size: i64 = data[position]
        position += 1
        if size > 127:
            byte: i64 = data[position]
            position += 1
            size += (byte << 7) - 128
            if byte > 127:
                size, position = _rest(data, position, size, _LAST_SHIFT_OF_VARINT)
        stop: i64 = position + (size >> 1)
        raw: i64 = data[position + 1]
        position += 2
        if raw > 127:
            byte = data[position]
            position += 1
            raw += (byte << 7) - 128
            if byte > 127:
                raw, position = _rest(data, position, raw, _LAST_SHIFT_OF_VARLONG)
        delta: i64 = (raw >> 1 & _LARGEST_DELTA) ^ -(raw & 1)
        if delta > above:
            above = delta
            if found is not None:
                found.append((delta, position))
        position = stop
    return position, above


def first_later(data: bytes, position: i64, count: i64, above: i64) -> tuple[i64, i64]:
    """The first of `count` records that is later than `above`: its timestamp delta, and where its offset delta lies; 0 if there is none.

    IndexError: past the data.
    """
    while count > 0:
        count -= 1
        size: i64 = data[position]
        position += 1
        if size > 127:
            byte: i64 = data[position]
            position += 1
            size += (byte << 7) - 128
            if byte > 127:
                size, position = _rest(data, position, size, _LAST_SHIFT_OF_VARINT)
        stop: i64 = position + (size >> 1)
        raw: i64 = data[position + 1]
        position += 2
        if raw > 127:
            byte = data[position]
            position += 1
            raw += (byte << 7) - 128
            if byte > 127:
                raw, position = _rest(data, position, raw, _LAST_SHIFT_OF_VARLONG)
        delta: i64 = (raw >> 1 & _LARGEST_DELTA) ^ -(raw & 1)
        if delta > above:
            return delta, position
        position = stop
    return above, 0


def record_starts(data: bytes, position: i64, count: i64, found: list[i64]) -> i64:
    """Where `count` records end; where each begins goes into `found`. IndexError: past the data."""
    while count > 0:
        count -= 1
        found.append(position)
        size: i64 = data[position]
        position += 1
        if size > 127:
            byte: i64 = data[position]
            position += 1
            size += (byte << 7) - 128
            if byte > 127:
                size, position = _rest(data, position, size, _LAST_SHIFT_OF_VARINT)
        if size & 1:
            raise DecodeError("a record of negative length")
        position += size >> 1
    return position


def _rest(data: bytes, position: i64, value: i64, last_shift: i64) -> tuple[i64, i64]:
    """A varint whose first two bytes, read as `value`, lie before `position`; and the position after it."""
    value &= 16383
    shift: i64 = 14
    while shift <= last_shift:
        byte: i64 = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if shift == _LAST_SHIFT_OF_VARLONG and byte > 1:
                raise DecodeError("a timestamp delta of more than 64 bits")
            return value, position
        shift += 7
    raise DecodeError(f"a varint that ends at {position} is longer than {shift // 7} bytes")


def _unsigned(data: bytes, position: i64) -> tuple[i64, i64]:
    raw: i64 = data[position]
    position += 1
    if raw > 127:
        byte: i64 = data[position]
        position += 1
        raw += (byte << 7) - 128
        if byte > 127:
            raw, position = _rest(data, position, raw, _LAST_SHIFT_OF_VARINT)
    return raw, position


def _signed(data: bytes, position: i64) -> tuple[i64, i64]:
    raw, position = _unsigned(data, position)
    return (raw >> 1) ^ -(raw & 1), position


def _skip_headers(data: bytes, position: i64) -> i64:
    """The position behind the headers of a record, whose count lies at `position`."""
    count, position = _signed(data, position)
    if not 0 <= 2 * count <= len(data) - position:
        raise DecodeError(f"a record claims {count} headers")
    for _ in range(count):
        length, position = _signed(data, position)
        if length < 0:
            raise DecodeError("a header without a key")
        length_of_value, position = _signed(data, position + length)
        if length_of_value > 0:
            position += length_of_value
    return position
