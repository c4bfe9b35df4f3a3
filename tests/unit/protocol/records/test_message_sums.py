"""Which library sums old messages, and that both give the same sum."""

import importlib.util
import sys
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.protocol.records.message_sums import crc32_of_messages

HAS_ISAL = importlib.util.find_spec("isal") is not None


@pytest.fixture
def asked_anew():
    crc32_of_messages.cache_clear()
    yield crc32_of_messages
    crc32_of_messages.cache_clear()


@given(st.binary(max_size=2000), st.integers(0, 20))
def test_the_sum_is_that_of_zlib(data, start):
    crc32 = crc32_of_messages()
    assert crc32(data) == zlib.crc32(data)
    assert crc32(memoryview(data)[start:]) == zlib.crc32(data[start:])


@pytest.mark.skipif(not HAS_ISAL, reason="ISA-L is not installed")
def test_isal_is_taken_where_it_is_there(asked_anew):
    assert asked_anew().__module__.startswith("isal")


def test_zlib_is_taken_where_isal_is_missing(asked_anew, monkeypatch):
    monkeypatch.setitem(sys.modules, "isal", None)
    monkeypatch.setitem(sys.modules, "isal.isal_zlib", None)
    assert asked_anew() is zlib.crc32
