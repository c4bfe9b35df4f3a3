"""Corrects fields that no checksum covers: the offset, the size and the magic of a batch whose own checksum is right.

A batch's checksum does not cover its offset and size; its neighbours determine these. A damaged range is *one batch* if the
checksum inside of it fits all bytes that follow up to the range's end. Then its size is that of the range. Its offset is its
own if that fits between the neighbours; else the next one after the previous batch, if the following batch begins right behind.
If nothing follows, in a log without gaps, an offset that is one bit off is corrected too. Everything else is damage.
"""

import zlib

from crc32c import crc32c

from horolog.broker.log.integrity.scanning import Batch, Window, check
from horolog.protocol.errors import DecodeError
from horolog.protocol.records.compression import CODEC_MASK
from horolog.protocol.records.entries import iter_records
from horolog.protocol.records.head import (
    ATTRIBUTES_AT,
    CRC,
    CRC_AT,
    DELTA,
    DELTA_AT,
    EPOCH,
    EPOCH_AT,
    EPOCH_ENDS_AT,
    HEADER_BYTES,
    LENGTH,
    LENGTH_AT,
    LENGTH_ENDS_AT,
    MAGIC_AT,
    MESSAGE_ATTRIBUTES_AT,
    MESSAGE_COVERED_FROM,
    MESSAGE_CRC_AT,
    OFFSET,
    OFFSET_BYTES,
    SMALLEST_ENTRY_BYTES,
)

MAX_BATCH_BYTES = 128 * 1024 * 1024
"""A larger range is not a batch: none that large is accepted from a producer."""

_FAR = 1 << 62


def corrected(
    data: bytes,
    expected: int,
    following: int | None,
    *,
    dense: bool = True,
    end_offset: int = _FAR,
    as_named: bool = False,
) -> bytes | None:
    """A damaged range as a batch with corrected offset, size and magic; None if these cannot be determined.

    `expected` is the offset after the previous batch, `following` the first one of the next batch, None if there is none.
    In a log that is not `dense` the last batch keeps its own offset, unless that is at or behind `end_offset`.
    A batch that begins `as_named` by its file has the offset `expected`.
    """
    magic = _magic_of(data)
    if magic is None:
        return None
    own = OFFSET.unpack_from(data)[0]
    data = _with_length_and_magic(data, magic)
    count = _offsets_in(data, magic)
    if count is None:
        return None
    first = own if magic >= 2 else own - count + 1
    if (
        as_named
        and _one_bit_apart(first, expected, count, magic)
        and (following is None or expected + count <= following)
    ):
        return _with_first_offset(data, magic, expected, count)
    right = _first_offset(first, count, magic, expected, following, dense=dense, end_offset=end_offset)
    return None if right is None else _with_first_offset(data, magic, right, count)


def moved(batch: Batch, expected: int) -> bytes | None:
    """The last batch of a log without gaps, moved to the end of the previous batch, if its own offset is one bit away."""
    data = bytes(batch.data)
    count = _offsets_in(data, batch.magic)
    if count is None or not _one_bit_apart(batch.last_offset - count + 1, expected, count, batch.magic):
        return None
    return _with_first_offset(data, batch.magic, expected, count)


def _with_length_and_magic(data: bytes, magic: int) -> bytes:
    length = LENGTH.pack(len(data) - LENGTH_ENDS_AT)
    return data[:LENGTH_AT] + length + data[LENGTH_ENDS_AT:MAGIC_AT] + bytes([magic]) + data[MAGIC_AT + 1 :]


def _with_first_offset(data: bytes, magic: int, first: int, count: int) -> bytes:
    return OFFSET.pack(first if magic >= 2 else first + count - 1) + data[OFFSET_BYTES:]


def with_epoch(batch: Batch, epoch: int) -> bytes:
    """The bytes of a v2 batch with another leader epoch."""
    data = bytes(batch.data)
    return data[:EPOCH_AT] + EPOCH.pack(epoch) + data[EPOCH_ENDS_AT:]


def as_batch(data: bytes, position: int) -> Batch | None:
    """The batch that is all of `data`, None if that is not a batch."""
    found = check(Window(lambda size, at: data[at : at + size], len(data)), 0, 0, _FAR)
    if isinstance(found, str) or found.size_bytes != len(data):
        return None
    found.position = position
    return found


def _magic_of(data: bytes) -> int | None:
    """The magic under which the whole range is one batch with a right checksum."""
    if len(data) >= HEADER_BYTES and crc32c(data[ATTRIBUTES_AT:]) == CRC.unpack_from(data, CRC_AT)[0]:
        return 2
    if len(data) >= SMALLEST_ENTRY_BYTES and data[MAGIC_AT] < 2:
        covered = zlib.crc32(memoryview(data)[MESSAGE_COVERED_FROM:])
        if covered == CRC.unpack_from(data, MESSAGE_CRC_AT)[0]:
            return data[MAGIC_AT]
    return None


def _offsets_in(data: bytes, magic: int) -> int | None:
    """How many offsets a batch takes; None if that is unknown."""
    if magic >= 2:
        count = DELTA.unpack_from(data, DELTA_AT)[0] + 1
        return count if count > 0 else None
    if not data[MESSAGE_ATTRIBUTES_AT] & CODEC_MASK:
        return 1
    try:
        return sum(1 for _ in iter_records(data)) or None
    except DecodeError:
        return None


def _first_offset(
    own: int, count: int, magic: int, expected: int, following: int | None, *, dense: bool, end_offset: int
) -> int | None:
    if following is not None:
        if expected <= own and own + count <= following:
            return own
        return expected if expected + count == following else None
    if own == expected or (not dense and expected < own <= end_offset - count):
        return own
    if not dense and own < expected:
        return None  # several places are one bit away
    return expected if _one_bit_apart(own, expected, count, magic) else None


def _one_bit_apart(first: int, expected: int, count: int, magic: int) -> bool:
    """Whether the stored number (the last offset in the old formats) is one bit away from the right one."""
    if magic >= 2:
        return (first ^ expected).bit_count() == 1
    return ((first + count - 1) ^ (expected + count - 1)).bit_count() == 1
