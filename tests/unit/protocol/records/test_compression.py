"""Codecs: content survives, damage is told, and no more comes out than the limit allows."""

import gzip
import os
import tracemalloc

import cramjam
import lz4.frame
import pytest

from horolog.protocol.errors import DecodeError
from horolog.protocol.records import compression
from horolog.protocol.records.compression import (
    CODEC_NAMES,
    Codec,
    TooMuchDataError,
    UnknownCodecError,
    codec_of,
    compress,
    decompress,
)

REAL_CODECS = [codec for codec in Codec if codec]
CONTENTS = [b"", b"a", b"hello " * 1000, os.urandom(100_000), bytes(3 << 20)]


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("codec", list(Codec))
def test_content_survives(codec, magic):
    for content in CONTENTS:
        assert decompress(codec, compress(codec, content, magic), magic=magic) == content


@pytest.mark.parametrize("codec", REAL_CODECS)
def test_the_limit_is_exact(codec):
    content = b"0123456789" * 50_000
    packed = compress(codec, content)
    assert decompress(codec, packed, len(content)) == content
    with pytest.raises(TooMuchDataError):
        decompress(codec, packed, len(content) - 1)


@pytest.mark.parametrize("codec", REAL_CODECS)
def test_a_bomb_is_stopped_while_it_goes_off(codec):
    """Held at the peak are the limit and the compressed bytes, not what the bomb would be."""
    limit = 1 << 20
    bomb = compress(codec, bytes(64 << 20))
    decompress(codec, compress(codec, b"load the library"))
    tracemalloc.start()
    try:
        with pytest.raises(TooMuchDataError):
            decompress(codec, bomb, limit)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * limit + 2 * len(bomb)


@pytest.mark.parametrize("codec", REAL_CODECS)
@pytest.mark.parametrize("part", [0.0, 0.3, 0.99])
def test_what_is_cut_short_is_damaged(codec, part):
    packed = compress(codec, os.urandom(50_000))
    with pytest.raises(DecodeError):
        decompress(codec, packed[: int(len(packed) * part)])


@pytest.mark.parametrize("codec", REAL_CODECS)
@pytest.mark.parametrize("junk", [b"\x00" * 40, b"junk that is no frame", b"\xff" * 100])
def test_junk_is_damaged(codec, junk):
    with pytest.raises(DecodeError):
        decompress(codec, junk)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_several_frames_are_one_content(codec):
    assert (
        decompress(codec, compress(codec, b"one ") + compress(codec, b"two ") + compress(codec, b"three"))
        == b"one two three"
    )


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_frames_without_number_are_refused(codec):
    with pytest.raises(DecodeError):
        decompress(codec, compress(codec, b"") * 2000)


def test_snappy_comes_raw_and_in_blocks():
    content = b"x" * 100_000
    assert decompress(Codec.SNAPPY, bytes(cramjam.snappy.compress_raw(content))) == content
    assert compress(Codec.SNAPPY, content).startswith(b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01")


def test_snappy_blocks_that_lie_about_their_size():
    packed = compress(Codec.SNAPPY, b"x" * 1000)
    for size in (-1, 0, 10**6):
        with pytest.raises(DecodeError):
            decompress(Codec.SNAPPY, packed[:16] + size.to_bytes(4, "big", signed=True) + packed[20:])
    with pytest.raises(DecodeError):
        decompress(Codec.SNAPPY, packed[:18])


def test_snappy_cannot_claim_what_its_bytes_cannot_hold():
    with pytest.raises(DecodeError):
        decompress(Codec.SNAPPY, b"\xff\xff\xff\x0f" + bytes(50))  # 32 MiB in 50 bytes


def test_lz4_that_claims_too_much_in_its_header():
    packed = bytearray(lz4.frame.compress(b"x" * 100, store_size=True))
    packed[6:14] = (1 << 50).to_bytes(8, "little")
    with pytest.raises(DecodeError):
        decompress(Codec.LZ4, bytes(packed))


def test_lz4_of_the_first_clients():
    """Their header checksum is wrong: theirs is written for v0, any is read there, and none but the right one later."""
    old = compress(Codec.LZ4, b"content", magic=0)
    new = compress(Codec.LZ4, b"content", magic=1)
    assert old[:6] == new[:6]
    assert old[6] != new[6]
    assert old[7:] == new[7:]
    for checksum in range(256):
        frame = new[:6] + bytes([checksum]) + new[7:]
        assert decompress(Codec.LZ4, frame, magic=0) == b"content"
        if checksum != new[6]:
            with pytest.raises(DecodeError):
                decompress(Codec.LZ4, frame, magic=1)


def test_lz4_blocks_are_independent():
    """Java's reader refuses linked ones."""
    assert compress(Codec.LZ4, b"x" * 300_000)[4] & 0x20


def test_gzip_of_another_library_is_read():
    assert decompress(Codec.GZIP, gzip.compress(b"content")) == b"content"


def test_codecs_by_attributes_and_name():
    assert [codec_of(attributes, 2) for attributes in range(5)] == list(Codec)
    for attributes, magic in ((4, 1), (4, 0), (5, 2), (7, 2)):
        with pytest.raises(UnknownCodecError):
            codec_of(attributes, magic)
    assert CODEC_NAMES["uncompressed"] == Codec.NONE
    assert "producer" not in CODEC_NAMES


@pytest.mark.parametrize("codec", REAL_CODECS)
def test_a_library_is_loaded_when_its_codec_is_first_used(codec):
    """A broker whose clients compress nothing pays for none."""
    for cached in (compression._library, compression._snappy, compression._snappy_fault):
        cached.cache_clear()
    assert decompress(codec, compress(codec, b"content")) == b"content"
    with pytest.raises(DecodeError):
        decompress(codec, b"not what a codec writes")
