"""Compressed bytes of every codec: byte 0 picks codec, format and the bound on what comes out."""

from horolog.protocol.errors import DecodeError
from horolog.protocol.records.compression import Codec, compress, decompress
from tests.fuzz.targets import place

CODECS = (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD)
LIMITS = (0, 100, 4096, 1 << 20)


def target(data: bytes) -> object:
    if not data:
        return None
    codec = CODECS[data[0] & 3]
    limit = LIMITS[data[0] >> 2 & 3]
    magic = data[0] >> 4 & 1 if codec != Codec.ZSTD else 2
    compressed = compress(codec, data[1:], magic)
    assert decompress(codec, compressed, 1 << 20, magic) == data[1:], "compressed bytes come back"
    try:
        out = decompress(codec, memoryview(data)[1:], limit, magic)
    except DecodeError as error:
        return codec, place(error)
    assert len(out) <= limit, f"{len(out)} bytes are more than the limit of {limit}"
    return codec, "fine"
