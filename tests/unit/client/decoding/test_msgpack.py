"""MessagePack of another library is read as it was meant; bytes that are none end in a sentence."""

import datetime as dt
import tracemalloc

import msgpack as other
import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.client.decoding import msgpack
from horolog.client.decoding.values import DecodingError, Instant

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=40)
    | st.binary(max_size=40),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text() | st.integers(0, 9), inner, max_size=20),
)


@given(VALUES)
def test_what_another_library_writes(value):
    assert msgpack.read(other.packb(value)) == value


@pytest.mark.parametrize("size", [0, 31, 32, 255, 256, 65_535, 65_536])
def test_lengths(size):
    for value in ("x" * size, b"x" * size, [None] * size, {str(n): n for n in range(min(size, 70_000))}):
        assert msgpack.read(other.packb(value)) == value
    packed = other.packb(other.ExtType(7, b"x" * size))
    assert msgpack.read(packed) == {"type": 7, "data": b"x" * size}


@pytest.mark.parametrize("ms", [0, 1_700_000_000_000, 1_700_000_000_123, 2**35 * 1000, -5_000])
def test_times(ms):
    when = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=ms)
    assert msgpack.read(other.packb(when, datetime=True)) == Instant.of_ms(ms)


def test_floats_of_four_bytes_and_bytes_in_texts():
    assert msgpack.read(other.packb(1.5, use_single_float=True)) == 1.5
    assert msgpack.read(b"\xa1\xff") == b"\xff"
    assert msgpack.read(b"\x81\x91\x01\x02") == {"[1]": 2}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "ends too early"),
        (b"\x92\x01", "ends too early"),
        (b"\xdd\xff\xff\xff\xff", "ends too early"),
        (b"\xdb\xff\xff\xff\xff", "ends too early"),
        (b"\xc1", "c1, which is never used"),
        (b"\x01\x02", "1 bytes are left over"),
        (b"\x91" * 100_000, "nests deeper than 200"),
    ],
)
def test_what_is_none(data, said):
    with pytest.raises(DecodingError, match=said):
        msgpack.read(data)


@given(st.binary())
def test_any_bytes_end(data):
    tracemalloc.start()
    try:
        msgpack.read(data)
    except DecodingError:
        pass
    finally:
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert most < 1 << 20
