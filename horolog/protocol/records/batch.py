"""Format v2: a batch header, and the records behind it as varints and deltas, compressed as one piece.

The head's fields and their places are in `head`. The crc is the crc32c of everything from the attributes on, so the broker can set
base offset and leader epoch without changing it.
Attributes: bits 0-2 codec, bit 3 timestamp type (LogAppendTime: the max timestamp is every record's time), bit 4
transactional, bit 5 control batch, bit 6 "base timestamp is the delete horizon". A record, with signed varints:

    length . attributes int8 . timestamp delta . offset delta . key length (-1: null) . key . value length . value .
    header count . (key length . key . value length . value)*
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from crc32c import crc32c

from horolog.protocol.errors import DecodeError
from horolog.protocol.primitives import MAX_VARINT_BYTES, MAX_VARLONG_BYTES, Buffer, decode_varint, encode_varint
from horolog.protocol.records.compression import DECOMPRESSED_LIMIT_BYTES, Codec, codec_of, compress, decompress
from horolog.protocol.records.head import (
    ATTRIBUTES_AT,
    CONTROL_BIT,
    CRC,
    CRC_AT,
    HEADER,
    HEADER_BYTES,
    LENGTH,
    LENGTH_AT,
    LENGTH_ENDS_AT,
    NO_PRODUCER,
    TRANSACTIONAL_BIT,
    contradiction,
)
from horolog.protocol.records.record import MAX_INT64, MIN_INT64, Header, Record
from horolog.protocol.records.timestamps import NO_TIMESTAMP, TIMESTAMP_TYPE_BIT, TimestampType

SMALLEST_RECORD_BYTES: Final = 7
NOBODY: Final = (NO_PRODUCER, -1, -1)
"""A producer outside of sequences: producer id, epoch, sequence."""

Entry = tuple[bytes, bytes | None]
"""A key and its value, as in a record; a null value removes the key's."""


_NULL = b"\x01"  # the length of a null
_FIXED_OF_ENTRY = 3  # attributes, time and number of headers, all of them zero
# Lengths and small deltas recur.
_remembered_varint = lru_cache(maxsize=4096)(encode_varint)
_new_tuple: Final = tuple.__new__  # a third of the cost of a named tuple's own constructor
_pack_header: Final = HEADER.pack


class BatchHeader(NamedTuple):
    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int  # type: ignore[assignment]  # hides tuple.count, which a header does not need

    @property
    def size_bytes(self) -> int:
        return LENGTH_ENDS_AT + self.length

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def codec(self) -> Codec:
        return codec_of(self.attributes, 2)

    @property
    def timestamp_type(self) -> TimestampType:
        return TimestampType.LOG_APPEND_TIME if self.attributes & TIMESTAMP_TYPE_BIT else TimestampType.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)


def is_cut(data: Buffer, position: int) -> bool:
    """Whether a slice of a log ends before the batch that begins here does."""
    left = len(data) - position
    return left < LENGTH_ENDS_AT or LENGTH_ENDS_AT + LENGTH.unpack_from(data, position + LENGTH_AT)[0] > left


def read_header(data: Buffer, position: int = 0) -> BatchHeader:
    if len(data) - position < HEADER_BYTES:
        raise DecodeError(f"{len(data) - position} bytes are less than a batch header")
    header = BatchHeader(*HEADER.unpack_from(data, position))
    if header.magic != 2:
        raise DecodeError(f"a batch with magic {header.magic}")
    if not HEADER_BYTES <= header.size_bytes <= len(data) - position:
        raise DecodeError(f"a batch claims {header.size_bytes} bytes, but {len(data) - position} are left")
    return header


def crc_matches(data: Buffer, position: int, size_bytes: int) -> bool:
    (crc,) = CRC.unpack_from(data, position + CRC_AT)
    return bool(crc32c(memoryview(data)[position + ATTRIBUTES_AT : position + size_bytes]) == crc)


def write_crc(batch: bytearray | memoryview) -> None:
    """Set the crc of the one batch in `batch` after something that it covers has changed."""
    with memoryview(batch) as view:
        CRC.pack_into(batch, CRC_AT, crc32c(view[ATTRIBUTES_AT:]))


