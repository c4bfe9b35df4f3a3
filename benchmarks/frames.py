"""Raw request frames and the record sets inside them, encoded before a run so that a load generator only copies bytes.

Written with `struct` alone and without the product's own codec: a generator must not share a mistake, or a cost, with what it measures.
"""

import gzip
import random
import struct
import zlib
from collections.abc import Callable, Sequence
from enum import IntEnum
from itertools import starmap

import cramjam
import crc32c
import lz4.frame

CLIENT_ID = b"bench"
BATCH_HEADER = struct.Struct(">qiibIhiqqqhii")
BATCH_HEADER_SIZE = BATCH_HEADER.size
COVERED_FROM = 21  # by a batch's crc, which lies before it
PRODUCER_AT = 43
LARGEST_SEQUENCE = 2**31 - 1
TAGS_BEHIND_RECORDS = 3  # of the partition, the topic and the request
_WORDS = (
    "alpha",
    "beta",
    "gamma",
    "delta",
    "timestamp",
    "offset",
    "segment",
    "broker",
    "record",
    "value",
    "index",
    "create",
    "append",
    "user",
    "2026",
    "event",
    "click",
    "price",
    "19.99",
    "null",
)


class Api(IntEnum):
    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20


def payloads(size_bytes: int, count: int = 4096) -> list[bytes]:
    """Words and hexadecimal noise: lz4 gets about 1.6 times out of a batch of it, zstd about 2."""
    chance = random.Random(7)
    values = []
    for _ in range(count):
        text = ""
        while len(text) < size_bytes:
            text += f"{chance.getrandbits(32):08x} " if chance.randrange(3) == 0 else f"{chance.choice(_WORDS)} "
        values.append(text[:size_bytes].encode())
    return values


def text(value: str | None) -> bytes:
    if value is None:
        return b"\xff\xff"
    return struct.pack(">h", len(value)) + value.encode()


def varint(value: int) -> bytes:
    rest = (value << 1) ^ (value >> 63)
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def unsigned(value: int) -> bytes:
    """A length or count of a flexible message."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def batch(values: Sequence[bytes], first_timestamp: int, step_ms: int = 0, headers: int = 0) -> bytes:
    """A v2 batch, uncompressed, no producer id; record n has the time `first_timestamp + n * step_ms`, each so many headers."""
    tail = varint(headers) + b"".join(map(_header, range(headers)))
    parts = []
    for index, value in enumerate(values):
        record = b"\0" + varint(index * step_ms) + varint(index) + b"\x01" + varint(len(value)) + value + tail
        parts += [varint(len(record)), record]
    return retimed(bytes(BATCH_HEADER_SIZE) + b"".join(parts), len(values), first_timestamp, step_ms)


def _header(number: int) -> bytes:
    key, value = b"header-%d" % number, b"%016x" % number
    return varint(len(key)) + key + varint(len(value)) + value


def mixed_batch(count: int, first_timestamp: int, seed: int = 0) -> bytes:
    """A v2 batch as real producers send it: values of 20 to 600 bytes, each record with a key and a time of its own."""
    chance = random.Random(count + seed)
    text = b"".join(payloads(600, 16))
    parts = []
    for index in range(count):
        start, size = chance.randrange(len(text) - 600), chance.randint(20, 600)
        value, key = text[start : start + size], b"key-%d" % chance.randrange(100_000)
        record = b"\0" + varint(index + chance.randrange(5)) + varint(index) + varint(len(key)) + key
        record += varint(len(value)) + value + b"\0"
        parts += [varint(len(record)), record]
    return retimed(bytes(BATCH_HEADER_SIZE) + b"".join(parts), count, first_timestamp, 1)


def compressed(template: bytes, codec: str) -> bytes:
    """The same records behind one codec."""
    number, compress = CODECS[codec]
    attributes, counted, records = template[21:23], template[23:BATCH_HEADER_SIZE], template[BATCH_HEADER_SIZE:]
    body = bytes([attributes[0], attributes[1] | number]) + counted + compress(records)
    return template[:8] + struct.pack(">iibI", len(body) + 9, -1, 2, crc32c.crc32c(body)) + body


def _snappy_blocks(data: bytes) -> bytes:
    """As Java's clients frame it: a magic, two versions, and blocks of 32 KiB, each behind its size."""
    out = [b"\x82SNAPPY\x00", struct.pack(">ii", 1, 1)]
    for at in range(0, len(data), SNAPPY_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[at : at + SNAPPY_BLOCK_BYTES]))
        out += [struct.pack(">i", len(block)), block]
    return b"".join(out)


SNAPPY_BLOCK_BYTES = 32 << 10
CODECS: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "gzip": (1, lambda data: gzip.compress(data, 6, mtime=0)),
    "snappy": (2, _snappy_blocks),
    "lz4": (3, lambda data: lz4.frame.compress(data, block_linked=False, store_size=False)),  # no other is read by Java
    "zstd": (4, lambda data: bytes(cramjam.zstd.compress(data, 3))),
}
"""By name: the number in a batch's attributes, and what compresses as clients do by default."""
MESSAGE_TIME_AT = 18


