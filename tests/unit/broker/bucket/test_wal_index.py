"""Which objects of a WAL have whose records: numbers, merged objects, and the log lines for missing ones."""

import logging

import pytest

from horolog.broker.bucket import wal_index
from horolog.broker.bucket.fence import Fence
from horolog.broker.bucket.names import Wal, key
from horolog.broker.bucket.wal_index import index_of
from tests.support.shipping import (
    TOPIC_ID,
    WAL,
    ReadyStore,
    access_to,
    in_full,
    put_merged,
    put_object,
    run_at,
)

PLACE = (TOPIC_ID, 0)


@pytest.fixture
def store():
    return ReadyStore()


def offsets(store, end, epochs=(0,), place=PLACE):
    index = in_full(index_of(access_to(store), WAL, end, {place: epochs}))
    return [(one.run.base_offset, one.run.next_offset) for epoch in epochs for one in index.get((place, epoch), ())]


def test_numbers_below_the_end_are_read(store):
    put_object(store, WAL, 0, run_at(0, 0))
    put_object(store, WAL, 1, run_at(1, 1, count=2))
    put_object(store, WAL, 2, run_at(3, 2))
    assert offsets(store, 2) == [(0, 1), (1, 3)]
    assert offsets(store, 3) == [(0, 1), (1, 3), (3, 4)]


def test_only_wanted_partitions_and_epochs_are_kept(store):
    put_object(store, WAL, 0, run_at(0, 0), run_at(7, 0, partition=1), run_at(1, 0, epoch=2))
    assert offsets(store, 1) == [(0, 1)]
    assert offsets(store, 1, (0, 2)) == [(0, 1), (1, 2)]
    assert offsets(store, 1, (0,), (TOPIC_ID, 1)) == [(7, 8)]
    assert offsets(store, 1, (0,), (b"u" * 16, 0)) == []


def test_merged_objects_come_before_the_numbers_that_are_left(store):
    put_object(store, WAL, 2, run_at(2, 2))
    first = put_merged(store, WAL, 0, 1, run_at(0, 0))
    put_merged(store, WAL, 1, 2, run_at(1, 1), mark_number=1, merged=[first])
    assert offsets(store, 3) == [(0, 1), (1, 2), (2, 3)]


@pytest.mark.parametrize("footer_bytes", ["little", "much"])
def test_of_a_large_object_the_end_alone_is_read(store, monkeypatch, footer_bytes):
    monkeypatch.setattr(wal_index, "WHOLE_BYTES", 100)
    monkeypatch.setattr(wal_index, "END_BYTES", 20 if footer_bytes == "much" else 4096)
    put_merged(store, WAL, 0, 1, run_at(0, 0))
    index = in_full(index_of(access_to(store), WAL, 1, {PLACE: [0]}))
    (found,) = index[PLACE, 0]
    assert found.data is None
    assert store.asked.count(found.key) == (2 if footer_bytes == "much" else 1)


def test_a_large_number_is_read_whole_and_not_kept_and_no_list_has_it(store, monkeypatch):
    monkeypatch.setattr(wal_index, "WHOLE_BYTES", 100)
    listed = []
    monkeypatch.setattr(
        store,
        "list",
        lambda prefix, done, limit=None: listed.append(prefix) or ReadyStore.list(store, prefix, done, limit),
    )
    put_object(store, WAL, 0, run_at(0, 0))
    (found,) = in_full(index_of(access_to(store), WAL, 1, {PLACE: [0]}))[PLACE, 0]
    assert (found.data, store.asked, WAL.folder in listed) == (None, [found.key], False)


def test_a_small_object_is_read_once_and_its_runs_kept(store):
    put_object(store, WAL, 0, run_at(0, 0))
    index = in_full(index_of(access_to(store), WAL, 1, {PLACE: [0]}))
    (found,) = index[PLACE, 0]
    assert found.run.check(found.data)
    assert store.asked == [found.key]


def merging(store):
    """Number 0 is merged just when it is read for the first time."""

    def before(name):
        if name == key(WAL.folder, 0) and name in store.objects:
            put_merged(store, WAL, 0, 1, run_at(0, 0))

    store.before_read = before


@pytest.mark.parametrize("whole_bytes", [10, 1 << 20])
def test_a_number_that_is_merged_meanwhile_is_found_by_the_new_mark(store, monkeypatch, whole_bytes, caplog):
    monkeypatch.setattr(wal_index, "WHOLE_BYTES", whole_bytes)
    put_object(store, WAL, 0, run_at(0, 0))
    merging(store)
    assert offsets(store, 1) == [(0, 1)]
    assert not caplog.records