def records_of(
    data: Buffer, header: BatchHeader, position: int = 0, limit_bytes: int = DECOMPRESSED_LIMIT_BYTES
) -> bytes:
    """The decompressed bytes of the batch's records, after a check that they can hold that many records."""
    body = memoryview(data)[position + HEADER_BYTES : position + header.size_bytes]
    records = decompress(header.codec, body, limit_bytes)
    check_count(header.count, len(records))
    return records


def check_count(count: int, size_bytes: int) -> None:
    if not 0 <= count * SMALLEST_RECORD_BYTES <= size_bytes:
        raise DecodeError(f"{count} records cannot be in {size_bytes} bytes")


def iter_batch(data: Buffer, position: int = 0, limit_bytes: int = DECOMPRESSED_LIMIT_BYTES) -> Iterator[Record]:
    header = read_header(data, position)
    return iter_records_of(records_of(data, header, position, limit_bytes), header)


def iter_records_of(records: bytes, header: BatchHeader) -> Iterator[Record]:
    """The records in the uncompressed bytes of a batch, with their effective times."""
    appended = header.timestamp_type == TimestampType.LOG_APPEND_TIME
    timestamp_type = int(header.timestamp_type)
    base_offset, base_timestamp, timestamp = header.base_offset, header.base_timestamp, header.max_timestamp
    position = 0
    try:
        for _ in range(header.count):
            length, position = read_varint(records, position)
            stop = position + length
            delta = records[position + 1]  # behind the attributes, which are not used
            if delta > 127:
                delta, position = decode_varint(records, position + 1, MAX_VARLONG_BYTES)
            else:
                delta, position = delta >> 1 ^ -(delta & 1), position + 2
            offset_delta, position = read_varint(records, position)
            key, position = _read_bytes(records, position)
            value, position = _read_bytes(records, position)
            count = records[position]
            position += 1
            headers: tuple[Header, ...] = ()
            if count:
                count, position = read_varint(records, position - 1)
                headers, position = _read_headers(records, position, count)
            if position != stop:
                raise DecodeError(f"a record ends {position - stop:+d} bytes from where its length says")
            if not appended:
                timestamp = base_timestamp + delta
                if not MIN_INT64 <= timestamp <= MAX_INT64:
                    raise DecodeError(f"timestamp {timestamp} is beyond 64 bits")
            yield _new_tuple(Record, (base_offset + offset_delta, timestamp, timestamp_type, key, value, headers))
    except IndexError:
        raise DecodeError("a record runs past the end of its batch") from None
    if position != len(records):
        raise DecodeError(f"{len(records) - position} bytes follow the last record")


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """The signed varint at a position, and where it ends; most have one byte."""
    value = data[position]
    if value > 127:
        second = data[position + 1]
        if second > 127:
            return decode_varint(data, position, MAX_VARINT_BYTES)
        value = value & 127 | second << 7
        return value >> 1 ^ -(value & 1), position + 2
    return value >> 1 ^ -(value & 1), position + 1


def _read_bytes(data: bytes, position: int) -> tuple[bytes | None, int]:
    """A length and what it announces; any negative length is null, as for the Java readers."""
    length = data[position]
    position += 1
    if length > 127:
        length, position = read_varint(data, position - 1)
    else:
        length = length >> 1 ^ -(length & 1)
    if length < 0:
        return None, position
    stop = position + length
    if stop > len(data):
        raise IndexError
    return data[position:stop], stop


def _read_headers(data: bytes, position: int, count: int) -> tuple[tuple[Header, ...], int]:
    if not 0 <= 2 * count <= len(data) - position:
        raise DecodeError(f"a record claims {count} headers")
    headers: list[Header] = []
    for _ in range(count):
        key, position = _read_bytes(data, position)
        if key is None:
            raise DecodeError("a header without a key")
        value, position = _read_bytes(data, position)
        headers.append((key, value))
    return tuple(headers), position


