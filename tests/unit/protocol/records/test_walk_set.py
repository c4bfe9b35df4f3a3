"""A walk over a set says where its messages begin and their times, or nothing at the first that is not as usual."""

import pytest

from horolog.protocol.records.walk_set import walk_set
from tests.support import raw_records as raw

LARGEST = 1_000_000


def found(data, largest=LARGEST, *, keys_needed=False):
    return walk_set(data, largest, keys_needed=keys_needed)


def changed(data, at, byte):
    """The message with another byte, and the crc that belongs to it."""
    head = bytearray(data)
    head[at] = byte
    head[12:16] = raw.zlib.crc32(head[16:]).to_bytes(4, "big")
    return bytes(head)


def test_places_and_times():
    messages = [raw.message(b"v" * size, timestamp=size) for size in (0, 3, 200)]
    assert found(b"".join(messages)) == ([0, 34, 71], [0, 3, 200])


@pytest.mark.parametrize("key", [None, b"", b"key"])
@pytest.mark.parametrize("value", [None, b"", b"value"])
def test_keys_and_values(key, value):
    data = raw.message(value, key, timestamp=5)
    assert found(data * 2) == ([0, len(data)], [5, 5])
    assert (found(data, keys_needed=True) is None) == (key is None)


@pytest.mark.parametrize("attributes", range(256))
def test_bits_without_a_meaning_pass_and_codecs_and_append_times_do_not(attributes):
    assert (found(raw.message(attributes=attributes)) is None) == bool(attributes & 0x0F)


@pytest.mark.parametrize("timestamp", [-(2**63), -2, -1, 0, 2**63 - 1])
def test_times_are_not_judged(timestamp):
    assert found(raw.message(timestamp=timestamp)) == ([0], [timestamp])


@pytest.mark.parametrize("largest", [34, 39, 40])
def test_the_size_of_each_is_bounded(largest):
    assert (found(raw.message(b"") + raw.message(b"12345"), largest) is None) == (largest < 39)


KEYED = raw.message(b"value", b"key")


@pytest.mark.parametrize("data", [
    b"",
    b"f",
    KEYED[:-1],
    KEYED + KEYED[:-1],
    KEYED + b"f",
    raw.message(magic=0),
    changed(KEYED, 16, 2),
    raw.message(crc=1),
    KEYED + raw.message(crc=1),
    raw.message(size=21),
    raw.message(size=-1),
    raw.message(size=2**31 - 1),
    changed(KEYED, 29, 4 + 5 + 1),
    changed(KEYED, 26, 0x7F),
    changed(KEYED, 29, 12),
    changed(KEYED, 36, 6),
    changed(raw.message(b"value"), 33, 6),
    changed(raw.message(b"value"), 30, 0x7F),
])  # fmt: skip
def test_what_is_not_as_usual(data):
    assert found(data) is None


def test_bytes_behind_the_value_pass():
    assert found(changed(KEYED, 36, 4)) == ([0], [-1])
