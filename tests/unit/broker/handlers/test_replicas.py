"""Reassignments and elections on a broker that has everything and leads everything."""

import pytest

from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.reassignments import (
    ListPartitionReassignmentsTopics,
    ReassignablePartition,
    ReassignableTopic,
    TopicPartitions,
)
from tests.unit.broker.handlers.stand_ins import StandIn

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.fixture
def broker():
    broker = StandIn()
    broker.cluster.create_topic("t", 2)
    return broker


def test_nothing_is_being_moved(broker):
    wanted = [ListPartitionReassignmentsTopics(name="t", partition_indexes=[0])]
    for topics in (None, wanted):
        answer = broker.ask(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, topics=topics)
        assert (answer.error_code, answer.topics) == (0, [])


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(
    ("index", "replicas", "code"),
    [
        (0, [1], ErrorCode.NONE),
        (1, None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        (0, [2], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (0, [1, 2], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (0, [], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (2, [1], UNKNOWN),
        (-1, None, UNKNOWN),
    ],
)
def test_a_partition_stays_where_it_is(broker, version, index, replicas, code):
    topics = [
        ReassignableTopic(name=name, partitions=[ReassignablePartition(partition_index=index, replicas=replicas)])
        for name in ("t", "nope")
    ]
    answer = broker.ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, version, topics=topics)
    assert [one.error_code for topic in answer.responses for one in topic.partitions] == [code, UNKNOWN]


@pytest.mark.parametrize("version", [0, 1, 2])
def test_no_partition_needs_another_leader(broker, version):
    wanted = [TopicPartitions(topic="t", partitions=[0, 2]), TopicPartitions(topic="nope", partitions=[0])]
    answer = broker.ask(ApiKey.ELECT_LEADERS, version, topic_partitions=wanted)
    codes = [one.error_code for topic in answer.replica_election_results for one in topic.partition_result]
    assert codes == [ErrorCode.ELECTION_NOT_NEEDED, UNKNOWN, UNKNOWN]
    assert broker.ask(ApiKey.ELECT_LEADERS, version, topic_partitions=None).replica_election_results == []


def test_there_are_two_elections(broker):
    for number, code in ((0, 0), (1, 0), (2, ErrorCode.INVALID_REQUEST), (-1, ErrorCode.INVALID_REQUEST)):
        wanted = [TopicPartitions(topic="t", partitions=[0])]
        assert broker.ask(ApiKey.ELECT_LEADERS, 2, election_type=number, topic_partitions=wanted).error_code == code
