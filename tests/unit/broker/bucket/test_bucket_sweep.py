"""Sweeps remove what nothing names, and leave fences, the newest mark, young objects and those of later leaders."""

import pytest

from horolog.broker.base.answers import run
from horolog.broker.bucket import bucket_sweep
from horolog.broker.bucket.bucket_sweep import Named, left_over, remove_all, sweep_topics, sweep_wals
from horolog.broker.bucket.fence import Fence
from horolog.broker.bucket.mark import decode
from horolog.broker.bucket.names import SegmentName, Wal, key, manifests, number_of, segments
from horolog.broker.bucket.store_access import StoreAccess
from horolog.stores.faults import StoreRefusal
from horolog.stores.object_store import Stored
from tests.support.shipping import TOPIC_ID, ReadyStore, access_to, in_full, put_merged, put_object, run_at

FOLDER = segments(TOPIC_ID, 0)
ONE, TWO = Wal(1, 10), Wal(2, 20)
OTHER = b"o" * 16


def stored(epoch, modified_ms, kind="log"):
    name = SegmentName(epoch, 0, b"%16d" % modified_ms)
    return Stored({"log": name.log_key, "page": name.page_key}[kind](FOLDER), 9, modified_ms)


def test_what_is_named_young_foreign_or_of_a_later_leader_stays():
    named, old, page, young, later = stored(1, 1), stored(3, 2), stored(2, 3, "page"), stored(1, 10), stored(4, 4)
    notes = Stored(f"{FOLDER}/notes", 9, 0)
    assert left_over([named, old, page, young, later, notes], Named({named.key}), 3, 10) == [old.key, page.key]


def test_what_a_page_may_name_that_cannot_be_read_stays():
    inside, behind = (SegmentName(1, base, b"x" * 16).log_key(FOLDER) for base in (7, 8))
    objects = [Stored(key, 9, 0) for key in (inside, behind)]
    assert left_over(objects, Named(unread=[range(8)]), 1, 10) == [behind]


def wals(store, *spent):
    asked = []

    def find(found):
        asked.append(set(found))
        return spent

    in_full(sweep_wals(access_to(store), find, lambda: b"n" * 16))
    return asked[0]


def test_of_a_wal_that_is_spent_its_fences_and_a_mark_stay():
    store = ReadyStore()
    put_merged(store, ONE, 0, 3, run_at(0, 0))
    for number in (3, 4):
        put_object(store, ONE, number, run_at(number, number, size=5_000))
    put_object(store, ONE, 5, run_at(5, 5))
    fence = key(ONE.folder, 6)
    store.objects[fence] = Fence(ONE, 6, 2, b"f" * 16).encode()
    store.objects[f"{ONE.folder}/notes"] = store.objects["wal/notes"] = b"of an operator"
    put_object(store, TWO, 0, run_at(0, 0))
    kept = {one: data for one, data in store.objects.items() if "notes" in one or "2-20" in one}
    assert wals(store, ONE) == {ONE, TWO}
    mark = key(ONE.marks, 1)
    assert store.objects.keys() == {fence, mark, *kept}
    assert (decode(store.objects[mark]).upto, decode(store.objects[mark]).merged) == (6, ())
    before = dict(store.objects)
    wals(store, ONE)
    assert store.objects == before, "nothing is left to do"


def test_a_wal_without_a_mark_gets_one():
    store = ReadyStore()
    put_object(store, ONE, 0, run_at(0, 0))
    wals(store, ONE)
    assert list(store.objects) == [key(ONE.marks, 0)]


def small_objects_of_a_day(store, monkeypatch):
    """A WAL of many chunks, with two fences; the store notes how many objects a list had, and that a mark covers what goes."""
    monkeypatch.setattr(bucket_sweep, "NUMBERS_AT_ONCE", 100)
    for number in range(1_050):
        put_object(store, ONE, number, run_at(number, number))
    put_merged(store, ONE, 0, 20, run_at(0, 0))
    for number in (1_050, 1_051):
        store.objects[key(ONE.folder, number)] = Fence(ONE, number, 2, b"f" * 16).encode()
    for name in sorted(store.objects, reverse=True):  # a list is in no order
        store.objects[name] = store.objects.pop(name)
    listed, list_all, delete = [], store.list, store.delete

    def list_some(prefix, done, limit=None):
        list_all(prefix, lambda found: (listed.append(len(found)), done(found)), limit)

    def delete_marked(name, done):
        if name.startswith(f"{ONE.folder}/"):
            newest = decode(store.objects[max(one for one in store.objects if one.startswith(f"{ONE.marks}/"))])
            assert number_of(name) < newest.upto
        delete(name, done)

    store.list, store.delete = list_some, delete_marked
    return listed


