"""Which readers a leader sends to their rack, and whom a broker serves of a partition that it does not lead."""

from types import SimpleNamespace

import pytest

from horolog.broker.bucket.rack_aware_selector import RackAwareSelector
from horolog.broker.cluster.placement import Reader
from horolog.protocol.errors import ErrorCode
from tests.support.log_model import small_config
from tests.support.shipping import new_partition
from tests.unit.broker.bucket.bucket_states import ID, after, created, registered
from tests.unit.broker.bucket.test_replica_selection import NONCE, Contents, Manifest, SegmentName, described

STATE = after(registered(1, rack="a"), registered(2, rack="b"), created(partitions=1))
SEGMENT = described("folder", SegmentName(0, 10, NONCE), Contents(9, 20), 0)
MANIFEST = Manifest(ID, 0, 3, 0, 0, NONCE, (SEGMENT,))


class Followed:
    def find(self, topic, index, epoch, offset, *, committed):
        return topic, index, epoch, offset, committed


@pytest.fixture
def selector():
    return RackAwareSelector(1, "a", lambda: STATE, lambda partition: MANIFEST, Followed(), lambda: 0.0)


def reader(rack, host="host"):
    return Reader(rack, None, host)


def test_a_reader_of_another_rack_is_sent_there_once(selector):
    partition = new_partition()
    assert selector.preferred(partition, 5, reader("b")) == 2
    assert selector.preferred(partition, 5, reader("b")) is None, "it came back"
    assert selector.preferred(partition, 11, reader("b", "other")) is None, "less than a segment is there"
    assert selector.preferred(partition, 5, reader("a")) is None
    assert selector.preferred(partition, 5, reader("c")) is None
    topic = SimpleNamespace(name="t", id=ID, config=small_config())
    assert list(selector.readers(topic, 0)) == [3 - STATE.leader(ID, 0)]
    assert "in rack a" in repr(selector)


def test_compacted_topics_are_read_from_their_leaders(selector):
    partition = new_partition()
    partition.configure(small_config(compact=True))
    assert selector.preferred(partition, 5, reader("b")) is None
    topic = SimpleNamespace(name="t", id=ID, config=partition.config)
    refused = selector.followed(topic, 0, 5, reader("a"), committed=True)
    assert list(selector.readers(topic, 0)) == []
    assert refused == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_readers_of_its_rack_are_served_in_the_epoch_of_the_leader(selector):
    topic = SimpleNamespace(name="t", id=ID, config=small_config())
    assert selector.followed(topic, 0, 5, reader("a"), committed=True) == (topic, 0, 0, 5, True)
    assert selector.followed(topic, 0, 5, reader("b"), committed=True) == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_reader_that_comes_back_instead_of_going_to_the_leader_gets_its_name():
    topic = SimpleNamespace(name="t", id=ID, config=small_config())
    leader = STATE.leader(ID, 0)
    other = RackAwareSelector(3 - leader, "x", lambda: STATE, lambda _: MANIFEST, Followed(), lambda: 0.0)
    assert other.leader_for(topic, 0, 20, reader("x")) is None, "the error says enough to most clients"
    assert other.leader_for(topic, 0, 20, reader("x", "elsewhere")) is None
    assert other.leader_for(topic, 0, 20, reader("x")) == leader
    assert [other.leader_for(topic, 0, 20, reader("y")) for _ in range(2)] == [None, None], "another rack"
    compacted = SimpleNamespace(name="c", id=ID, config=small_config(compact=True))
    assert [other.leader_for(compacted, 0, 20, reader("x")) for _ in range(2)] == [None, None]
    itself = RackAwareSelector(leader, "x", lambda: STATE, lambda _: MANIFEST, Followed(), lambda: 0.0)
    assert [itself.leader_for(topic, 0, 20, reader("x")) for _ in range(2)] == [None, None]
