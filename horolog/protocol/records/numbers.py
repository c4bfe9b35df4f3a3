"""Big-endian signed numbers at a place in bytes: compiled code reads them there, without an object for each."""

from struct import Struct
from typing import Final

from mypy_extensions import i64

IS_COMPILED: Final = not __file__.endswith(".py")

_unpack_int32: Final = Struct(">i").unpack_from
_unpack_int64: Final = Struct(">q").unpack_from


def int32_at(data: bytes, at: i64) -> i64:
    if not IS_COMPILED:
        plain: i64 = _unpack_int32(data, at)[0]
        return plain
    first: i64 = data[at]
    second: i64 = data[at + 1]
    third: i64 = data[at + 2]
    fourth: i64 = data[at + 3]
    return ((first ^ 128) - 128) << 24 | second << 16 | third << 8 | fourth


def int64_at(data: bytes, at: i64) -> i64:
    if not IS_COMPILED:
        plain: i64 = _unpack_int64(data, at)[0]
        return plain
    return int32_at(data, at) << 32 | int32_at(data, at + 4) & 0xFFFFFFFF
