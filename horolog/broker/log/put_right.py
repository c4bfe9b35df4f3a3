"""Puts right what no checksum covers: the offset, the size and the magic of a batch whose own checksum is right.

A batch's checksum tells nothing about where the batch lies and how long it is; its neighbours do. A damaged range is *one batch* if
the checksum inside of it fits all that follows up to the range's end. Then its size is that of the range, and its offset is
its own if that fits between the neighbours; else the one that the batch before it leaves, if the next one begins right behind.
Where nothing follows, in a log without gaps, an offset that is one bit off is put right too. Everything else is damage.
"""

import zlib
from struct import Struct

from crc32c import crc32c

from horolog.broker.log.scan import Batch, Window, check
from horolog.protocol.errors import DecodeError
from horolog.protocol.records.batch import ATTRIBUTES_AT, HEADER_BYTES
from horolog.protocol.records.compression import CODEC_MASK
from horolog.protocol.records.entries import iter_records

MAX_BATCH_BYTES = 128 * 1024 * 1024
"""A larger range is no batch: nothing that large is taken from a producer."""

_I64 = Struct(">q")
_U32 = Struct(">I")
_I32 = Struct(">i")
_CRC_V2_AT, _CRC_V1_AT, _MAGIC_AT, _V1_COVERED_FROM, _DELTA_AT = 17, 12, 16, 16, 23
_SMALLEST_MESSAGE = 26
_LENGTH_ENDS_AT = 12
_EPOCH_AT = 12
_FAR = 1 << 62


def put_right(
    data: bytes, expected: int, following: int | None, *, dense: bool = True, end_offset: int = _FAR
) -> bytes | None:
    """The batch that a damaged range is when its offset, size and magic are put right; None if that can not be told.

    `expected` is the offset behind the batch before, `following` the first one of the batch behind, None if there is nothing.
    In a log that is not `dense` the end says itself where it belongs, unless it says a place at or behind `end_offset`.
    """
    magic = _magic_of(data)
    if magic is None:
        return None
    own = _I64.unpack_from(data)[0]
    data = data[:8] + _I32.pack(len(data) - _LENGTH_ENDS_AT) + data[12:_MAGIC_AT] + bytes([magic]) + data[17:]
    count = _offsets_in(data, magic)
    if count is None:
        return None
    first = own if magic >= 2 else own - count + 1
    right = _first_offset(first, count, magic, expected, following, dense=dense, end_offset=end_offset)
    return None if right is None else _with_first_offset(data, magic, right, count)


def moved(batch: Batch, expected: int) -> bytes | None:
    """The last batch of a log without gaps, put where the batch before it ends, if its own offset is one bit away."""
    data = bytes(batch.data)
    count = _offsets_in(data, batch.magic)
    if count is None or not _one_bit_apart(batch.last_offset - count + 1, expected, count, batch.magic):
        return None
    return _with_first_offset(data, batch.magic, expected, count)


def _with_first_offset(data: bytes, magic: int, first: int, count: int) -> bytes:
    return _I64.pack(first if magic >= 2 else first + count - 1) + data[8:]


def with_epoch(batch: Batch, epoch: int) -> bytes:
    """The bytes of a v2 batch with another leader epoch."""
    data = bytes(batch.data)
    return data[:_EPOCH_AT] + _I32.pack(epoch) + data[_EPOCH_AT + 4 :]


def as_batch(data: bytes, position: int) -> Batch | None:
    """The batch that is all of `data`, None if it is none after all."""
    found = check(Window(lambda size, at: data[at : at + size], len(data)), 0, 0, _FAR)
    if isinstance(found, str) or found.size_bytes != len(data):
        return None
    found.position = position
    return found


def _magic_of(data: bytes) -> int | None:
    """The magic under which the whole range is one batch with a right checksum."""
    if len(data) >= HEADER_BYTES and crc32c(data[ATTRIBUTES_AT:]) == _U32.unpack_from(data, _CRC_V2_AT)[0]:
        return 2
    if len(data) >= _SMALLEST_MESSAGE and data[_MAGIC_AT] < 2:
        covered = zlib.crc32(memoryview(data)[_V1_COVERED_FROM:])
        if covered == _U32.unpack_from(data, _CRC_V1_AT)[0]:
            return data[_MAGIC_AT]
    return None


def _offsets_in(data: bytes, magic: int) -> int | None:
    """How many offsets a batch takes; None if it does not say."""
    if magic >= 2:
        count = _I32.unpack_from(data, _DELTA_AT)[0] + 1
        return count if count > 0 else None
    if not data[_MAGIC_AT + 1] & CODEC_MASK:
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
    """Whether the number that the file holds (the last offset in the old formats) is one bit away from the right one."""
    if magic >= 2:
        return (first ^ expected).bit_count() == 1
    return ((first + count - 1) ^ (expected + count - 1)).bit_count() == 1
