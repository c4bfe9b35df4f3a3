"""The store in memory: a key is created once, whatever threads do."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from horolog.base.clock import ManualClock
from horolog.stores.faults import StoreError
from horolog.stores.memory_store import MemoryStore
from horolog.stores.object_store import Created, Outcome, Stored


def test_an_object_is_created_once_read_in_parts_listed_and_removed():
    clock = ManualClock(5_000)
    store = MemoryStore(clock)
    assert store.create("a/b/1", b"hello") == Created(Outcome.MADE)
    clock.advance(10)
    assert store.create("a/b/1", b"other") == Created(Outcome.TAKEN)
    assert store.create("a/bc", b"") == Created(Outcome.MADE)
    assert (store.get("a/b/1"), store.get_range("a/b/1", 1, 3), store.get_range("a/b/1", 3, 99)) == (
        b"hello",
        b"el",
        b"lo",
    )
    assert store.stat("a/b/1") == Stored("a/b/1", 5, 5_000)
    assert list(store.list("a/b")) == [Stored("a/b/1", 5, 5_000)], "a prefix is a name of folders"
    assert {one.key for one in store.list()} == {"a/b/1", "a/bc"}
    assert (list(store.folders("a")), list(store.folders("a/b")), list(store.folders("b"))) == (["b"], [], [])
    with pytest.raises(StoreError, match="begins at 5 of 5"):
        store.get_range("a/b/1", 5, 6)
    store.delete("a/b/1")
    store.delete("a/b/1")
    with pytest.raises(FileNotFoundError):
        store.get("a/b/1")
    assert repr(store) == "<MemoryStore with 1 objects>"


def test_of_threads_that_create_one_key_one_wins():
    store, start = MemoryStore(ManualClock()), threading.Barrier(8)

    def create(number):
        start.wait()
        return store.create("k", b"%d" % number).outcome

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(create, range(8)))
    assert outcomes.count(Outcome.MADE) == 1
    assert outcomes.index(Outcome.MADE) == int(store.get("k"))
