"""OffsetForLeaderEpoch: where epochs ended, and which epoch a client may believe in."""

import pytest

from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.list_offsets import OffsetForLeaderPartition, OffsetForLeaderTopic
from tests.unit.broker.cluster.cluster_stand_ins import fill
from tests.unit.broker.handlers.stand_ins import StandIn

VERSIONS = range(5)


@pytest.fixture
def broker():
    broker = StandIn()
    log = broker.cluster.create_topic("t", 1).find(0)
    fill(log, 1, 2, 3)
    log.lead(1)
    fill(log, 4)
    return broker


def ask(broker, version, epoch, *, name="t", index=0, current=-1):
    asked = OffsetForLeaderPartition(partition=index, leader_epoch=epoch, current_leader_epoch=current)
    topics = [OffsetForLeaderTopic(topic=name, partitions=[asked])]
    (topic,) = broker.ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, version, topics=topics).topics
    (answer,) = topic.partitions
    assert (topic.topic, answer.partition) == (name, index)
    return answer.error_code, answer.leader_epoch if version >= 1 else None, answer.end_offset


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("epoch", "end"), [(0, 3), (1, 4), (5, -1), (-1, -1)])
def test_where_epochs_ended(broker, version, epoch, end):
    known = epoch if end >= 0 else -1
    assert ask(broker, version, epoch) == (0, known if version >= 1 else None, end)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("name", "index"), [("u", 0), ("t", 7)])
def test_unknown_places(broker, version, name, index):
    assert ask(broker, version, 0, name=name, index=index)[::2] == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


@pytest.mark.parametrize("version", VERSIONS[2:])
@pytest.mark.parametrize(
    ("current", "code"), [(1, 0), (0, ErrorCode.FENCED_LEADER_EPOCH), (9, ErrorCode.UNKNOWN_LEADER_EPOCH)]
)
def test_the_epoch_a_client_believes_in(broker, version, current, code):
    assert ask(broker, version, 0, current=current)[0] == code


def test_a_partition_that_is_offline(broker):
    broker.cluster.topics["t"].find(0).condition.go_offline("bad sector")
    assert ask(broker, 4, 0)[0] == ErrorCode.KAFKA_STORAGE_ERROR
