"""The contents of a prefix, read without a broker."""

import threading

import pytest

from horolog.base.clock import SystemClock
from horolog.broker.bucket.bucket_entries import BrokerRegistered
from horolog.broker.bucket.bucket_state import BucketState
from horolog.broker.bucket.journal_objects import (
    Founding,
    NumberedEntry,
    encode_founding,
    encode_log_entry,
    encode_snapshot,
)
from horolog.broker.bucket.names import LOG, SNAPSHOTS, key
from horolog.broker.bucket.prefix_contents import ENTRIES_AT_ONCE, OTHER, Amount, amounts, found_in, kind_of
from horolog.stores.memory_store import MemoryStore
from horolog.stores.object_store import Stored

NONCE = b"n" * 16


@pytest.fixture
def store():
    made, state = MemoryStore(SystemClock()), BucketState()
    made.create(key(LOG, 0), encode_founding(Founding("c1", NONCE)))
    for node in (1, 2, 3):
        entry = BrokerRegistered(node, f"host{node}", ())
        made.create(key(LOG, node), encode_log_entry(NumberedEntry(node, entry, NONCE)))
        state = state.apply(entry)
        if node == 2:
            made.create(key(SNAPSHOTS, 2), encode_snapshot(state))
    return made


def test_the_state_is_that_of_the_newest_snapshot_and_the_entries_behind_it(store):
    store.delete(key(LOG, 1))  # which the snapshot has
    found = found_in(store)
    assert (found.cluster_id, found.state.number) == ("c1", 3)
    assert {node: one.host for node, one in found.state.members.items()} == {1: "host1", 2: "host2", 3: "host3"}


def test_without_a_snapshot_all_entries_are_read(store):
    with_snapshot = found_in(store)
    store.delete(key(SNAPSHOTS, 2))
    assert found_in(store) == with_snapshot


def test_entries_are_read_several_at_a_time_and_up_to_the_first_that_is_missing(store, monkeypatch):
    state = found_in(store).state
    for number in range(4, 2 * ENTRIES_AT_ONCE + 6):
        entry = BrokerRegistered(number, "host", ())
        store.create(key(LOG, number), encode_log_entry(NumberedEntry(number, entry, NONCE)))
    store.delete(key(LOG, 2 * ENTRIES_AT_ONCE + 4))
    met, real = threading.Barrier(ENTRIES_AT_ONCE, timeout=20), store.get

    def get(name):
        if name.startswith(LOG) and name > key(LOG, state.number - 1):
            met.wait()
        return real(name)

    monkeypatch.setattr(store, "get", get)
    assert found_in(store).state.number == 2 * ENTRIES_AT_ONCE + 3


def test_a_snapshot_that_is_gone_meanwhile_is_left_out(store, monkeypatch):
    listed = list(store.list(SNAPSHOTS))
    store.delete(key(SNAPSHOTS, 2))
    monkeypatch.setattr(store, "list", lambda prefix: listed)
    assert found_in(store).state.number == 3


def test_a_place_without_a_journal_has_no_cluster():
    assert found_in(MemoryStore(SystemClock())) is None


def test_objects_are_counted_by_their_kind():
    objects = [Stored("wal/1-1/0", 5, 0), Stored("wal/2-2/7", 6, 0), Stored("meta/log/1", 2, 0), Stored("walrus", 1, 0)]
    assert amounts(objects) == [Amount("journal", 1, 2), Amount("write-ahead logs", 2, 11), Amount(OTHER, 1, 1)]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("meta/snapshot/1", "snapshots of the journal"),
        ("data/t/0/x.log", "segments"),
        ("check/x/1", "tests of the store"),
    ],
)
def test_kinds(name, kind):
    assert kind_of(name) == kind


def test_the_history_is_a_kind_of_its_own():
    objects = [Stored("wal/1-1/0", 5, 0), Stored("wal/1-1/1", 7, 0)]
    assert amounts(objects, objects[:1]) == [Amount("write-ahead logs", 1, 7), Amount("kept for restores", 1, 5)]
