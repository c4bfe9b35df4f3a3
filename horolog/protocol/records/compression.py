"""The codecs of record sets, with a bound on what may come out of them.

| code | codec  | what the bytes are |
|---|---|---|
| 1 | gzip   | one or more gzip members |
| 2 | snappy | xerial framing (magic `82 SNAPPY 00`, version int32, compatible int32, then blocks: size int32, raw snappy), or one raw block |
| 3 | lz4    | one or more lz4 frames of independent blocks; in format v0 with the wrong header checksum, see `lz4_frame` |
| 4 | zstd   | one or more zstd frames; formats v0 and v1 never carry it |

Nothing is decompressed beyond `limit_bytes`: snappy states its size beforehand, the others are stopped at the limit.
The libraries are loaded on first use: a broker whose clients do not compress never pays for them.
"""

import struct
import sys
import zlib
from collections.abc import Callable
from enum import IntEnum
from functools import cache
from typing import Any, Final, NamedTuple, Protocol

from horolog.protocol.errors import DecodeError
from horolog.protocol.primitives import Buffer, decode_unsigned_varint
from horolog.protocol.records import lz4_frame

# What one batch may grow to: generous for what producers send (they bound the size before compression),
# small against a machine's memory.
DECOMPRESSED_LIMIT_BYTES = 64 << 20

XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = struct.Struct(">8sii")
_XERIAL_BLOCK_BYTES = 32 << 10
_INT32 = struct.Struct(">i")
_GZIP_WINDOW = 31  # 15 bits of window and 16 for "gzip, not zlib"
_LZ4_BLOCK_64_KIB = 4
_LZ4_LARGEST_RATIO = 256  # one byte of lz4 cannot stand for more than 255 of content
_SNAPPY_LARGEST_RATIO = 22  # three bytes of snappy stand for 64 of content at most
_MAX_FRAMES = 1024  # members or frames one after the other; producers write one


class Codec(IntEnum):
    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


CODEC_MASK: Final = 0x07
CODEC_NAMES = {
    "none": Codec.NONE,
    "uncompressed": Codec.NONE,
    **{codec.name.lower(): codec for codec in Codec if codec},
}


class UnknownCodecError(DecodeError):
    """The attributes name a codec that this format does not have."""


class TooMuchDataError(DecodeError):
    """The data would be larger than the bound once decompressed."""