def test_a_footer_that_goes_while_it_is_read_is_a_missing_object(store, monkeypatch):
    monkeypatch.setattr(wal_index, "WHOLE_BYTES", 10)
    monkeypatch.setattr(wal_index, "END_BYTES", 20)
    put_object(store, WAL, 0, run_at(0, 0))
    asked = []

    def before(name):
        asked.append(name)
        if asked.count(key(WAL.folder, 0)) == 2 and name in store.objects:
            put_merged(store, WAL, 0, 1, run_at(0, 0))

    store.before_read = before
    assert offsets(store, 1) == [(0, 1)]


def test_a_void_fence_sends_the_reader_to_the_newest_mark(store):
    store.objects[key(WAL.folder, 0)] = Fence(WAL, 0, 3, b"f" * 16).encode()

    def before(name):
        if name == key(WAL.folder, 0):
            put_merged(store, WAL, 0, 1, run_at(0, 0))
            store.objects[name] = Fence(WAL, 0, 3, b"f" * 16).encode()

    store.before_read = before
    assert offsets(store, 1) == [(0, 1)]


def test_an_object_that_the_newest_mark_needs_and_that_is_missing_is_a_loss(store, caplog):
    put_object(store, WAL, 0, run_at(0, 0))
    put_object(store, WAL, 2, run_at(2, 2))
    with caplog.at_level(logging.ERROR):
        assert offsets(store, 3) == [(0, 1), (2, 3)]
    assert [one.message for one in caplog.records if "is lost" in one.message]
    assert key(WAL.folder, 1) in caplog.text


def test_a_damaged_object_costs_its_own_batches_only(store, caplog):
    put_object(store, WAL, 0, run_at(0, 0))
    put_object(store, WAL, 1, run_at(1, 1))
    store.objects[key(WAL.folder, 0)] = store.objects[key(WAL.folder, 0)][:-3] + b"!!!"
    assert offsets(store, 2) == [(1, 2)]
    assert "its batches are lost" in caplog.text


def test_an_object_of_another_wal_is_not_believed(store, caplog):
    other = Wal(3, 4)
    put_object(store, other, 0, run_at(0, 0))
    store.objects[key(WAL.folder, 0)] = store.objects[key(other.folder, 0)]
    assert offsets(store, 1) == []
    assert "an object of 3-4" in caplog.text


def merged_key(store):
    return next(name for name in store.objects if name.startswith(WAL.merged_folder))


def test_a_merged_object_that_is_not_there_is_a_loss(store, caplog):
    put_merged(store, WAL, 0, 1, run_at(0, 0))
    del store.objects[merged_key(store)]
    assert offsets(store, 1) == []
    assert "is lost" in caplog.text


def test_a_large_merged_object_that_is_damaged_costs_its_own_batches_only(store, monkeypatch, caplog):
    monkeypatch.setattr(wal_index, "WHOLE_BYTES", 10)
    put_merged(store, WAL, 0, 1, run_at(0, 0))
    put_object(store, WAL, 1, run_at(1, 1))
    name = merged_key(store)
    store.objects[name] = store.objects[name][:-3] + b"!!!"
    assert offsets(store, 2) == [(1, 2)]
    assert "its batches are lost" in caplog.text


@pytest.mark.parametrize("reads", [1, 2])
def test_a_large_merged_object_that_goes_while_it_is_read_is_a_loss(store, monkeypatch, caplog, reads):
    monkeypatch.setattr(wal_index, "WHOLE_BYTES", 10)
    monkeypatch.setattr(wal_index, "END_BYTES", 20)
    put_merged(store, WAL, 0, 1, run_at(0, 0))
    name = merged_key(store)

    def before(asked):
        if asked == name and store.asked.count(name) == reads - 1:
            store.objects.pop(name, None)

    store.before_read = before
    assert offsets(store, 1) == []
    assert "is lost" in caplog.text


def test_objects_that_are_given_up_are_on_record(store):
    access, other = access_to(store), Wal(3, 4)
    put_object(store, other, 0, run_at(0, 0))
    store.objects[key(WAL.folder, 1)] = store.objects[key(other.folder, 0)]
    put_object(store, WAL, 2, run_at(2, 2))
    in_full(index_of(access, WAL, 3, {PLACE: [0]}))
    assert access.given_up == {key(WAL.folder, 0), key(WAL.folder, 1)}
