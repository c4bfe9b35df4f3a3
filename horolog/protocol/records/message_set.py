"""Formats v0 and v1: sets of single messages, where a compressed set is the value of one wrapper message.

    entry:    offset int64 . size int32 (of the message) . message
    message:  crc uint32 . magic int8 . attributes int8 . timestamp int64 (v1 only) . key length int32 . key .
              value length int32 . value

The crc is the crc32 of everything after it; a negative length is null. Attributes: bits 0-2 codec, in v1 bit 3 the timestamp
type. A wrapper's value is the compressed set of the inner messages, none of which may be a wrapper. Its offset is that of
the last one. Inner offsets are absolute in v0; in v1 they count from 0 and only their distance to the last one matters, so
absolute ones are read correctly, too. A v1 wrapper's timestamp is the largest of the inner ones, or, with LogAppendTime in
its attributes, the time of all of them.
"""

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from horolog.protocol.errors import DecodeError
from horolog.protocol.primitives import Buffer
from horolog.protocol.records.compression import (
    CODEC_MASK,
    DECOMPRESSED_LIMIT_BYTES,
    Codec,
    codec_of,
    compress,
    decompress,
)
from horolog.protocol.records.head import (
    CRC,
    ENTRY,
    LENGTH,
    LENGTH_ENDS_AT,
    MESSAGE_COVERED_FROM,
    MESSAGE_CRC_AT,
    MESSAGE_HEAD,
    MESSAGE_TIMESTAMP_AT,
    SMALLEST_MESSAGE_LENGTH,
    TIMESTAMP,
)
from horolog.protocol.records.record import Record
from horolog.protocol.records.timestamps import (
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    TimestampType,
    effective_timestamp,
    type_of,
)

_NULL_LENGTH = LENGTH.pack(-1)
_CHECKED_HEAD = {0: struct.Struct(">bB"), 1: struct.Struct(">bBq")}


class SetEntry(NamedTuple):
    """One entry; `position` and `size_bytes` include the entry's own 12 bytes."""

    position: int
    size_bytes: int
    offset: int
    crc: int
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None

    @property
    def codec(self) -> Codec:
        return codec_of(self.attributes, self.magic)

    @property
    def is_wrapper(self) -> bool:
        return bool(self.attributes & CODEC_MASK)

    @property
    def timestamp_type(self) -> TimestampType:
        return type_of(self.attributes, self.magic)


def read_message(data: Buffer, position: int = 0) -> SetEntry:
    """The message at `position`, without a check of its crc."""
    if len(data) - position < LENGTH_ENDS_AT + SMALLEST_MESSAGE_LENGTH[0]:
        raise DecodeError(f"{len(data) - position} bytes are less than a message")
    offset, size = ENTRY.unpack_from(data, position)
    crc, magic, attributes = MESSAGE_HEAD.unpack_from(data, position + MESSAGE_CRC_AT)
    stop = position + LENGTH_ENDS_AT + size
    if magic not in SMALLEST_MESSAGE_LENGTH:
        raise DecodeError(f"a message with magic {magic}")
    if size < SMALLEST_MESSAGE_LENGTH[magic] or stop > len(data):
        raise DecodeError(f"a message claims {size} of {len(data) - position - LENGTH_ENDS_AT} bytes")
    timestamp = TIMESTAMP.unpack_from(data, position + MESSAGE_TIMESTAMP_AT)[0] if magic else NO_TIMESTAMP
    key, at = _read_bytes(data, position + (MESSAGE_TIMESTAMP_AT + 8 if magic else MESSAGE_TIMESTAMP_AT), stop)
    value, _ = _read_bytes(data, at, stop)
    return SetEntry(position, LENGTH_ENDS_AT + size, offset, crc, magic, attributes, timestamp, key, value)


def _read_bytes(data: Buffer, position: int, stop: int) -> tuple[bytes | None, int]:
    start = position + LENGTH.size
    if start > stop:
        raise DecodeError("a message ends inside a length")
    (length,) = LENGTH.unpack_from(data, position)
    if length < 0:
        return None, start
    if length > stop - start:
        raise DecodeError(f"a key or value claims {length} of {stop - start} bytes")
    return bytes(data[start : start + length]), start + length


def crc_matches(data: Buffer, position: int, size_bytes: int) -> bool:
    (crc,) = CRC.unpack_from(data, position + MESSAGE_CRC_AT)
    return bool(zlib.crc32(memoryview(data)[position + MESSAGE_COVERED_FROM : position + size_bytes]) == crc)


def write_crc(message: bytearray) -> None:
    """Set the crc of the one message in `message` after something that it covers has changed."""
    with memoryview(message) as view:
        CRC.pack_into(message, MESSAGE_CRC_AT, zlib.crc32(view[MESSAGE_COVERED_FROM:]))