class _Stream(Protocol):
    """The common interface of the decompressors of zlib, lz4 and zstd."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Library(NamedTuple):
    compress: Callable[[bytes], bytes]
    stream: Callable[[], _Stream]
    fault: type[Exception]


def codec_of(attributes: int, magic: int) -> Codec:
    code = attributes & CODEC_MASK
    if code > (Codec.ZSTD if magic >= 2 else Codec.LZ4):
        raise UnknownCodecError(f"format v{magic} has no codec {code}")
    return Codec(code)


def compress(codec: Codec, data: bytes, magic: int = 2) -> bytes:
    if codec == Codec.NONE:
        return data
    if codec == Codec.SNAPPY:
        return _compress_xerial(data)
    compressed = _library(codec).compress(data)
    return lz4_frame.with_first_clients_checksum(compressed) if codec == Codec.LZ4 and magic == 0 else compressed


def decompress(codec: Codec, data: Buffer, limit_bytes: int = DECOMPRESSED_LIMIT_BYTES, magic: int = 2) -> bytes:
    """The content; DecodeError if it is damaged, TooMuchDataError if it is larger than the limit."""
    if codec == Codec.NONE:
        return bytes(data)
    if not data:
        raise DecodeError(f"no bytes to decompress with {codec.name.lower()}")
    if codec == Codec.SNAPPY:
        return _decompress_snappy(bytes(data), limit_bytes)
    if codec == Codec.LZ4:
        return _decompress_lz4(bytes(data), limit_bytes, magic)
    return _decompress_frames(codec, bytes(data), limit_bytes)


def _decompress_frames(codec: Codec, data: bytes, limit_bytes: int) -> bytes:
    """One frame after the other, each stopped when it is about to pass the limit."""
    library = _library(codec)
    parts: list[bytes] = []
    left = limit_bytes
    while data:
        stream = library.stream()
        try:
            parts.append(stream.decompress(data, left + 1))
        except (library.fault, ValueError, EOFError, MemoryError) as error:
            raise DecodeError(f"{codec.name.lower()} data is damaged: {error}") from error
        left -= len(parts[-1])
        if left < 0:
            raise TooMuchDataError(f"{codec.name.lower()} data is larger than {limit_bytes} bytes when decompressed")
        if not stream.eof or len(parts) > _MAX_FRAMES:
            raise DecodeError(f"{codec.name.lower()} data ends in the middle or has too many frames")
        data = stream.unused_data
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _decompress_lz4(data: bytes, limit_bytes: int, magic: int) -> bytes:
    frame = lz4_frame.with_right_checksum(data) if magic == 0 else data
    claimed = lz4_frame.claimed_size(frame)
    if claimed is not None and claimed > limit_bytes:
        raise TooMuchDataError(f"lz4 data claims {claimed} bytes, the limit is {limit_bytes}")
    if len(frame) * _LZ4_LARGEST_RATIO > limit_bytes or (claimed or 0) > len(frame) * _LZ4_LARGEST_RATIO:
        return _decompress_frames(Codec.LZ4, frame, limit_bytes)
    return _decompress_small_lz4(frame, limit_bytes)


def _decompress_small_lz4(frame: bytes, limit_bytes: int) -> bytes:
    """Data that cannot exceed the limit, whatever its header claims, takes the call that is ten times as fast on small sets."""
    import lz4.frame

    try:
        content, size = lz4.frame.decompress(frame, return_bytes_read=True)
    except (RuntimeError, ValueError, EOFError, MemoryError) as error:
        raise DecodeError(f"lz4 data is damaged: {error}") from error
    if size < len(frame):
        return _decompress_frames(Codec.LZ4, frame, limit_bytes)
    return bytes(content)


def _decompress_snappy(data: bytes, limit_bytes: int) -> bytes:
    if not data.startswith(XERIAL_MAGIC):
        return _decompress_snappy_block(data, limit_bytes)
    position = _XERIAL_HEADER.size
    parts: list[bytes] = []
    left = limit_bytes
    while position < len(data):
        if len(data) - position < _INT32.size:
            raise DecodeError("snappy data ends inside a block's size")
        (size,) = _INT32.unpack_from(data, position)
        position += _INT32.size
        if not 0 < size <= len(data) - position:
            raise DecodeError(f"a snappy block claims {size} bytes of {len(data) - position}")
        parts.append(_decompress_snappy_block(data[position : position + size], left))
        left -= len(parts[-1])
        position += size
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _decompress_snappy_block(block: bytes, limit_bytes: int) -> bytes:
    claimed, _ = decode_unsigned_varint(block, 0)
    if claimed > limit_bytes:
        raise TooMuchDataError(f"snappy data claims {claimed} bytes, the limit is {limit_bytes}")
    if claimed > len(block) * _SNAPPY_LARGEST_RATIO:
        raise DecodeError(f"a snappy block of {len(block)} bytes cannot hold {claimed}")
    snappy = _snappy()
    try:
        return bytes(snappy.decompress_raw(block))
    except _snappy_fault() as error:
        raise DecodeError(f"snappy data is damaged: {error}") from error


def _compress_xerial(data: bytes) -> bytes:
    snappy = _snappy()
    parts = [_XERIAL_HEADER.pack(XERIAL_MAGIC, 1, 1)]
    for start in range(0, max(len(data), 1), _XERIAL_BLOCK_BYTES):
        block = bytes(snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (_INT32.pack(len(block)), block)
    return b"".join(parts)


@cache
def _library(codec: Codec) -> _Library:
    if codec == Codec.GZIP:
        return _Library(_compress_gzip, lambda: zlib.decompressobj(_GZIP_WINDOW), zlib.error)
    if codec == Codec.LZ4:
        import lz4.frame

        return _Library(_compress_lz4, lz4.frame.LZ4FrameDecompressor, RuntimeError)
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return _Library(zstd.compress, zstd.ZstdDecompressor, zstd.ZstdError)


def _compress_gzip(data: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=_GZIP_WINDOW)
    return compressor.compress(data) + compressor.flush()


def _compress_lz4(data: bytes) -> bytes:
    """Java's reader needs independent blocks."""
    import lz4.frame

    return bytes(lz4.frame.compress(data, block_size=_LZ4_BLOCK_64_KIB, block_linked=False, store_size=False))


@cache
def _snappy() -> Any:
    import cramjam

    return cramjam.snappy


@cache
def _snappy_fault() -> type[Exception]:
    import cramjam

    return cramjam.DecompressionError
