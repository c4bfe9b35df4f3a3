"""A whole prefix is verified."""

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.bucket.bucket_segment import described
from horolog.broker.bucket.bucket_state import BucketState
from horolog.broker.bucket.manifest import Manifest
from horolog.broker.bucket.names import LOG, SegmentName, key, segments
from horolog.broker.cluster.cluster_state import TopicsDeleted
from horolog.broker.log.integrity import Contents
from horolog.broker.prefix.journal_check import check_journal
from horolog.broker.prefix.prefix_reader import PrefixReader
from horolog.broker.prefix.verifying import verify
from horolog.stores.memory_store import MemoryStore
from tests.support.prefix_objects import ENDED, ID, LIVES, NONCE, append, change, new_prefix


@pytest.fixture
def store():
    return new_prefix()


def shown(found):
    return [(one.kind.value, one.name) for one in found.findings]


def test_a_whole_prefix(store):
    seen = []
    found = verify(store, 2, seen.append)
    assert (found.cluster_id, found.journal_entries, found.topics, found.partitions) == ("c1", 5, 1, 2)
    assert (found.findings, found.is_whole) == ((), True)
    assert len(seen) == len(list(store.list()))  # each object once


def test_lost_records_are_named_by_their_partition(store):
    change(store, key(ENDED.folder, 2), None)
    found = verify(store)
    assert shown(found) == [("missing", key(ENDED.folder, 2)), ("missing", "t-0"), ("missing", "t-1")]
    assert not found.is_whole
    assert found.findings[1].reason == "offsets 2 to 2 are in no object"


def test_records_below_the_start_are_not_missed(store):
    change(store, ENDED.merged(b"m%07d%08d" % (0, 2)), None)
    assert ("missing", "t-0") not in shown(verify(store))


def test_records_in_segments_are_not_missed_in_logs(store):
    """The name of a segment is enough to know that its records are no longer in WALs; that it is gone is a finding of its own."""
    contents = Contents(100, 4, 5, 3, 5, 4)
    segment = described(segments(ID, 0), SegmentName(1, 0, NONCE), contents, 5)
    one = Manifest(ID, 0, 2, 1, 2, NONCE, (segment,))
    store.create(one.key, one.encode())
    change(store, key(ENDED.folder, 2), None)
    change(store, ENDED.merged(b"m%07d%08d" % (0, 2)), None)
    assert ("missing", "t-0") not in shown(verify(store))
    assert ("missing", segment.meta_key) in shown(verify(store))


def test_leftovers_are_no_loss(store):
    store.create("check/1/x", b"test")
    store.create("somebody/s", b"file")
    store.create("wal/no wal/1", b"file")
    store.create("wal/3-9/x", b"file")
    found = verify(store)
    assert shown(found) == [("left over", "check"), ("left over", "somebody/s")]
    assert found.is_whole


def test_a_prefix_that_no_broker_has_used():
    store = MemoryStore(ManualClock(0))
    assert verify(store) is None
    store.create("check/1/x", b"test")
    assert verify(store) is None


def test_a_journal_that_is_gone(store):
    for one in list(store.list(LOG)):
        store.delete(one.key)
    assert ("missing", key(LOG, 0)) in shown(verify(store))


def test_what_a_broker_removes_meanwhile_is_not_missing(store):
    """A topic is deleted while the prefix is read."""
    whole, with_topic = store.get, check_journal(PrefixReader(store, 1)).state
    assert isinstance(with_topic, BucketState)

    def get(name):
        if name == key(LIVES.folder, 0):
            store.get = whole
            append(store, with_topic, TopicsDeleted(("t",)))
            store.delete(key(LIVES.folder, 1))
        return whole(name)

    store.get = get
    found = verify(store, 1)
    assert (found.journal_entries, found.topics) == (6, 0)