def nothing_but_fences(store):
    fences = {key(ONE.folder, number) for number in (1_050, 1_051)}
    (mark,) = store.objects.keys() - fences
    return (decode(store.objects[mark]).upto, decode(store.objects[mark]).merged) == (1_050, ())


def test_a_wal_of_many_objects_is_removed_some_at_a_time(monkeypatch):
    store = ReadyStore()
    listed = small_objects_of_a_day(store, monkeypatch)
    wals(store, ONE)
    assert max(listed) == 100
    assert nothing_but_fences(store)


@pytest.mark.parametrize("answered", [0, 1, 95, 250, 1_031])
def test_a_broker_that_ends_in_between_leaves_the_rest_to_the_next(answered, monkeypatch):
    store = ReadyStore()
    small_objects_of_a_day(store, monkeypatch)
    delete, left = store.delete, [answered]

    def delete_some(name, done):
        if left[0]:
            left[0] -= 1
            delete(name, done)

    store.delete = delete_some
    run(sweep_wals(access_to(store), lambda _: [ONE], lambda: b"n" * 16))
    assert len(store.objects) > 3
    store.delete = delete
    wals(store, ONE)
    assert nothing_but_fences(store)


def test_a_wal_with_objects_that_the_store_does_not_delete_loses_all_others():
    store, pauses = ReadyStore(), []
    for number in range(3):
        put_object(store, ONE, number, run_at(number, number))
    put_merged(store, TWO, 0, 3, run_at(0, 0))
    delete, locked = store.delete, {key(ONE.folder, 1), *(one for one in store.objects if one.startswith("merged/"))}
    assert len(locked) == 2
    store.delete = lambda name, done: done(StoreRefusal("access denied")) if name in locked else delete(name, done)
    access = StoreAccess(store, lambda seconds, done: pauses.append(done))
    in_full(sweep_wals(access, lambda _: [ONE, TWO], lambda: b"n" * 16))
    in_full(sweep_wals(access, lambda _: [ONE, TWO], lambda: b"n" * 16))
    assert locked == {name for name in store.objects if not name.startswith("mark/")}
    locked.clear()
    pauses.pop()(None)
    assert not [name for name in store.objects if not name.startswith("mark/")]


def test_a_wal_that_another_broker_removes_is_left_to_it():
    store = ReadyStore()
    put_object(store, ONE, 0, run_at(0, 0))
    create = store.create
    other = b"not these bytes"
    store.create = lambda name, data, done: (store.objects.setdefault(name, other), create(name, data, done))
    wals(store, ONE)
    assert key(ONE.folder, 0) in store.objects


def test_topics_that_are_gone_lose_their_manifests_then_their_segments():
    store, removed = ReadyStore(), []
    delete = store.delete
    store.delete = lambda name, done: (removed.append(name), delete(name, done))
    gone = [f"{manifests(OTHER, 0)}/0", f"{segments(OTHER, 0)}/a.log"]
    kept = [f"{segments(TOPIC_ID, 0)}/a.log", "data/notes/x", f"data/{'x' * 32}/0"]
    store.objects = dict.fromkeys([*gone[::-1], *kept], b"")
    found = in_full(sweep_topics(access_to(store), lambda ids: [one for one in ids if one != TOPIC_ID], 1))
    assert found == removed == gone
    assert sorted(store.objects) == sorted(kept)


def test_young_objects_of_a_topic_that_is_not_known_yet_stay():
    store = ReadyStore()
    store.objects = {f"{segments(OTHER, 0)}/a.log": b""}
    assert in_full(sweep_topics(access_to(store), lambda ids: ids, 0)) == []


def test_an_object_that_the_store_refuses_to_delete_is_not_gone():
    store = ReadyStore()
    store.objects = {"a": b"", "b": b""}
    delete = store.delete
    store.delete = lambda name, done: done(StoreRefusal("held")) if name == "a" else delete(name, done)
    access = StoreAccess(store, lambda seconds, done: None)
    assert in_full(remove_all(access, ["a", "b"])) == ["b"]
    assert list(store.objects) == ["a"]
