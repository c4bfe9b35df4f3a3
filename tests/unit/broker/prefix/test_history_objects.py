"""The objects that are kept for restores alone."""

import random
from types import SimpleNamespace

import pytest

from horolog.broker.bucket.manifest import Manifest, Page
from horolog.broker.bucket.manifest_pages import PageContent
from horolog.broker.bucket.mark import WalMark
from horolog.broker.bucket.names import SegmentName, Wal, key, manifests, segments
from horolog.broker.cluster.cluster_state import TopicsDeleted
from horolog.broker.prefix.history_objects import history_objects
from horolog.broker.prefix.journal_check import check_journal
from horolog.broker.prefix.prefix_reader import PrefixReader
from tests.support.bucket_segments import filled, upload
from tests.support.prefix_objects import ENDED, FIRST, ID, LIVES, NONCE, append, change, new_prefix
from tests.support.shipping import TOPIC_ID

SPENT = Wal(3, 4)
"""Of a broker that no lineage names; its incarnation is below the number of entries."""


@pytest.fixture
def store():
    return new_prefix()


@pytest.fixture(scope="module")
def uploaded():
    made = SimpleNamespace(objects={})
    return tuple(upload(filled(random.Random(1)), made))


def found(store):
    with PrefixReader(store, 2) as reader:
        state = check_journal(reader).state
        return sorted(one.key for one in history_objects(reader, state, list(store.list())))


SUPERSEDED = key(manifests(*FIRST), 0)
"""The prefix has two manifests of one partition."""


def test_superseded_manifests(store):
    assert found(store) == [SUPERSEDED]


def test_numbers_below_the_newest_mark_and_what_it_does_not_name(store):
    kept = LIVES.merged(b"k" * 16)
    store.create(kept, b"merged")
    store.create(LIVES.merged(NONCE), b"merged")
    for number, upto in ((0, 1), (1, 2)):
        store.create(key(LIVES.marks, number), WalMark(LIVES, number, upto, (b"k" * 16,), NONCE).encode())
    wanted = [key(LIVES.folder, 0), key(LIVES.folder, 1), LIVES.merged(NONCE), key(LIVES.marks, 0), SUPERSEDED]
    assert found(store) == sorted(wanted)


def test_a_mark_that_is_replaced_meanwhile(store):
    store.create(key(LIVES.marks, 1), WalMark(LIVES, 1, 1, (), NONCE).encode())
    get, gone = store.get, key(LIVES.marks, 0)
    store.create(gone, b"for a moment")
    store.delete(key(LIVES.marks, 1))

    def get_once(name):
        if name == gone:
            store.get = get
            store.delete(gone)
            store.create(key(LIVES.marks, 1), WalMark(LIVES, 1, 1, (), NONCE).encode())
        return get(name)

    store.get = get_once
    assert found(store) == sorted([SUPERSEDED, gone, key(LIVES.folder, 0)])


def test_what_a_damaged_mark_may_name_counts_as_in_use(store):
    change(store, key(ENDED.marks, 0), b"not a mark")
    store.create(ENDED.merged(NONCE), b"merged")
    assert found(store) == [SUPERSEDED]


def test_a_log_that_no_lineage_names_but_its_fence_and_mark(store):
    for number, size in ((0, 10), (1, 5_000), (2, 10)):
        store.create(key(SPENT.folder, number), bytes(size))
    for number in (0, 1):
        store.create(key(SPENT.marks, number), b"mark")
    store.create(SPENT.merged(NONCE), b"merged")
    store.create(f"{SPENT.folder}/notes", b"of an operator")
    wanted = [SPENT.merged(NONCE), key(SPENT.marks, 0), key(SPENT.folder, 0), key(SPENT.folder, 1), SUPERSEDED]
    assert found(store) == sorted(wanted)
    change(store, key(SPENT.folder, 2), bytes(5_000))
    assert key(SPENT.folder, 2) in found(store), "so large an object is no fence"


def test_a_log_of_a_broker_that_registers_meanwhile(store):
    store.create(key(Wal(3, 99).folder, 0), b"its first")
    assert found(store) == [SUPERSEDED]


def test_a_topic_that_is_deleted(store):
    with PrefixReader(store, 1) as reader:
        append(store, check_journal(reader).state, TopicsDeleted(("t",)))
    log = SegmentName(0, 0, NONCE).log_key(segments(*FIRST))
    store.create(log, b"log")
    assert {log, SUPERSEDED, key(manifests(*FIRST), 1)} <= set(found(store))


def test_segments_that_the_newest_manifest_does_not_name(store, uploaded):
    ours, theirs = segments(*FIRST), segments(TOPIC_ID, 0)
    made = [
        one._replace(log_key=one.log_key.replace(theirs, ours), meta_key=one.meta_key.replace(theirs, ours))
        for one in uploaded
    ]
    page_name = SegmentName(1, made[0].base_offset, NONCE)
    size_bytes = sum(one.contents.size_bytes for one in made[:1])
    page = Page(page_name, made[0].next_offset, 1, size_bytes)
    newest = Manifest(ID, 0, 2, 1, 2, NONCE, tuple(made[1:]), (page,))
    store.create(newest.key, newest.encode())
    store.create(page_name.page_key(ours), PageContent(ID, 0, NONCE, made[:1]).encode())
    for one in made:
        for name in (one.log_key, one.meta_key):
            store.create(name, b"x")
    old = SegmentName(0, made[0].base_offset, b"o" * 16).log_key(ours)
    coming = SegmentName(1, made[-1].next_offset, b"c" * 16).log_key(ours)
    for name in (old, coming, f"{ours}/notes"):
        store.create(name, b"x")
    superseded = [SUPERSEDED, key(manifests(*FIRST), 1)]
    assert found(store) == sorted([*superseded, old])
    change(store, page_name.page_key(ours), b"not a page")
    assert found(store) == []
    change(store, page_name.page_key(ours), None)
    assert found(store) == []


def test_a_partition_without_a_manifest_and_names_of_others(store):
    for name in ("data/notes", "data/00/x/y", "wal/notes/1", "manifest/zz/0/1", "notes"):
        store.create(name, b"x")
    for number in (0, 1):
        store.delete(key(manifests(*FIRST), number))
    store.create(SegmentName(0, 0, NONCE).log_key(segments(*FIRST)), b"x")
    assert found(store) == []
