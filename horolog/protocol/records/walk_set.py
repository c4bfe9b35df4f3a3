"""Walks the plain v1 messages of a set, one after the other: whether each is whole and matches its crc, where it begins, its time.

This module may be compiled (see `tools.compiled`). `i64` is a machine's integer then, and an `int` otherwise. `data` is `bytes`:
plain Python takes a third longer to unpack the fields of a `bytearray`.
"""

from typing import Final

from mypy_extensions import i64

from horolog.protocol.records.compression import CODEC_MASK
from horolog.protocol.records.head import (
    LENGTH,
    LENGTH_AT,
    LENGTH_ENDS_AT,
    MESSAGE_COVERED_FROM,
    MESSAGE_FROM_LENGTH,
    MESSAGE_KEY_AT,
    SMALLEST_MESSAGE_LENGTH,
)
from horolog.protocol.records.message_sums import crc32_of_messages
from horolog.protocol.records.timestamps import TIMESTAMP_TYPE_BIT

IS_COMPILED: Final = not __file__.endswith(".py")

_LENGTH_AT: Final[i64] = LENGTH_AT
_LENGTH_ENDS_AT: Final[i64] = LENGTH_ENDS_AT
_LENGTH_BYTES: Final[i64] = LENGTH.size
_COVERED_FROM: Final[i64] = MESSAGE_COVERED_FROM
_BEHIND_KEY_LENGTH: Final[i64] = MESSAGE_KEY_AT[1] + LENGTH.size
_SMALLEST: Final[i64] = SMALLEST_MESSAGE_LENGTH[1]
_PLAIN: Final[i64] = 1 << 8
_KIND: Final[i64] = 0xFF << 8 | CODEC_MASK | TIMESTAMP_TYPE_BIT
"""The bits of magic, codec and timestamp type, where magic and attributes are one number: in a plain message they are `_PLAIN`."""


def walk_set(data: bytes, largest_bytes: i64, *, keys_needed: bool) -> tuple[list[int], list[int]] | None:
    """Where the messages begin, and their times. None unless all are plain and without a fault, and nothing follows them."""
    starts: list[int] = []
    timestamps: list[int] = []
    unpack, view, crc32 = MESSAGE_FROM_LENGTH.unpack_from, memoryview(data), crc32_of_messages()
    end: i64 = len(data)
    largest: i64 = largest_bytes - _LENGTH_ENDS_AT
    last_start: i64 = end - _LENGTH_ENDS_AT - _SMALLEST
    position: i64 = 0
    while position <= last_start:
        size: i64
        crc: i64
        kind: i64
        length_of_key: i64
        length_of_value: i64
        size, crc, kind, timestamp, length_of_key, length_of_value = unpack(data, position + _LENGTH_AT)
        stop: i64 = position + _LENGTH_ENDS_AT + size
        if kind & _KIND != _PLAIN or not _SMALLEST <= size <= largest or stop > end:
            return None
        if crc32(view[position + _COVERED_FROM : stop]) != crc:
            return None
        if length_of_key >= 0:
            value_at: i64 = position + _BEHIND_KEY_LENGTH + length_of_key
            if value_at + _LENGTH_BYTES > stop:
                return None
            (length_of_value,) = LENGTH.unpack_from(data, value_at)
            size -= length_of_key
        elif keys_needed:
            return None
        if length_of_value > size - _SMALLEST:
            return None
        starts.append(position)
        timestamps.append(timestamp)
        position = stop
    return (starts, timestamps) if starts and position == end else None
