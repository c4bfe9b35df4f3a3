"""The newest manifest of each partition, also while its leader supersedes and removes it."""

import random

import pytest

from horolog.broker.bucket import manifest_pages
from horolog.broker.bucket.covered import NOTHING, Covered
from horolog.broker.bucket.manifest import Manifest
from horolog.broker.bucket.manifest_pages import turned
from horolog.broker.bucket.manifest_reader import StoredManifests, newest_manifest, readable, remove_manifests
from horolog.broker.bucket.names import Wal
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.bucket.seams import Opening, Stretch
from horolog.broker.log.indexes import AbortedTransaction, transaction_index
from horolog.broker.log.partition import append_marker
from horolog.protocol.records.control import Marker
from tests.support import transactional
from tests.support.bucket_segments import filled, upload
from tests.support.log_model import NEW, NOW_MS
from tests.support.shipping import TOPIC_ID, ReadyStore, access_to, in_full, new_partition

PLACE = TOPIC_ID, 0


def put(store, number, start, partition=0):
    made = Manifest(TOPIC_ID, partition, number, 1, start, b"n" * 16)
    store.objects[made.key] = made.encode()
    return made


def newest(store, place=PLACE):
    return in_full(newest_manifest(access_to(store), place))


def test_the_newest_manifest_is_found():
    store = ReadyStore()
    put(store, 0, 5)
    last, tenth = put(store, 1, 9), put(store, 10, 7, partition=1)
    store.objects[f"manifest/{TOPIC_ID.hex()}/0/notes"] = b"of an operator"
    assert [newest(store, (TOPIC_ID, index)) for index in range(3)] == [last, tenth, None]


def test_one_that_is_superseded_meanwhile_is_not_missed():
    store = ReadyStore()
    old, new = put(store, 1, 5), Manifest(TOPIC_ID, 0, 2, 1, 8, b"m" * 16)

    def supersede(_):
        if store.objects.pop(old.key, None) is not None:
            store.objects[new.key] = new.encode()

    store.before_read = supersede
    assert newest(store) == new


def test_one_that_is_damaged_is_named():
    store = ReadyStore()
    made = put(store, 1, 5)
    store.objects[made.key] = b"torn"
    with pytest.raises(FormatError, match=made.key):
        newest(store)


def test_those_that_are_removed_meanwhile_are_none():
    store = ReadyStore()
    put(store, 1, 5)
    store.before_read = lambda _: store.objects.clear()
    assert newest(store) is None


def test_a_partition_that_others_have_led_starts_where_they_have_said():
    store = ReadyStore()
    stretches = Stretch(0, Wal(1, 1), 5), Stretch(1, Wal(2, 2))
    opening = Opening("t", TOPIC_ID, 0, None, stretches)
    found = StoredManifests(access_to(store))
    assert in_full(found.newest(opening)) is NOTHING
    made = put(store, 0, 5)
    assert in_full(found.newest(opening)) == Covered(5, manifest=made)
    assert in_full(found.newest(opening._replace(lineage=stretches[:1]))) is NOTHING
    assert "StoredManifests" in repr(found)


OPENING = Opening("t", TOPIC_ID, 0, None, (Stretch(0, Wal(1, 1), 5), Stretch(1, Wal(2, 2))))


def with_segments(store, start=0, number=3):
    """A partition whose oldest segments lie in a page."""
    local = filled(random.Random(1))
    described = upload(local, store)
    long = Manifest(TOPIC_ID, 0, number, 0, start, b"n" * 16, tuple(described))
    made, content = turned(long, b"p" * 16)
    store.objects[made.pages[0].name.page_key(made.folder)] = content.encode()
    store.objects[made.key] = made.encode()
    return local, described, made


@pytest.fixture
def short_manifests(monkeypatch):
    monkeypatch.setattr(manifest_pages, "MOST_SEGMENTS", 1)
    monkeypatch.setattr(manifest_pages, "PAGE_SEGMENTS", 2)


@pytest.mark.usefixtures("short_manifests")
def test_segments_are_those_of_pages_and_of_the_manifest():
    store = ReadyStore()
    _, described, made = with_segments(store)
    found = StoredManifests(access_to(store))
    covered = in_full(found.newest(OPENING))
    assert (covered.segments, covered.manifest, covered.epochs) == (tuple(described), made, ((0, 0),))
    meta = found.decode_meta(store.objects[described[-1].meta_key])
    assert (covered.producers, covered.batches) == (meta.producers, meta.batches)
    asked = len(store.asked)
    assert in_full(found.newest(OPENING, covered)) is covered
    assert len(store.asked) == asked, "a number is made once"


