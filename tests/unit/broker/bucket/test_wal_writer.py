"""The writer of a WAL, step by step: order, bounds, and the end by a fence."""

import logging

import pytest

from horolog.broker.bucket import wal_object
from horolog.broker.bucket.fence import Fence
from horolog.broker.bucket.names import Wal, key
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.bucket.wal_object import Identity, NewRun
from horolog.broker.bucket.wal_writer import MAX_UNSAFE, WalWriter
from horolog.stores.object_store import Created, Outcome

WAL = Wal(2, 17)
MADE, TAKEN, UNKNOWN = Created(Outcome.MADE), Created(Outcome.TAKEN), Created(Outcome.UNKNOWN, "no answer")


class Held:
    """A store whose creates wait until the test answers them."""

    def __init__(self):
        self.creates, self.objects, self.sent = {}, {}, []

    def create(self, key, data, done):
        self.sent.append((key, data))
        self.creates[key] = done

    def get(self, key, done):
        done(self.objects.get(key))

    def answer(self, number, created):
        self.creates.pop(key(WAL.folder, number))(created)


class Log:
    """What the writer says."""

    def __init__(self):
        self.said = []

    def safe(self, upto):
        self.said.append(upto)

    def fenced(self, fence):
        self.said.append(fence)


@pytest.fixture
def setup():
    store, log, nonces = Held(), Log(), iter(range(100))
    access = StoreAccess(store, lambda seconds, done: done(None))
    return store, log, WalWriter(WAL, access, lambda: b"%16d" % next(nonces), log)


def test_small_objects_stay_in_memory_until_they_are_merged(setup, monkeypatch):
    store, _, writer = setup
    shipped(writer)
    ((_, data),) = store.sent
    monkeypatch.setattr("horolog.broker.bucket.wal_writer.MOST_KEPT_BYTES", 2 * len(data))
    shipped(writer)
    shipped(writer)
    assert [writer.kept(number) for number in range(3)] == [store.sent[0][1], store.sent[1][1], None]
    writer.forget(1)
    shipped(writer)
    assert [writer.kept(number) is not None for number in range(4)] == [False, True, False, True]


def shipped(writer):
    number = writer.next_number
    return writer.ship([NewRun(b"t" * 16, 0, 1, number, number, number + 1, 0, 0, [b"batch"])])


def test_numbers_are_safe_in_order(setup):
    store, log, writer = setup
    assert [shipped(writer) for _ in range(MAX_UNSAFE)] == [0, 1, 2, 3]
    assert not writer.can_ship
    with pytest.raises(AssertionError):
        shipped(writer)
    assert writer.unsafe_bytes == sum(len(data) for _, data in store.sent)
    store.answer(1, MADE)
    store.answer(2, MADE)
    assert log.said == []
    store.answer(0, MADE)
    assert (log.said, writer.safe_end, writer.can_ship) == ([3], 3, True)
    store.answer(3, MADE)
    assert (log.said, writer.unsafe_bytes) == ([3, 4], 0)
    assert repr(writer) == "<WalWriter 2-17, safe up to 4 of 4>"


def test_a_create_without_an_answer_is_sent_again_with_the_same_bytes(setup):
    store, log, writer = setup
    shipped(writer)
    store.answer(0, UNKNOWN)
    assert store.sent[0] == store.sent[1]
    store.objects[key(WAL.folder, 0)] = store.sent[0][1]
    store.answer(0, TAKEN)
    assert log.said == [1], "its own bytes are there"
    identity = wal_object.decode(store.sent[0][1]).identity
    assert identity == Identity(WAL, 0, 1, b"%16d" % 0)


def test_a_fence_ends_the_wal(setup):
    store, log, writer = setup
    for _ in range(3):
        shipped(writer)
    fence = Fence(WAL, 1, 3, bytes(16))
    store.objects[key(WAL.folder, 1)] = fence.encode()
    store.answer(1, TAKEN)
    store.answer(0, MADE)
    store.answer(2, MADE)
    assert log.said == [1, fence], "what lies behind the fence is never said to be safe"
    assert (writer.safe_end, writer.can_ship, writer.is_fenced, writer.unsafe_bytes) == (1, False, True, 0)
    assert writer.safe_bytes == len(store.sent[0][1])
    assert repr(writer) == "<WalWriter 2-17, fenced>"


def test_a_fence_under_the_first_number_makes_nothing_safe(setup):
    store, log, writer = setup
    for _ in range(2):
        shipped(writer)
    fence = Fence(WAL, 0, 3, bytes(16))
    store.objects[key(WAL.folder, 0)] = fence.encode()
    store.answer(1, MADE)
    store.answer(0, TAKEN)
    assert log.said == [fence]
    assert (writer.safe_end, writer.safe_bytes) == (0, 0)


@pytest.mark.parametrize("other", [wal_object.encode(Identity(WAL, 0, 1, b"x" * 16), []), b"nonsense"])
def test_a_number_that_another_process_took_ends_it_as_well(setup, other, caplog):
    store, log, writer = setup
    shipped(writer)
    store.objects[key(WAL.folder, 0)] = other
    with caplog.at_level(logging.ERROR):
        store.answer(0, TAKEN)
    assert (log.said, writer.is_fenced) == ([None], True)
    assert len(caplog.records) == (other == b"nonsense")
