"""The hot path of old producers: sets of plain v1 messages, also those inside a wrapper, are checked where they lie.

Messages of one size, as benchmarks and sensors send them, are checked by columns: every `stride`-th byte of the set, one slice
and one comparison for all messages (as in `protocol.records.scan`). Others are walked. Either way the crc of each message is
computed, which is most of the cost.
"""

import struct
from collections import deque
from collections.abc import Sequence
from itertools import repeat

from horolog.protocol.records.head import (
    CRC,
    LENGTH,
    LENGTH_AT,
    LENGTH_ENDS_AT,
    MAGIC_AT,
    MESSAGE_ATTRIBUTES_AT,
    MESSAGE_COVERED_FROM,
    MESSAGE_CRC_AT,
    MESSAGE_KEY_AT,
    MESSAGE_TIMESTAMP_AT,
    OFFSET,
    SMALLEST_MESSAGE_LENGTH,
)
from horolog.protocol.records.message_sums import crc32_of_messages
from horolog.protocol.records.timestamps import TIMESTAMP_TYPE_BIT
from horolog.protocol.records.walk_set import walk_set

PlainSet = tuple[Sequence[int], Sequence[int]]  # where messages begin, a range if all are alike; and their times

_VALUE_LENGTH_AT = MESSAGE_KEY_AT[1] + LENGTH.size  # if the key is null
_SMALLEST = LENGTH_ENDS_AT + SMALLEST_MESSAGE_LENGTH[1]
_FEWEST_ALIKE = 8
_MOST_REMEMBERED = 128
"""`struct.unpack` remembers a hundred forms, which those of more messages would make too large."""
_TYPE_AND_TIME = struct.Struct(">Bq")
# The bytes that say how a message is laid out: size, magic and attributes, key length.
_LAYOUT = (
    *range(LENGTH_AT, LENGTH_ENDS_AT),
    *range(MAGIC_AT, MESSAGE_TIMESTAMP_AT),
    *range(MESSAGE_KEY_AT[1], _VALUE_LENGTH_AT),
)


def read_plain(data: bytes, largest_bytes: int, *, keys_needed: bool) -> PlainSet | None:
    """The places and times of the messages; None unless all are whole, plain and without a fault."""
    return _read_alike(data, largest_bytes, keys_needed=keys_needed) or walk_set(
        data, largest_bytes, keys_needed=keys_needed
    )


def _read_alike(data: bytes, largest_bytes: int, *, keys_needed: bool) -> PlainSet | None:
    """The same for messages of one layout; None also if they are not."""
    if len(data) < _FEWEST_ALIKE * _SMALLEST:
        return None
    stride = LENGTH.unpack_from(data, LENGTH_AT)[0] + LENGTH_ENDS_AT
    if not _SMALLEST <= stride <= largest_bytes or len(data) % stride or len(data) < _FEWEST_ALIKE * stride:
        return None
    count = len(data) // stride
    if walk_set(data[:stride], largest_bytes, keys_needed=keys_needed) is None:
        return None
    key_length = max(LENGTH.unpack_from(data, MESSAGE_KEY_AT[1])[0], 0)
    value_at = _VALUE_LENGTH_AT + key_length
    for at in (*_LAYOUT, *range(value_at, value_at + LENGTH.size)):
        column = data[at::stride]
        if column != column[:1] * count:
            return None
    form = ">" + f"{MESSAGE_CRC_AT}xI{stride - MESSAGE_COVERED_FROM}s" * count
    found = struct.unpack(form, data) if count <= _MOST_REMEMBERED else struct.Struct(form).unpack(data)
    if found[::2] != tuple(map(crc32_of_messages(), found[1::2])):
        return None
    return range(0, len(data), stride), _longs(data, MESSAGE_TIMESTAMP_AT, stride)


def _longs(data: bytes, at: int, stride: int) -> tuple[int, ...]:
    """The numbers of eight bytes at one place of every message."""
    count = len(data) // stride
    words = bytearray(count * 8)
    for byte in range(8):
        words[byte::8] = data[at + byte :: stride]
    return struct.unpack(f">{count}q", words)


def _set_words(data: bytearray, at: int, stride: int, words: bytes) -> None:
    width = len(words) * stride // len(data)
    for byte in range(width):
        data[at + byte :: stride] = words[byte::width]


def read_offsets(data: bytes, starts: Sequence[int]) -> Sequence[int]:
    if isinstance(starts, range):
        return _longs(data, 0, starts.step)
    return [OFFSET.unpack_from(data, start)[0] for start in starts]


def number(data: bytearray, starts: Sequence[int], first_offset: int) -> None:
    """Write the offsets, which no crc covers."""
    offsets = range(first_offset, first_offset + len(starts))
    if isinstance(starts, range):
        _set_words(data, 0, starts.step, struct.pack(f">{len(offsets)}q", *offsets))
        return
    deque(map(OFFSET.pack_into, repeat(data), starts, offsets), 0)


def stamp(data: bytearray, starts: Sequence[int], append_time: int) -> None:
    """Write the append time and its type into every message, and recompute the crc."""
    view, crc32 = memoryview(data), crc32_of_messages()
    stops = [*starts[1:], len(data)]
    for start, stop in zip(starts, stops, strict=True):
        attributes = data[start + MESSAGE_ATTRIBUTES_AT] | TIMESTAMP_TYPE_BIT
        _TYPE_AND_TIME.pack_into(data, start + MESSAGE_ATTRIBUTES_AT, attributes, append_time)
        CRC.pack_into(data, start + MESSAGE_CRC_AT, crc32(view[start + MESSAGE_COVERED_FROM : stop]))