@pytest.mark.usefixtures("short_manifests")
def test_segments_of_a_page_that_end_before_the_start_are_left_out():
    store = ReadyStore()
    _, described, _ = with_segments(store, start=described_end(0))
    covered = in_full(StoredManifests(access_to(store)).newest(OPENING))
    assert covered.segments == tuple(described[1:])


def described_end(number):
    return upload(filled(random.Random(1)), ReadyStore())[number].next_offset


@pytest.mark.usefixtures("short_manifests")
def test_segments_of_a_page_that_is_lost_are_kept_and_producers_of_a_meta_object_are_not_known(caplog):
    store = ReadyStore()
    _, described, made = with_segments(store)
    store.objects[described[-1].meta_key] = b"damaged"
    del store.objects[made.pages[0].name.page_key(made.folder)]
    covered = in_full(StoredManifests(access_to(store)).newest(OPENING))
    first, *rest = covered.segments
    assert (rest, covered.producers) == (described[2:], b"")
    assert (first.base_offset, first.next_offset) == (described[0].base_offset, described[1].next_offset)
    assert "(restore it, then restart this broker): the store does not have it" in caplog.text
    assert f"{described[-1].meta_key} cannot be read" in caplog.text
    del store.objects[described[-1].meta_key]
    assert in_full(StoredManifests(access_to(store)).newest(OPENING)).producers == b""


@pytest.mark.usefixtures("short_manifests")
def test_manifests_are_listed_once_if_all_that_the_newest_names_is_there(monkeypatch):
    store, listed = ReadyStore(), []
    with_segments(store)
    monkeypatch.setattr(
        store,
        "list",
        lambda prefix, done, limit=None: listed.append(prefix) or ReadyStore.list(store, prefix, done, limit),
    )
    in_full(StoredManifests(access_to(store)).newest(OPENING))
    assert listed == [f"manifest/{TOPIC_ID.hex()}/0"]


def test_aborted_transactions_of_the_last_segment_are_known():
    store, local = ReadyStore(), new_partition()
    local.append(transactional.batch([b"v"], 7, 0, 0), NOW_MS, produce_version=NEW)
    append_marker(local, 7, 0, Marker(False, 0), NOW_MS)
    local.flush()
    local.roll(NOW_MS)
    local.shipped(local.written_end)
    made = Manifest(TOPIC_ID, 0, 0, 0, 0, b"n" * 16, tuple(upload(local, store)))
    store.objects[made.key] = made.encode()
    covered = in_full(StoredManifests(access_to(store)).newest(OPENING))
    assert transaction_index.decode(covered.transactions, 0) == [AbortedTransaction(7, 0, 1, 2)]


def test_objects_that_a_newer_manifest_has_removed_are_no_loss():
    store = ReadyStore()
    described = upload(filled(random.Random(1)), store)
    old = Manifest(TOPIC_ID, 0, 0, 0, 0, b"n" * 16, tuple(described[:1]))
    store.objects[old.key] = old.encode()
    new = Manifest(TOPIC_ID, 0, 1, 0, described[0].next_offset, b"m" * 16, tuple(described[1:]))

    def before(name):
        if name == described[0].meta_key:
            del store.objects[name]
            store.objects[new.key] = new.encode()

    store.before_read = before
    covered = in_full(StoredManifests(access_to(store)).newest(OPENING))
    assert (covered.segments, covered.manifest) == (tuple(described[1:]), new)


def test_those_of_a_partition_are_removed():
    store = ReadyStore()
    put(store, 0, 5)
    put(store, 1, 5)
    other = put(store, 0, 5, partition=1)
    in_full(remove_manifests(access_to(store), PLACE))
    assert list(store.objects) == [other.key]


def test_a_manifest_that_cannot_be_read_is_logged_and_leaves_nothing_known(caplog):
    store = ReadyStore()
    made = put(store, 0, 5)
    found = StoredManifests(access_to(store))
    assert in_full(readable(found, OPENING)) == Covered(5, manifest=made)
    store.objects[made.key] = b"damage"
    assert in_full(readable(found, OPENING)) is None
    assert "t-0 is not opened, since its newest manifest cannot be read" in caplog.text
