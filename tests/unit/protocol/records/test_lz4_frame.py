"""The lz4 header checksum: the hash against known values, and both places from which it is computed."""

import lz4.frame
import pytest

from horolog.protocol.errors import DecodeError
from horolog.protocol.records import lz4_frame


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"", 0x02CC5D05), (b"a", 0x550D7456), (b"abc", 0x32D153FF), (b"abcdefghijklmnopqrst", 0x91618150)],
)
def test_known_hashes(data, expected):
    assert lz4_frame.xxh32(data) == expected


@pytest.mark.parametrize("options", [{}, {"store_size": True}, {"content_checksum": True}, {"block_linked": False}])
def test_the_library_agrees_about_the_right_checksum(options):
    frame = lz4.frame.compress(b"content", **{"store_size": False, **options})
    assert lz4_frame.with_right_checksum(frame) == frame
    old = lz4_frame.with_first_clients_checksum(frame)
    assert lz4_frame.with_right_checksum(old) == frame


def test_the_claimed_size():
    assert lz4_frame.claimed_size(lz4.frame.compress(b"content", store_size=True)) == 7
    assert lz4_frame.claimed_size(lz4.frame.compress(b"content", store_size=False)) is None


@pytest.mark.parametrize("data", [b"", b"\x04\x22\x4d\x18", b"\x04\x22\x4d\x18\x68\x40\x00", b"no frame at all"])
def test_what_is_no_frame(data):
    with pytest.raises(DecodeError):
        lz4_frame.with_right_checksum(data)