def encode_records(records: Iterable[Record], base_offset: int, base_timestamp: int) -> bytes:
    parts: list[bytes] = []
    varint = _remembered_varint
    for offset, timestamp, _, key, value, headers in records:
        time, delta = varint(timestamp - base_timestamp), varint(offset - base_offset)
        key_head, key = (_NULL, b"") if key is None else (varint(len(key)), key)
        value_head, value = (_NULL, b"") if value is None else (varint(len(value)), value)
        tail = _encode_headers(headers) if headers else b"\x00"
        size = len(time) + len(delta) + len(key_head) + len(key) + len(value_head) + len(value) + len(tail) + 1
        parts += (varint(size), b"\x00", time, delta, key_head, key, value_head, value, tail)
    return b"".join(parts)


def encode_entries(entries: Iterable[Entry]) -> bytes:
    """Like `encode_records`, for keys and values that all have the batch's own time, no headers, and the offsets from its first on."""
    parts: list[bytes] = []
    varint = _remembered_varint
    for place, (key, value) in enumerate(entries):
        delta, key_head = varint(place), varint(len(key))
        value_head, value = (_NULL, b"") if value is None else (varint(len(value)), value)
        size = len(delta) + len(key_head) + len(key) + len(value_head) + len(value) + _FIXED_OF_ENTRY
        parts += (varint(size), b"\x00\x00", delta, key_head, key, value_head, value, b"\x00")
    return b"".join(parts)


def encode_own(
    entries: Sequence[Entry],
    offset: int,
    timestamp: int,
    *,
    attributes: int = 0,
    leader_epoch: int = -1,
    producer: tuple[int, int, int] = NOBODY,
) -> bytearray:
    """Like `encode_batch`, for keys and values that all have one time: for the many batches that a broker writes itself."""
    body = encode_entries(entries)
    length = HEADER_BYTES - LENGTH_ENDS_AT + len(body)
    count = len(entries)
    last = count - 1
    batch = bytearray(
        _pack_header(offset, length, leader_epoch, 2, 0, attributes, last, timestamp, timestamp, *producer, count)
    )
    batch += body
    write_crc(batch)
    return batch


def _encode_headers(headers: Sequence[Header]) -> bytes:
    return encode_varint(len(headers)) + b"".join([_length_and(part) for header in headers for part in header])


def _length_and(data: bytes | None) -> bytes:
    return _NULL if data is None else _remembered_varint(len(data)) + data


def assemble(header: BatchHeader, records: bytes | bytearray) -> bytearray:
    """The batch of a header and its records' bytes, compressed here with the header's codec; length and crc are set."""
    wrong = contradiction(header.last_offset_delta, header.count)
    assert wrong is None, f"a batch at {header.base_offset} with {wrong}"
    body = compress(header.codec, bytes(records))
    length = HEADER_BYTES - LENGTH_ENDS_AT + len(body)
    batch = bytearray(HEADER.pack(*header._replace(length=length, magic=2, crc=0)))
    batch += body
    write_crc(batch)
    return batch


def encode_batch(
    records: Sequence[Record],
    codec: Codec = Codec.NONE,
    *,
    append_time: int | None = None,
    last_offset: int | None = None,
    attributes: int = 0,
    leader_epoch: int = -1,
    producer_id: int = NO_PRODUCER,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytearray:
    """A batch of records whose offsets ascend; `attributes` may add the transactional and control bits.

    It reaches to `last_offset`, if that is given, like a batch whose last records were compacted away.
    """
    base_offset = records[0].offset
    base_timestamp = records[0].timestamp
    if append_time is None:
        max_timestamp = max(NO_TIMESTAMP, *[record[1] for record in records])
    else:
        max_timestamp = append_time
        attributes |= TIMESTAMP_TYPE_BIT
    header = BatchHeader(
        base_offset=base_offset,
        length=0,
        leader_epoch=leader_epoch,
        magic=2,
        crc=0,
        attributes=attributes | codec,
        last_offset_delta=(records[-1].offset if last_offset is None else last_offset) - base_offset,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        count=len(records),
    )
    return assemble(header, encode_records(records, base_offset, base_timestamp))
