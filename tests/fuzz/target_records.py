"""Record sets from producers: byte 0 picks the topic's configuration, byte 1 how the rest is dressed before it is validated.

Raw bytes seldom get past a checksum, so most inputs are dressed: sums corrected, or the bytes put inside a wrapper or a batch
that is whole. Accepted bytes must read back: offsets dense, times where the verdict says, the same keys and values.
"""

import struct
import zlib
from functools import cache

import crc32c

from horolog.broker.config.topic_settings import TopicConfig
from horolog.broker.log.validation import check
from horolog.broker.log.validation.validate import RefusedSet, Validated
from horolog.protocol.errors import DecodeError
from horolog.protocol.records.convert import ConversionError, convert_down
from horolog.protocol.records.entries import iter_records
from horolog.protocol.records.record import Record
from tests.fuzz.targets import place
from tests.support.logs import topic_config
from tests.vendor.wire_prober.wire_records import compress, wrap

NOW_MS = 1_600_000_100_000
NEXT_OFFSET = 1000
OVERRIDES = (
    {},
    {"message.timestamp.type": "LogAppendTime"},
    {"max.message.time.difference.ms": "3600000"},
    {"cleanup.policy": "compact"},
    {"message.format.version": "0.9.0"},
    {"message.format.version": "0.10.0"},
    {"message.format.version": "2.0"},
    {"compression.type": "gzip"},
    {"max.message.bytes": "150"},
)
CODECS = ("gzip", "snappy", "lz4", "snappy_raw", "lz4_legacy")
BATCH_HEADER = struct.Struct(">qiibIhiqqqhii")
LIMIT_BYTES = 1 << 22


@cache
def config(number: int) -> TopicConfig:
    return topic_config(OVERRIDES[number])


def target(data: bytes) -> object:
    if len(data) < 3:
        return None
    topic = config(data[0] % len(OVERRIDES))
    version = (2, 9, 9, 2, 0, 3)[data[0] // len(OVERRIDES) % 6]
    records = dressed(data[1], data[2:])
    try:
        read = list(iter_records(records, limit_bytes=LIMIT_BYTES))
    except DecodeError:
        read = None
    try:
        verdict = check(memoryview(records), NEXT_OFFSET, topic, NOW_MS, produce_version=version, leader_epoch=3)
    except RefusedSet as error:
        return place(error) if error.message else ValueError("a refusal says why")
    accepted(verdict, topic, read)
    return "accepted", verdict.stored_magic, verdict.count > 1, len(verdict.marks) > 1


def accepted(verdict: Validated, topic: TopicConfig, sent: list[Record] | None) -> None:
    stored = bytes(verdict.data)
    assert len(stored) == verdict.size_bytes
    records = list(iter_records(stored))
    assert len(records) == verdict.count
    if not records:
        return
    assert NEXT_OFFSET == verdict.first_offset <= verdict.last_offset == NEXT_OFFSET + verdict.count - 1
    offsets = [record.offset for record in records]
    assert all(verdict.first_offset <= offset <= verdict.last_offset for offset in offsets)
    if topic.stored_magic is not None:
        assert verdict.stored_magic == topic.stored_magic
    assert verdict.max_timestamp == max(-1, *(record.timestamp for record in records)), (
        "the largest time is that of a record"
    )
    if topic.log_append_time and verdict.stored_magic:
        assert {record.timestamp for record in records} == {NOW_MS}
    if sent is not None:
        assert [(record.key, record.value) for record in records] == [(record.key, record.value) for record in sent]
    for magic in (1, 0):
        older(stored, magic, records)


def older(stored: bytes, magic: int, records: list[Record]) -> None:
    try:
        converted = convert_down(stored, magic)
    except ConversionError:
        return
    read = list(iter_records(converted))
    assert [(one.offset, one.key, one.value) for one in read] == [(one.offset, one.key, one.value) for one in records][
        : len(read)
    ]


def dressed(way: int, data: bytes) -> bytes:
    """The input as a producer would have sent it, or as it is."""
    kind, codec = way & 3, CODECS[(way >> 2) % len(CODECS)]
    if kind == 1:
        return with_right_sums(bytearray(data))
    if kind == 2:
        return wrap(codec, with_right_sums(bytearray(data)), way >> 6 & 1, NOW_MS)
    if kind == 3:
        return batch_of(codec if way & 0x80 else None, data)
    return data


def with_right_sums(data: bytearray) -> bytes:
    """Every entry that is whole gets the checksum that its bytes have."""
    position = 0
    while position + 17 <= len(data):
        size = 12 + struct.unpack_from(">i", data, position + 8)[0]
        if size < 17 or position + size > len(data):
            break
        if data[position + 16] >= 2 and size >= 21:
            struct.pack_into(">I", data, position + 17, crc32c.crc32c(bytes(data[position + 21 : position + size])))
        elif data[position + 16] < 2:
            struct.pack_into(">I", data, position + 12, zlib.crc32(data[position + 16 : position + size]))
        position += size
    return bytes(data)


def batch_of(codec: str | None, data: bytes) -> bytes:
    """A whole batch around record bytes; byte 0 is the count, byte 1 the attributes."""
    count, attributes, payload = data[0], data[1] if len(data) > 1 else 0, data[2:]
    code, payload = compress(codec, payload, 2) if codec else (0, payload)
    rest = (
        struct.pack(">hiqqqhii", attributes & ~7 | code, count - 1, NOW_MS - 1000, NOW_MS, -1, -1, -1, count) + payload
    )
    return struct.pack(">qiibI", 0, len(rest) + 9, -1, 2, crc32c.crc32c(rest)) + rest
