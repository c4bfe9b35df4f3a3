"""Picks out the first bytes of records that differ only in the length of the value, and checks those lengths.

Whether each record's length is that of its value and the bytes around it is one sum over all records: the
lengths stand 16 bits apart in one large integer, and lengths of up to two varint bytes never carry into a neighbour.
"""

from contextlib import suppress
from typing import NamedTuple

from horolog.protocol.records.scan_columns import same_bytes, same_width
from horolog.protocol.records.scan_shape import Bytes, Shape

_WIDEST_SIZE = 2  # bytes of a length's varint
_LOW_BITS = bytes(byte & 0x7F for byte in range(256))


class Heads(NamedTuple):
    """Columns of the records' first bytes; only the first `length` records are known to be well formed."""

    length: int
    times: list[Bytes]
    offsets: list[Bytes]
    ends: list[int]


def take_heads(data: Bytes, position: int, shape: Shape, count: int) -> Heads | None:
    """The heads of the records from `position` on that are laid out like `shape`, except for the length of the value."""
    if shape.has_headers or len(shape.key_size) > 1 or max(len(shape.size), len(shape.value_size)) > _WIDEST_SIZE:
        return None
    ends = _ends(data, position, len(shape.size), count)
    # Each row but the first begins with the last byte of the record before: its header count.
    width = 1 + shape.value_size.stop
    rows = b"".join(
        [b"\x00", data[position : position + width - 1], *[data[end - 1 : end + width - 1] for end in ends]]
    )
    columns: list[Bytes] = [rows[at::width] for at in range(width)]
    header_counts = columns.pop(0)
    sizes = columns[: len(shape.size)]
    key_sizes = columns[shape.key_size.start]
    value_sizes = [columns[at] for at in shape.value_size]
    length = min(len(ends), same_bytes(header_counts) - 1, same_bytes(key_sizes), same_width(sizes))
    length = min(length, same_width(value_sizes))
    if length <= 0 or not _sizes_agree(sizes, value_sizes, shape.frame_bytes, length):
        return None
    times = [columns[at] for at in shape.timestamp]
    return Heads(length, times, [columns[at] for at in shape.offset], ends)


def _ends(data: Bytes, position: int, size_width: int, count: int) -> list[int]:
    """Where records end, if all their lengths have `size_width` bytes: true up to the first that does not."""
    ends: list[int] = []
    append = ends.append
    with suppress(IndexError):
        if size_width == 1:
            for _ in range(count):
                position += (data[position] >> 1) + 1
                append(position)
        else:
            for _ in range(count):
                position += ((data[position + 1] << 7) + data[position] >> 1) - 62
                append(position)
    return ends if position <= len(data) else ends[:-1]


def _sizes_agree(sizes: list[Bytes], value_sizes: list[Bytes], frame_bytes: int, length: int) -> bool:
    """Whether each of the first `length` records is as long as its parts; zigzagged, lengths are twice what they are."""
    ones = int.from_bytes(b"\x01\x00" * length, "little")
    values = _lanes([column[:length] for column in value_sizes])
    return _lanes([column[:length] for column in sizes]) == values + 2 * frame_bytes * ones


def _lanes(columns: list[Bytes]) -> int:
    """Varints of one or two bytes, as their columns, in one integer, 16 bits apart."""
    words = bytearray(2 * len(columns[0]))
    if len(columns) == 1:
        words[::2] = columns[0]
        return int.from_bytes(words, "little")
    words[::2] = columns[1]
    seconds = int.from_bytes(words, "little")
    words[::2] = columns[0].translate(_LOW_BITS)
    return int.from_bytes(words, "little") + 128 * seconds
