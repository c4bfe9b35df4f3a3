"""`.meta` objects are read once, held against what the manifest says, and not all kept."""

import random
from types import SimpleNamespace

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.log.storage import FileMissing, StorageFault
from horolog.broker.prefix import meta_objects
from horolog.broker.prefix.meta_objects import MetaObjects
from horolog.broker.prefix.prefix_reader import PrefixReader
from horolog.stores.memory_store import MemoryStore
from tests.support.bucket_segments import filled, upload
from tests.support.prefix_objects import change
from tests.support.shipping import TOPIC_ID

PLACE = TOPIC_ID, 0


@pytest.fixture(scope="module")
def uploaded():
    made = SimpleNamespace(objects={})
    return tuple(upload(filled(random.Random(2)), made)), made.objects


@pytest.fixture
def segments(uploaded):
    return uploaded[0]


@pytest.fixture
def store(uploaded):
    made = MemoryStore(ManualClock(0))
    for name, data in uploaded[1].items():
        made.create(name, data)
    return made


@pytest.fixture
def asked():
    return []


@pytest.fixture
def metas(store, asked):
    with PrefixReader(store, 2) as reader:
        yield MetaObjects(reader, lambda name, _: asked.append(name))


def test_each_is_read_once(metas, segments, asked):
    assert metas.seal_of(segments[0]) is None
    metas.bring((PLACE, one) for one in segments)
    metas.bring((PLACE, one) for one in segments)
    assert [metas.get(PLACE, one).seal for one in segments] == [metas.seal_of(one) for one in segments]
    assert sorted(asked) == sorted(one.meta_key for one in segments)
    assert "have been read" in repr(metas)


def test_of_those_that_are_not_kept_the_seals_are(metas, segments, asked, monkeypatch):
    monkeypatch.setattr(meta_objects, "MOST_KEPT", 1)
    metas.bring([(PLACE, segments[0]), (PLACE, segments[1])])
    assert metas.seal_of(segments[0]) is not None
    metas.get(PLACE, segments[1])
    assert len(asked) == 2
    assert metas.get(PLACE, segments[0]).seal == metas.seal_of(segments[0])
    assert len(asked) == 3


def test_one_that_is_gone_damaged_or_of_another_segment(metas, segments, store):
    name, others = segments[0].meta_key, store.get(segments[1].meta_key)
    for data, kind, said in (
        (None, FileMissing, "the object is gone"),
        (b"x", StorageFault, name),
        (others, StorageFault, "it belongs to another segment"),
    ):
        change(store, name, data)
        with pytest.raises(kind, match=said):
            metas.get(PLACE, segments[0])
