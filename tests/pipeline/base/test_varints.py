"""Varints at many places of a buffer are what each of them is alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.pipeline.base.varints import MAX_VARLONG_BYTES, Irregular, read_signed, read_unsigned, signed


def varint(value):
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


@given(st.lists(st.integers(0, 2**62), min_size=1, max_size=20))
def test_numbers_are_read_wherever_they_lie(values):
    parts = [varint(value) for value in values]
    places = np.cumsum([0, *map(len, parts)])
    found, following = read_unsigned(np.frombuffer(b"".join(parts), np.uint8), places[:-1], MAX_VARLONG_BYTES)
    assert (found.tolist(), following.tolist()) == (values, places[1:].tolist())


def test_signs_are_in_the_last_bit():
    assert signed(np.array([0, 1, 2, 3, 2**33])).tolist() == [0, -1, 1, -2, 2**32]
    data = np.frombuffer(varint(1) + varint(300), np.uint8)
    assert [part.tolist() for part in read_signed(data, np.array([0, 1]))] == [[-1, 150], [1, 3]]


@pytest.mark.parametrize(
    ("data", "said"),
    [(b"\x80", "runs past the end"), (b"", "runs past the end"), (b"\xff" * 6, "more than 5 bytes")],
)
def test_what_is_no_number_is_irregular(data, said):
    with pytest.raises(Irregular, match=said):
        read_unsigned(np.frombuffer(data, np.uint8), np.array([0]))


def test_of_many_numbers_one_may_be_longer_than_is_allowed():
    data = np.frombuffer(b"\x01" + b"\xff" * 9, np.uint8)
    with pytest.raises(Irregular, match="a number of more than 5 bytes"):
        read_unsigned(data, np.array([0, 1]))
