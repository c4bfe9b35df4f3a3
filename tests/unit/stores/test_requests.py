"""Requests from threads call back once, where they are delivered."""

import queue

import pytest

from horolog.base.clock import ManualClock
from horolog.stores.faults import StoreError
from horolog.stores.memory_store import MemoryStore
from horolog.stores.object_store import Created, Outcome, Stored
from horolog.stores.requests import ThreadedRequests


@pytest.fixture
def delivered():
    return queue.Queue()


def result_of(delivered, ask):
    found = []
    ask(found.append)
    delivered.get(timeout=30)()
    return found[0]


def test_answers_come_where_they_are_delivered(delivered):
    store = MemoryStore(ManualClock(7))
    requests = ThreadedRequests(store, delivered.put, at_once=2)
    assert result_of(delivered, lambda done: requests.create("a/k", b"1", done)) == Created(Outcome.MADE)
    assert result_of(delivered, lambda done: requests.get("a/k", done)) == b"1"
    assert result_of(delivered, lambda done: requests.get("a/x", done)) is None
    assert result_of(delivered, lambda done: requests.get_range("a/k", 0, 5, done)) == b"1"
    assert result_of(delivered, lambda done: requests.get_range("a/x", 0, 5, done)) is None
    assert result_of(delivered, lambda done: requests.list("a", done)) == [Stored("a/k", 1, 7)]
    assert result_of(delivered, lambda done: requests.list("a", done, 0)) == []
    store.create("a/b/k", b"1")
    assert result_of(delivered, lambda done: requests.folders("a", done)) == ["b"]
    store.delete("a/b/k")
    assert result_of(delivered, lambda done: requests.delete("a/k", done)) is None
    assert not list(store.list())
    requests.close()
    with pytest.raises(RuntimeError):
        requests.get("k", print)


def test_faults_are_answers(delivered):
    class Away(MemoryStore):
        def get(self, key):
            raise StoreError("away")

        list = folders = delete = get

    requests = ThreadedRequests(Away(ManualClock()), delivered.put, at_once=1)
    for ask in (requests.get, requests.list, requests.folders, requests.delete):
        assert str(result_of(delivered, lambda done, ask=ask: ask("k", done))) == "away"
    requests.close()
