"""Sums of two strings make the sum of both."""

from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from horolog.broker.log.integrity.crc_combine import _POWERS, COMBINES, _powers, combine, shift
from tools import compiled


@given(st.binary(max_size=300), st.binary(max_size=3000))
def test_sums_are_combined(first: bytes, second: bytes) -> None:
    assert combine(crc32c(first), crc32c(second), len(second)) == crc32c(first + second)


@given(st.binary(min_size=1, max_size=30), st.integers(0, 5_000_000))
def test_what_follows_may_be_long(first: bytes, size: int) -> None:
    assert combine(crc32c(first), crc32c(bytes(size)), size) == crc32c(first + bytes(size))


def test_nothing_behind_changes_nothing() -> None:
    assert shift(0x12345678, 0) == 0x12345678


def test_a_power_shifts_by_twice_as_many_bits_as_the_one_before() -> None:
    assert _powers() == _POWERS
    assert shift(1 << 31, 1) == _POWERS[3], "1, shifted by one byte, is x to the power of 8"


def test_plain_python_sums_again() -> None:
    assert COMBINES is bool(compiled.extensions())