def retimed(template: bytes, count: int, first_timestamp: int, step_ms: int) -> bytes:
    """The same records with another base time: a new header and checksum, no record touched."""
    last = count - 1
    body = struct.pack(">hiqqqhii", 0, last, first_timestamp, first_timestamp + last * step_ms, -1, -1, -1, count)
    body += template[BATCH_HEADER_SIZE:]
    return struct.pack(">qiibI", 0, len(body) + 9, -1, 2, crc32c.crc32c(body)) + body


def message_set(values: Sequence[bytes], first_timestamp: int, step_ms: int = 0, codec: int = 0) -> bytes:
    """Plain magic-1 messages one after the other, as clients from 0.10 sent them."""
    parts = []
    for index, value in enumerate(values):
        body = struct.pack(">bbqii", 1, codec, first_timestamp + index * step_ms, -1, len(value)) + value
        parts += [struct.pack(">qiI", index, len(body) + 4, zlib.crc32(body)), body]
    return b"".join(parts)


def mixed_values(count: int) -> list[bytes]:
    """Of 20 to 600 bytes."""
    chance = random.Random(count)
    return [value[: chance.randint(20, 600)] for value in payloads(600, count)]


def wrapped(messages: bytes, codec: str) -> bytes:
    """A set behind one codec that magic 1 has: the value of one message."""
    number, compress = CODECS[codec]
    return message_set([compress(messages)], struct.unpack_from(">q", messages, MESSAGE_TIME_AT)[0], codec=number)


def request(api: int, version: int, body: bytes, correlation_id: int = 0) -> bytes:
    head = struct.pack(">hhih", api, version, correlation_id, len(CLIENT_ID)) + CLIENT_ID
    return struct.pack(">i", len(head) + len(body)) + head + body


def flexible_request(api: int, version: int, body: bytes, correlation_id: int = 0) -> bytes:
    head = struct.pack(">hhih", api, version, correlation_id, len(CLIENT_ID)) + CLIENT_ID + b"\0"
    return struct.pack(">i", len(head) + len(body)) + head + body


def produce(version: int, topic: str, records: bytes, *, acks: int = 1, partition: int = 0) -> bytes:
    """Produce v2 (old sets), v3 (batches), or v7 (batches behind zstd)."""
    body = text(None) if version >= 3 else b""
    body += struct.pack(">hii", acks, 30_000, 1) + text(topic) + struct.pack(">iii", 1, partition, len(records))
    return request(Api.PRODUCE, version, body + records)


def produce_by_id(version: int, topic_id: bytes, sets: Sequence[tuple[int, bytes]], *, acks: int = 1) -> bytes:
    """Produce v13, flexible: one topic by its id, and batches with the numbers of their partitions."""
    body = b"\0" + struct.pack(">hi", acks, 30_000) + b"\x02" + topic_id + unsigned(len(sets) + 1)
    for partition, records in sets:
        body += struct.pack(">i", partition) + unsigned(len(records) + 1) + records + b"\0"
    return flexible_request(Api.PRODUCE, version, body + b"\0\0")


def fetch(version: int, topic: str, offset: int, *, max_bytes: int = 1 << 20, max_wait_ms: int = 500) -> bytes:
    """Fetch v2 (old sets) or v4 (batches) of partition 0."""
    body = struct.pack(">iii", -1, max_wait_ms, 1)
    if version >= 4:
        body += struct.pack(">ib", 50 << 20, 0)
    body += struct.pack(">i", 1) + text(topic) + struct.pack(">iiqi", 1, 0, offset, max_bytes)
    return request(Api.FETCH, version, body)


def list_offsets(topic: str, timestamp: int, partition: int = 0) -> bytes:
    """ListOffsets v1."""
    body = struct.pack(">ii", -1, 1) + text(topic) + struct.pack(">iiq", 1, partition, timestamp)
    return request(Api.LIST_OFFSETS, 1, body)


def list_all_offsets(topic: str, timestamps: Sequence[int]) -> bytes:
    """ListOffsets v1 that names all partitions of a topic, each with its own time."""
    asked = b"".join(starmap(struct.Struct(">iq").pack, enumerate(timestamps)))
    head = struct.pack(">ii", -1, 1) + text(topic) + struct.pack(">i", len(timestamps))
    return request(Api.LIST_OFFSETS, 1, head + asked)


def first_offset_at(topic: str, timestamp: int, partition: int = 0) -> bytes:
    """ListOffsets v0, which asks for the segments before a time: one of them."""
    body = struct.pack(">ii", -1, 1) + text(topic) + struct.pack(">iiqi", 1, partition, timestamp, 1)
    return request(Api.LIST_OFFSETS, 0, body)


