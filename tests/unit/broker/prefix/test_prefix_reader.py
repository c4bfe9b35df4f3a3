"""The objects of a prefix, read with several threads."""

import threading

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.prefix.prefix_reader import PrefixReader
from horolog.stores.faults import StoreError
from horolog.stores.memory_store import MemoryStore


@pytest.fixture
def store():
    return MemoryStore(ManualClock(0))


def test_what_is_read_is_counted(store):
    seen = []
    store.create("a/1", b"xy")
    with PrefixReader(store, 2, seen.append) as reader:
        assert reader.get("a/1") == b"xy"
        assert reader.get("a/2") is None
        assert "PrefixReader" in repr(reader)
    assert seen == [2]


def test_parts_of_an_object(store):
    seen = []
    store.create("a/1", b"wxyz")
    with PrefixReader(store, 1, seen.append) as reader:
        assert reader.get_range("a/1", 0, 2) == b"wx"
        assert reader.get_range("a/1", 2, 9) == b"yz"
        assert reader.get_range("a/2", 0, 2) is None
    assert seen == [2]


def test_numbers_of_a_folder(store):
    store.create(f"a/{7:020}", b"xy")
    store.create("a/others", b"z")
    with PrefixReader(store, 1) as reader:
        assert reader.numbers("a") == {7: 2}
        assert reader.listed("") == {f"a/{7:020}": 2, "a/others": 1}


def test_several_at_a_time_and_in_order(store):
    both = threading.Barrier(2, timeout=30)
    with PrefixReader(store, 2) as reader:
        assert reader.each(lambda one: (both.wait(), one)[1], [1, 2, 3, 4]) == [1, 2, 3, 4]


def test_an_error_ends_the_work(store):
    def work(one):
        raise StoreError(str(one))

    with PrefixReader(store, 1) as reader, pytest.raises(StoreError):
        reader.each(work, [1, 2])