def is_cut_short(data: Buffer, position: int) -> bool:
    """Whether the bytes end inside the entry at `position`, as far as its size can be believed."""
    left = len(data) - position
    return left < LENGTH_ENDS_AT or ENTRY.unpack_from(data, position)[1] > left - LENGTH_ENDS_AT


def inner_messages(wrapper: SetEntry, limit_bytes: int = DECOMPRESSED_LIMIT_BYTES) -> tuple[bytes, list[SetEntry]]:
    """The uncompressed set inside a wrapper, and its messages: at least one, whole, of the wrapper's magic, none compressed."""
    if wrapper.value is None:
        raise DecodeError("a wrapper without a value")
    content = decompress(wrapper.codec, wrapper.value, limit_bytes, wrapper.magic)
    messages: list[SetEntry] = []
    position = 0
    while position < len(content):
        message = read_message(content, position)
        if message.magic != wrapper.magic:
            raise DecodeError(f"a message of magic {message.magic} in a wrapper of magic {wrapper.magic}")
        if message.is_wrapper:
            raise DecodeError("a wrapper inside a wrapper")
        messages.append(message)
        position += message.size_bytes
    if not messages:
        raise DecodeError("an empty wrapper")
    return content, messages


def offsets_in_wrapper(wrapper: SetEntry, limit_bytes: int = DECOMPRESSED_LIMIT_BYTES) -> tuple[int, int]:
    """The offsets of its first and last message; nothing else of them is read, for speed.

    Messages of v0 have their own offsets, those of v1 count relative to the wrapper, which has the last one's.
    """
    if wrapper.value is None:
        raise DecodeError("a wrapper without a value")
    content = decompress(wrapper.codec, wrapper.value, limit_bytes, wrapper.magic)
    unpack, end, position, first, last = ENTRY.unpack_from, len(content), 0, None, 0
    while position + LENGTH_ENDS_AT <= end:
        last, size = unpack(content, position)
        if size < 0:
            raise DecodeError(f"a message of {size} bytes")
        if first is None:
            first = last
        position += LENGTH_ENDS_AT + size
    if position != end or first is None:
        raise DecodeError(f"the messages of a wrapper end at {position} of {end} bytes")
    return (wrapper.offset - last + first, wrapper.offset) if wrapper.magic else (first, last)


def iter_message(message: SetEntry, limit_bytes: int = DECOMPRESSED_LIMIT_BYTES) -> Iterator[Record]:
    """The record that a message is, or those inside if it is a wrapper."""
    outer_type = message.timestamp_type
    if not message.is_wrapper:
        yield Record(message.offset, message.timestamp, outer_type, message.key, message.value)
        return
    _, inner = inner_messages(message, limit_bytes)
    base_offset = message.offset - inner[-1].offset if message.magic else 0
    for each in inner:
        timestamp = effective_timestamp(each.timestamp, message.timestamp, outer_type)
        yield Record(base_offset + each.offset, timestamp, outer_type, each.key, each.value)


def encode_message(
    offset: int, timestamp: int, key: bytes | None, value: bytes | None, magic: int, *, attributes: int = 0
) -> bytes:
    head = _CHECKED_HEAD[magic].pack(magic, attributes, *((timestamp,) if magic else ()))
    checked = b"".join((head, *_length_and(key), *_length_and(value)))
    return b"".join((ENTRY.pack(offset, len(checked) + CRC.size), CRC.pack(zlib.crc32(checked)), checked))


def _length_and(data: bytes | None) -> tuple[bytes, ...]:
    return (_NULL_LENGTH,) if data is None else (LENGTH.pack(len(data)), data)


def encode_set(records: Iterable[Record], magic: int) -> bytes:
    """Plain messages, each with its own offset, time and type."""
    return b"".join(
        [
            encode_message(
                record.offset,
                record.timestamp,
                record.key,
                record.value,
                magic,
                attributes=TIMESTAMP_TYPE_BIT
                if magic and record.timestamp_type == TimestampType.LOG_APPEND_TIME
                else 0,
            )
            for record in records
        ]
    )


def encode_wrapper(records: Sequence[Record], magic: int, codec: Codec, append_time: int | None = None) -> bytes:
    """One wrapper around records. An append time applies to all of them; inside they keep their own times."""
    base_offset = records[0].offset if magic else 0
    inner = encode_set((record._replace(offset=record.offset - base_offset) for record in records), magic)
    if append_time is None and records[0].timestamp_type == TimestampType.LOG_APPEND_TIME:
        append_time = records[0].timestamp
    timestamp = append_time
    if timestamp is None:
        timestamp = max(NO_TIMESTAMP, *(record.timestamp for record in records))
    return encode_message(
        records[-1].offset,
        timestamp,
        None,
        compress(codec, inner, magic),
        magic,
        attributes=codec | (TIMESTAMP_TYPE_BIT if magic and append_time is not None else 0),
    )
