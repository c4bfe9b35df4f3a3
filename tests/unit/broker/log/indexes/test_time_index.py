"""The time index: strictly increasing, one slot kept for the closing entry, searched as a linear scan would."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.broker.log.indexes import TimeIndex
from horolog.broker.log.indexes.time_index import ends_in_order, first_at_or_after
from horolog.broker.log.storage import MemoryStorage


def new_index(max_bytes=1000):
    storage = MemoryStorage()
    storage.make_dir("/d")
    index = TimeIndex(storage, "/d/0.timeindex", max_bytes)
    index.create()
    return storage, index


@given(st.lists(st.integers(0, 50), max_size=30), st.integers(-1, 51))
def test_only_later_times_get_in_and_searches_equal_a_linear_scan(offered, wanted):
    _, index = new_index()
    kept = []
    for offset, timestamp in enumerate(offered):
        index.append(timestamp, offset)
        if timestamp > max((one[0] for one in kept), default=-1):
            kept.append((timestamp, offset))
    assert list(struct.iter_unpack(">qi", index.entries)) == kept
    assert index.last_timestamp == (kept[-1][0] if kept else -1)
    assert first_at_or_after(index.entries, wanted) == next(
        ((number, *one) for number, one in enumerate(kept) if one[0] >= wanted), None
    )


def test_it_is_full_with_one_entry_less_than_fits():
    """Finding 9: a file for 8 entries takes 7, the last slot is for the entry on closing."""
    _, index = new_index(96)
    for n in range(7):
        assert not index.is_full
        index.append(n, n)
    assert index.is_full
    index.append(99, 99)
    assert len(index) == 8


def test_the_file_is_rounded_down_to_whole_entries():
    storage, index = new_index(100)
    assert storage.stat("/d/0.timeindex")[0] == 96
    index.append(5, 1)
    index.trim()
    assert storage.read_all("/d/0.timeindex") == struct.pack(">qi", 5, 1)


def test_a_missing_file_is_made_anew():
    storage, index = new_index()
    index.append(5, 1)
    index.close()
    storage.remove("/d/0.timeindex")
    index.rewrite()
    assert storage.read_all("/d/0.timeindex") == struct.pack(">qi", 5, 1)


@pytest.mark.parametrize("offset", [4, 3])
def test_an_entry_that_is_not_behind_the_last_is_neither_added_nor_loaded(offset):
    _, index = new_index()
    index.append(5, 1)
    index.append(6, 4)
    assert ends_in_order(index.entries)
    with pytest.raises(AssertionError, match=f"got 7 at {offset}"):
        index.append(7, offset)
    assert not ends_in_order(struct.pack(">qiqi", 6, 4, 7, offset))
    assert not ends_in_order(struct.pack(">qiqi", 7, 4, 7, 5))


def test_a_part_of_an_entry_is_no_end():
    assert ends_in_order(b"")
    assert ends_in_order(bytes(12))
    assert not ends_in_order(bytes(8))
    assert not ends_in_order(bytes(30))
