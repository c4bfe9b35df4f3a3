"""Record sets written byte by byte, right or wrong in any field: an independent check of the code that reads and checks them."""

import gzip
import struct
import zlib

from crc32c import crc32c

CODECS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


def varint(value):
    value = value << 1 if value >= 0 else (-value << 1) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def length_and(data):
    return varint(-1) if data is None else varint(len(data)) + data


def record(value=b"v", key=None, offset_delta=0, timestamp_delta=0, headers=(), attributes=0):
    body = bytes([attributes]) + varint(timestamp_delta) + varint(offset_delta) + length_and(key) + length_and(value)
    body += varint(len(headers)) + b"".join(length_and(part) for header in headers for part in header)
    return varint(len(body)) + body


def batch(
    records,
    *,
    count=None,
    attributes=0,
    base_timestamp=0,
    max_timestamp=0,
    base_offset=0,
    last_delta=None,
    producer=(-1, -1, -1),
    crc=None,
    length=None,
    magic=2,
    leader_epoch=-1,
):
    """`records` is a list of encoded records, or their bytes, compressed or not, with a count."""
    count = len(records) if count is None else count
    body = records if isinstance(records, bytes) else b"".join(records)
    last_delta = count - 1 if last_delta is None else last_delta
    tail = struct.pack(">hiqqqhii", attributes, last_delta, base_timestamp, max_timestamp, *producer, count) + body
    rest = struct.pack(">ibI", leader_epoch, magic, crc32c(tail) if crc is None else crc) + tail
    return struct.pack(">qi", base_offset, len(rest) if length is None else length) + rest


def message(value=b"v", key=None, *, offset=0, magic=1, attributes=0, timestamp=-1, crc=None, size=None):
    sized = [struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data for data in (key, value)]
    head = struct.pack(">bB", magic, attributes) + (struct.pack(">q", timestamp) if magic else b"")
    checked = head + b"".join(sized)
    body = struct.pack(">I", zlib.crc32(checked) if crc is None else crc) + checked
    return struct.pack(">qi", offset, len(body) if size is None else size) + body


def wrapper(inner, *, offset=0, magic=1, timestamp=-1, attributes=0):
    return message(
        gzip.compress(inner, mtime=0), offset=offset, magic=magic, attributes=attributes | 1, timestamp=timestamp
    )


def read_set(data):
    """(offset, magic, attributes, timestamp, key, value, crc is right) of every message, wrappers unopened."""
    found = []
    position = 0
    while position < len(data):
        offset, size, crc, magic, attributes = struct.unpack_from(">qiIbB", data, position)
        at = position + 18
        timestamp = -1
        if magic:
            (timestamp,) = struct.unpack_from(">q", data, at)
            at += 8
        parts = []
        for _ in range(2):
            (length,) = struct.unpack_from(">i", data, at)
            at += 4
            parts.append(None if length < 0 else bytes(data[at : at + length]))
            at += max(length, 0)
        right = zlib.crc32(data[position + 16 : position + 12 + size]) == crc
        found.append((offset, magic, attributes, timestamp, *parts, right))
        position += 12 + size
    return found


def read_batch_header(data):
    """The header's fields by name, and whether its crc is right."""
    names = (
        "base_offset length leader_epoch magic crc attributes last_delta base_timestamp max_timestamp "
        "producer_id producer_epoch base_sequence count"
    )
    fields = dict(zip(names.split(), struct.unpack_from(">qiibIhiqqqhii", data), strict=True))
    fields["crc_is_right"] = crc32c(bytes(data[21 : 12 + fields["length"]])) == fields["crc"]
    return fields
