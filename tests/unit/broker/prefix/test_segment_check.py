"""Segments in the bucket: those that manifests name are whole, and others are left over."""

import random
from dataclasses import replace
from types import SimpleNamespace

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.bucket import manifest_pages
from horolog.broker.bucket.manifest import Manifest, Page
from horolog.broker.bucket.manifest_pages import PageContent
from horolog.broker.bucket.names import SegmentName
from horolog.broker.prefix.findings import Finding
from horolog.broker.prefix.prefix_reader import PrefixReader
from horolog.broker.prefix.segment_check import check_segments, unnamed
from horolog.stores.memory_store import MemoryStore
from tests.support.bucket_segments import filled, upload
from tests.support.prefix_objects import NONCE, change
from tests.support.shipping import TOPIC_ID


@pytest.fixture(scope="module")
def uploaded():
    made = SimpleNamespace(objects={})
    segments = upload(filled(random.Random(1)), made)
    return made.objects, tuple(segments)


@pytest.fixture
def store(uploaded):
    made = MemoryStore(ManualClock(0))
    for name, data in uploaded[0].items():
        made.create(name, data)
    return made


@pytest.fixture
def manifest(uploaded):
    return Manifest(TOPIC_ID, 0, 0, 0, 0, NONCE, uploaded[1])


def shown(store, *manifests):
    with PrefixReader(store, 2) as reader:
        found = check_segments(reader, manifests)
        findings = [*found.findings, *unnamed(reader.listed(""), found.may_name)]
    return [(one.kind.value, one.name) if isinstance(one, Finding) else one for one in findings]


def test_whole_segments(store, manifest):
    assert len(manifest.segments) > 2
    assert shown(store, manifest) == []


def test_a_log_that_is_gone_shorter_or_changed(store, manifest):
    name = manifest.segments[1].log_key
    data = store.get(name)
    change(store, name, None)
    assert shown(store, manifest) == [("missing", name)]
    change(store, name, data[:-1])
    assert shown(store, manifest) == [("damaged", name)]
    change(store, name, data[:-1] + bytes([data[-1] ^ 1]))
    assert shown(store, manifest) == [("damaged", name)]


def test_a_meta_that_is_gone_damaged_or_of_another_segment(store, manifest):
    name, other = manifest.segments[1].meta_key, manifest.segments[0].meta_key
    change(store, name, None)
    assert shown(store, manifest) == [("missing", name)]
    change(store, name, b"damage")
    assert shown(store, manifest) == [("damaged", name)]
    change(store, name, store.get(other))
    assert shown(store, manifest) == [("damaged", name)]


def test_expired_segments_may_be_gone(store, manifest):
    first, second = manifest.segments[:2]
    change(store, first.log_key, None)
    assert shown(store, replace(manifest, start_offset=second.base_offset)) == []


def test_objects_that_no_manifest_names(store, manifest):
    assert shown(store) == [("left over", "data")]
    assert shown(store, replace(manifest, segments=manifest.segments[1:])) == [("left over", "data")]


def test_pages(store, manifest):
    first, *rest = manifest.segments
    name = SegmentName(0, first.base_offset, NONCE)
    page = Page(name, first.next_offset, 1, first.contents.size_bytes)
    paged = replace(manifest, segments=tuple(rest), pages=(page,))
    page_key = name.page_key(manifest.folder)
    found = shown(store, paged)
    assert found == [("missing", page_key)], "what it may name is not left over"
    stray = SegmentName(0, rest[0].base_offset, b"s" * 16).log_key(manifest.folder)
    change(store, stray, b"of an upload")
    assert shown(store, paged) == [("missing", page_key), ("left over", "data")]
    change(store, stray, None)
    content = PageContent(TOPIC_ID, 0, NONCE, (first,))
    change(store, page_key, content.encode())
    assert shown(store, paged) == []
    change(store, first.log_key, None)
    assert shown(store, paged) == [("missing", first.log_key)]
    change(store, page_key, replace(content, segments=tuple(rest)).encode())
    assert ("damaged", page_key) in shown(store, paged)
    assert manifest_pages.decode(store.get(page_key)).segments == tuple(rest)
