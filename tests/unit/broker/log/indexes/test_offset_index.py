"""The offset index against a linear scan, and its file while it is active and afterwards."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.broker.log.indexes import OffsetIndex
from horolog.broker.log.indexes.offset_index import (
    ends_in_order,
    last_at_or_before,
    last_position_up_to,
    lookup,
    offset_of,
    position_of,
)
from horolog.broker.log.storage import MemoryStorage

increasing = st.lists(st.integers(0, 1000), unique=True).map(sorted)


def index_of(pairs):
    storage = MemoryStorage()
    storage.make_dir("/d")
    index = OffsetIndex(storage, "/d/0.index", 8 * (len(pairs) + 1) + 5)
    index.create()
    for pair in pairs:
        index.append(*pair)
    return storage, index


@given(increasing, st.integers(-1, 1001))
def test_searches_equal_a_linear_scan(offsets, wanted):
    pairs = [(offset, offset * 10 + 1) for offset in offsets]
    entries = index_of(pairs)[1].entries
    before = [n for n, (offset, _) in enumerate(pairs) if offset <= wanted]
    assert last_at_or_before(entries, wanted) == (before[-1] if before else -1)
    for guess in (-1, 0, len(before) - 2, len(before) - 1, len(before), len(offsets)):
        assert last_at_or_before(entries, wanted, guess) == len(before) - 1
    assert lookup(entries, wanted) == (pairs[before[-1]][1] if before else 0)
    positions = [position for _, position in pairs if position <= wanted * 10]
    assert last_position_up_to(entries, wanted * 10) == (positions[-1] if positions else 0)
    assert position_of(entries, -1) == position_of(entries, -7) == 0
    assert [offset_of(entries, number) for number in range(len(offsets))] == offsets


def test_the_file_is_entries_of_two_big_endian_int32():
    storage, index = index_of([(3, 100), (5, 200), (2**31 - 1, 2**31 - 1)])
    index.trim()
    assert storage.read_all("/d/0.index") == struct.pack(">iiiiii", 3, 100, 5, 200, 2**31 - 1, 2**31 - 1)


def test_the_active_file_is_preallocated_in_whole_entries_and_cut_afterwards():
    storage, index = index_of([(3, 100), (5, 200)])
    index.flush()
    assert storage.stat("/d/0.index")[0] == 24, "29 bytes, rounded down"
    assert storage.read_all("/d/0.index")[:16] == bytes(index.entries)
    index.trim()
    assert storage.read_all("/d/0.index") == bytes(index.entries)
    index.preallocate()
    assert storage.stat("/d/0.index")[0] == 24


def test_it_is_full_when_no_entry_fits():
    _, index = index_of([(3, 100), (5, 200)])
    assert not index.is_full
    index.append(9, 300)
    assert index.is_full


def test_entries_taken_back_are_overwritten_by_the_next():
    storage, index = index_of([(3, 100), (5, 200)])
    index.flush()
    index.cut_back(8)
    index.append(4, 150)
    index.trim()
    assert storage.read_all("/d/0.index") == struct.pack(">iiii", 3, 100, 4, 150)


@pytest.mark.parametrize(("offset", "position"), [(5, 300), (4, 300), (6, 200), (6, 100)])
def test_an_entry_that_is_not_behind_the_last_is_neither_added_nor_loaded(offset, position):
    _, index = index_of([(3, 100), (5, 200)])
    assert ends_in_order(index.entries)
    with pytest.raises(AssertionError, match=f"got {offset} at {position}"):
        index.append(offset, position)
    assert not ends_in_order(struct.pack(">iiii", 5, 200, offset, position))


def test_a_part_of_an_entry_is_no_end():
    assert ends_in_order(b"")
    assert not ends_in_order(bytes(9))
