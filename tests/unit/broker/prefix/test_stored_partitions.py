"""Partitions of a prefix with the segments that their newest manifests name."""

import random
from dataclasses import replace
from types import SimpleNamespace

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.bucket.bucket_state import BucketState
from horolog.broker.bucket.manifest import Manifest, Page
from horolog.broker.bucket.manifest_pages import PageContent
from horolog.broker.bucket.names import SegmentName, key, manifests
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.on_record.cluster_file import StoredTopic
from horolog.broker.prefix import stored_partitions as module
from horolog.broker.prefix.prefix_reader import PrefixReader
from horolog.broker.prefix.stored_partitions import StoredPartition, newest_manifest, stored_partitions
from horolog.stores.memory_store import MemoryStore
from tests.support.bucket_segments import filled, upload
from tests.support.prefix_objects import NONCE
from tests.support.shipping import TOPIC_ID

STATE = BucketState(topics={"t": StoredTopic("t", TOPIC_ID, 2, {}), "a": StoredTopic("a", b"a" * 16, 1, {})})
PLACE = TOPIC_ID, 0


@pytest.fixture(scope="module")
def segments():
    return tuple(upload(filled(random.Random(1)), SimpleNamespace(objects={})))


@pytest.fixture
def store():
    return MemoryStore(ManualClock(0))


@pytest.fixture
def reader(store):
    with PrefixReader(store, 2) as made:
        yield made


def put(store, number, segments=(), start_offset=0, pages=()):
    one = Manifest(TOPIC_ID, 0, number, 0, start_offset, NONCE, tuple(segments), tuple(pages))
    store.create(one.key, one.encode())
    return one


def page_of(segments):
    """A page with these segments, and the object that holds them."""
    name = SegmentName(0, segments[0].base_offset, NONCE)
    size_bytes = sum(one.contents.size_bytes for one in segments)
    return Page(name, segments[-1].next_offset, len(segments), size_bytes), PageContent(TOPIC_ID, 0, NONCE, segments)


def test_partitions_by_topic_and_index(store, reader, segments):
    put(store, 0, segments[:1])
    put(store, 1, segments, segments[1].base_offset + 1)
    found = stored_partitions(reader, STATE, lambda *_: True)
    assert found == [
        StoredPartition("a", b"a" * 16, 0, 0),
        StoredPartition("t", TOPIC_ID, 0, segments[1].base_offset + 1, segments[1:]),
        StoredPartition("t", TOPIC_ID, 1, 0),
    ]


def test_nothing_is_read_for_others(store, reader, segments):
    put(store, 0, segments)
    reader.numbers = None  # it would be asked for
    assert [one.segments for one in stored_partitions(reader, STATE, lambda *_: False)] == [(), (), ()]


def test_a_manifest_that_is_replaced_meanwhile(store, reader, segments):
    put(store, 0, segments[:1])
    newer = put(store, 1, segments)
    real, numbers = reader.numbers, [{0: 1}]
    reader.numbers = lambda folder: numbers.pop() if numbers else real(folder)
    store.delete(key(manifests(*PLACE), 0))
    assert newest_manifest(reader, PLACE) == newer


def test_segments_in_pages(store, reader, segments):
    page, content = page_of(segments[:2])
    made = put(store, 0, segments[2:], pages=[page])
    store.create(page.name.page_key(made.folder), content.encode())
    assert stored_partitions(reader, STATE, lambda topic, _: topic == "t")[1].segments == segments


def test_a_page_that_is_missing(store, reader, segments, monkeypatch):
    page, _ = page_of(segments[:2])
    put(store, 0, segments[2:], pages=[page])
    with pytest.raises(FormatError, match="names a page that is missing"):
        stored_partitions(reader, STATE, lambda *_: True)
    newer = replace(put(store, 1, segments[2:]), number=1)
    found = [newer, Manifest(TOPIC_ID, 0, 0, 0, 0, NONCE, segments[2:], (page,))]
    monkeypatch.setattr(module, "newest_manifest", lambda _, place: found.pop() if place == PLACE else None)
    assert stored_partitions(reader, STATE, lambda *_: True)[1].segments == segments[2:]


@pytest.mark.parametrize("is_page", [True, False])
def test_what_is_damaged_is_named(store, reader, segments, is_page):
    page, _ = page_of(segments[:2])
    made = put(store, 0, segments[2:], pages=[page])
    name = page.name.page_key(made.folder) if is_page else made.key
    store.delete(name)
    store.create(name, b"x")
    with pytest.raises(FormatError, match=f"^{name}: "):
        stored_partitions(reader, STATE, lambda *_: True)
