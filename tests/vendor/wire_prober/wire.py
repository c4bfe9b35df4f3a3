"""Everything a case needs to speak the raw protocol, under one name."""

from tests.vendor.wire_prober import wire_apis
from tests.vendor.wire_prober.wire_codecs import crc32c, gz, lz4, snappy_raw, snappy_xerial, zstd
from tests.vendor.wire_prober.wire_records import _short, batch, compress, msg, parse_records, rec, uncompress, wrap
from tests.vendor.wire_prober.wire_schema import NAMES, SPEC, Dec, Short, body, decode, frame, header, is_flex, uvarint, varint
from tests.vendor.wire_prober.wire_sockets import Closed, Conn, NoReply

__all__ = [
    "NAMES",
    "SPEC",
    "Closed",
    "Conn",
    "Dec",
    "NoReply",
    "Short",
    "_short",
    "batch",
    "body",
    "compress",
    "crc32c",
    "decode",
    "frame",
    "gz",
    "header",
    "is_flex",
    "lz4",
    "msg",
    "parse_records",
    "rec",
    "snappy_raw",
    "snappy_xerial",
    "uncompress",
    "uvarint",
    "varint",
    "wire_apis",
    "wrap",
    "zstd",
]
