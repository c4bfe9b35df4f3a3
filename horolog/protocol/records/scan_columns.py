"""Columns: the same byte of many records side by side, and what can be computed from them at C speed.

A varint has seven bits a byte, lowest first, the top bit set on all bytes but the last; signed ones are zigzagged, so even
ones stand for numbers from 0 on and odd ones for negative numbers.
"""

import array
import sys

from horolog.protocol.records.scan_shape import Bytes

_HIGH_BYTES = bytes(range(128, 256))
_LOW_BYTES = bytes(range(128))
_EVEN_BYTES = bytes(range(0, 256, 2))
_WORD_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
# Varints of the offset deltas from 0 on, column by column: 2 * delta, seven bits a byte.
_TWO_BYTES_FROM, _THREE_BYTES_FROM, _FOUR_BYTES_FROM = 1 << 6, 1 << 13, 1 << 20
_LOW_CYCLE = bytes(0x80 | 2 * delta for delta in range(64))
_HIGH_CYCLE = b"".join(bytes([high]) * 64 for high in range(128))
_MIDDLE_CYCLE = bytes(0x80 | byte for byte in _HIGH_CYCLE)


def same_bytes(column: Bytes) -> int:
    """How many bytes at the beginning are the same as the first."""
    same = column[:1]
    if column == same * len(column):
        return len(column)
    return len(column) - len(column.lstrip(same))


def same_width(columns: list[Bytes]) -> int:
    """For how many records the varint in these columns has as many bytes as there are columns."""
    length = len(columns[-1])
    if not columns[-1].isascii():
        length -= len(columns[-1].lstrip(_LOW_BYTES))
    for column in columns[:-1]:
        if column.translate(None, _HIGH_BYTES):
            length = min(length, len(column) - len(column.lstrip(_HIGH_BYTES)))
    return length


def extremes(columns: list[Bytes], first: int) -> tuple[int, int]:
    """The smallest and largest of the signed numbers in the columns of their varints, the first of which is `first`.

    The columns are put side by side into machine words, which order as the varints do as long as all have one width.
    """
    if all(column == column[:1] * len(column) for column in columns):
        return first, first
    width = 1 << (len(columns) - 1).bit_length()
    words = bytearray(width * len(columns[0]))
    for place, column in enumerate(columns):
        words[place if sys.byteorder == "little" else width - 1 - place :: width] = column
    numbers: array.array[int] = array.array(_WORD_CODES[width], words)
    if not columns[0].translate(None, _EVEN_BYTES):
        return _signed(min(numbers)), _signed(max(numbers))
    deltas = [_signed(number) for number in set(numbers)]
    return min(deltas), max(deltas)


def _signed(word: int) -> int:
    """The number whose varint has the bytes of `word`, lowest first."""
    value = shift = 0
    while word:
        value |= (word & 0x7F) << shift
        word >>= 8
        shift += 7
    return value >> 1 ^ -(value & 1)


def expected_offsets(first: int, length: int, width: int) -> list[Bytes] | None:
    """The columns of the offset deltas from `first` on, if the varints of all of them have `width` bytes."""
    last = first + length
    if width == 1 and last <= _TWO_BYTES_FROM:
        return [bytes(range(2 * first, 2 * last, 2))]
    low = _of_cycle(_LOW_CYCLE, first, length)
    if width == 2 and first >= _TWO_BYTES_FROM and last <= _THREE_BYTES_FROM:
        return [low, _HIGH_CYCLE[first:last]]
    if width == 3 and first >= _THREE_BYTES_FROM and last <= _FOUR_BYTES_FROM:
        blocks = range(first // _THREE_BYTES_FROM, (last - 1) // _THREE_BYTES_FROM + 1)
        high = b"".join(bytes([block]) * _THREE_BYTES_FROM for block in blocks)
        begin = first % _THREE_BYTES_FROM
        return [low, _of_cycle(_MIDDLE_CYCLE, first, length), high[begin : begin + length]]
    return None


def until_next_width(first: int) -> int:
    """How many offset deltas from `first` on have varints as wide as its own."""
    width = ((2 * first | 1).bit_length() + 6) // 7
    return (1 << 7 * width - 1) - first


def _of_cycle(cycle: bytes, first: int, length: int) -> bytes:
    begin = first % len(cycle)
    return (cycle * ((begin + length) // len(cycle) + 1))[begin : begin + length]
