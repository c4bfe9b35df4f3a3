"""The format of files about producers: a version, a checksum, and rows of one size. Big-endian:

version      int16
crc          uint32  CRC-32C of everything behind it
count        int32
rows
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Any

import crc32c

_HEAD = struct.Struct(">hIi")
_VERSION_AND_CRC = struct.Struct(">hI")
_COUNT = struct.Struct(">i")


class RowFileError(ValueError):
    """The file cannot be trusted; the message says why."""


def encode(version: int, row: struct.Struct, rows: Sequence[bytes]) -> bytes:
    body = b"".join([_COUNT.pack(len(rows)), *rows])
    data = _VERSION_AND_CRC.pack(version, crc32c.crc32c(body)) + body
    assert len(data) == _size_of(len(rows), row), f"{len(rows)} rows take {len(data)} bytes"
    return data


def _size_of(count: int, row: struct.Struct) -> int:
    """The size of a file of so many rows. Asserted on writing, damage on reading."""
    return _HEAD.size + count * row.size


def decode(data: bytes, version: int, row: struct.Struct) -> Iterator[tuple[Any, ...]]:
    """The rows; raises RowFileError."""
    if len(data) < _HEAD.size:
        raise RowFileError(f"{len(data)} bytes are less than a head")
    found, crc, count = _HEAD.unpack_from(data)
    if found != version:
        raise RowFileError(f"version {found} is not {version}")
    if crc32c.crc32c(memoryview(data)[_VERSION_AND_CRC.size :]) != crc:
        raise RowFileError("the checksum does not match")
    if len(data) != _size_of(count, row):
        raise RowFileError(f"{count} rows do not take {len(data)} bytes")
    return row.iter_unpack(memoryview(data)[_HEAD.size :])
