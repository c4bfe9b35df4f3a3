"""The newest manifest of each partition, also while its leader supersedes and removes it."""

import pytest

from horolog.broker.bucket.covered import NOTHING, Covered
from horolog.broker.bucket.manifest import Manifest
from horolog.broker.bucket.manifest_reader import StoredManifests, newest_manifest, remove_manifests
from horolog.broker.bucket.names import Wal
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.bucket.seams import Opening, Stretch
from tests.support.shipping import TOPIC_ID, ReadyStore, access_to, in_full

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


def test_no_segments_are_named():
    with pytest.raises(FormatError, match="4 bytes"):
        StoredManifests(access_to(ReadyStore())).decode_meta(b"meta")


def test_those_of_a_partition_are_removed():
    store = ReadyStore()
    put(store, 0, 5)
    put(store, 1, 5)
    other = put(store, 0, 5, partition=1)
    in_full(remove_manifests(access_to(store), PLACE))
    assert list(store.objects) == [other.key]