def offset_of_max_timestamp(topic: str, partition: int = 0) -> bytes:
    """ListOffsets v7, the first that knows -3."""
    named = bytes([2, len(topic) + 1]) + topic.encode()
    asked = struct.pack(">iiq", partition, -1, -3)
    head = struct.pack(">hhih", Api.LIST_OFFSETS, 7, 0, len(CLIENT_ID)) + CLIENT_ID + b"\0"
    body = head + struct.pack(">ib", -1, 0) + named + b"\x02" + asked + b"\0\0\0"
    return struct.pack(">i", len(body)) + body


def metadata(topics: Sequence[str] | None) -> bytes:
    """Metadata v1; None asks for every topic."""
    if topics is None:
        return request(Api.METADATA, 1, struct.pack(">i", -1))
    return request(Api.METADATA, 1, struct.pack(">i", len(topics)) + b"".join(map(text, topics)))


def api_versions() -> bytes:
    """ApiVersions v0."""
    return request(Api.API_VERSIONS, 0, b"")


def create_topics(version: int, names: Sequence[str], partitions: int, settings: dict[str, str]) -> bytes:
    """CreateTopics v1 or v2, one replica each."""
    parts = [struct.pack(">i", len(names))]
    for name in names:
        parts.append(text(name) + struct.pack(">ihii", partitions, 1, 0, len(settings)))
        parts += [text(key) + text(value) for key, value in settings.items()]
    return request(Api.CREATE_TOPICS, version, b"".join(parts) + struct.pack(">ib", 60_000, 0))


def delete_topics(version: int, names: Sequence[str]) -> bytes:
    """DeleteTopics v0 or v1."""
    body = struct.pack(">i", len(names)) + b"".join(map(text, names)) + struct.pack(">i", 60_000)
    return request(Api.DELETE_TOPICS, version, body)


# Where things stand in an answer about one topic and one partition, counted from the four bytes of its length.


def produce_error_at(topic: str) -> int:
    return 4 + 4 + 4 + len(text(topic)) + 4 + 4


def produce_reply_size(topic: str, version: int = 3) -> int:
    """Error, base offset, append time, from v5 on the start of the log, and the throttle time behind the topics."""
    return produce_error_at(topic) + 2 + 8 + 8 + (8 if version >= 5 else 0) + 4


def lookup_error_at(topic: str) -> int:
    return produce_error_at(topic)


def lookup_reply_size(topic: str) -> int:
    """ListOffsets v1: error, timestamp, offset."""
    return lookup_error_at(topic) + 2 + 8 + 8


ANSWERED_LOOKUP = struct.Struct(">ihqq")
"""Of ListOffsets v1: partition, error, timestamp, offset."""


def lookups_at(topic: str) -> int:
    """Where the answers of ListOffsets v1 begin, one for each partition."""
    return lookup_error_at(topic) - 4


def lookups_reply_size(topic: str, partitions: int) -> int:
    return lookups_at(topic) + partitions * ANSWERED_LOOKUP.size


def answered_lookups(reply: bytes, topic: str) -> list[tuple[int, int, int, int]]:
    """In the order of their partitions."""
    return sorted(ANSWERED_LOOKUP.iter_unpack(reply[lookups_at(topic) :]))


def first_offset_error_at(topic: str) -> int:
    return produce_error_at(topic)


def first_offset_reply_size(topic: str) -> int:
    """ListOffsets v0: error, and an array of one offset."""
    return first_offset_error_at(topic) + 2 + 4 + 8


def max_timestamp_error_at(topic: str) -> int:
    """ListOffsets v7: tags behind the correlation id, the throttle time, and arrays that count in one byte."""
    return 4 + 4 + 1 + 4 + 1 + 1 + len(topic) + 1 + 4


def max_timestamp_reply_size(topic: str) -> int:
    """Error, timestamp, offset, leader epoch, and the tags of partition, topic and answer."""
    return max_timestamp_error_at(topic) + 2 + 8 + 8 + 4 + 3


def fetch_error_at(topic: str) -> int:
    """Fetch v1 to v4 put the throttle time before the topics."""
    return 4 + 4 + 4 + 4 + len(text(topic)) + 4 + 4


def fetch_records_at(version: int, topic: str) -> int:
    """Behind error and high watermark; v4 adds the last stable offset and an array of aborted transactions, empty here."""
    return fetch_error_at(topic) + 2 + 8 + (8 + 4 if version >= 4 else 0) + 4


def number(batch: memoryview, producer_id: int, epoch: int, sequence: int) -> None:
    """Make a batch that of a producer's sequence, in its place."""
    struct.pack_into(">qhi", batch, PRODUCER_AT, producer_id, epoch, sequence)
    struct.pack_into(">I", batch, COVERED_FROM - 4, crc32c.crc32c(batch[COVERED_FROM:]))


def sequence_after(sequence: int) -> int:
    """Of a batch of one record."""
    return 0 if sequence == LARGEST_SEQUENCE else sequence + 1
