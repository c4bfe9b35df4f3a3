"""Reassignments and elections on a broker that has everything and leads everything."""

import pytest

from horolog.broker.cluster.cluster_state import Lead
from horolog.broker.cluster.placement import NOBODY
from horolog.broker.on_record.cluster_errors import ClusterError
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


class HandOvers:
    """Moves are asked for, and end as the test says."""

    def __init__(self):
        self.moves = {}
        self.asked = []

    def move(self, name, index, node, done):
        self.asked.append((name, index, node))
        done(ClusterError(ErrorCode.LEADER_NOT_AVAILABLE, "it is away") if index == 1 else None)


class TestSeveral:
    @pytest.fixture
    def broker(self):
        broker = StandIn()
        broker.cluster.create_topic("t", 3)
        broker.cluster.nodes = (1, 2)
        broker.hand_overs = HandOvers()
        return broker

    def test_a_partition_goes_to_another_worker(self, broker):
        wanted = {0: [2], 1: [2], 2: [3], 3: [1]}
        partitions = [ReassignablePartition(partition_index=index, replicas=nodes) for index, nodes in wanted.items()]
        partitions += [ReassignablePartition(partition_index=2, replicas=None)]
        topics = [ReassignableTopic(name="t", partitions=partitions)]
        (answer,) = broker.ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 1, topics=topics).responses
        told = [(one.error_code, one.error_message) for one in answer.partitions]
        assert told == [
            (ErrorCode.NONE, None),
            (ErrorCode.LEADER_NOT_AVAILABLE, "it is away"),
            (ErrorCode.INVALID_REPLICA_ASSIGNMENT, "a partition has one replica, on one of the brokers [1, 2]"),
            (UNKNOWN, "there is no partition t-3 here"),
            (ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None),
        ]
        assert broker.hand_overs.asked == [("t", 0, 2), ("t", 1, 2)]

    def test_what_is_under_way_is_listed(self, broker):
        broker.hand_overs.moves = {("t", 0): 2, ("t", 1): 2}
        (topic,) = broker.ask(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, topics=None).topics
        assert [one.partition_index for one in topic.partitions] == [0, 1]
        assert topic.partitions[0].replicas == [2, 1]
        wanted = [ListPartitionReassignmentsTopics(name="t", partition_indexes=[1, 2])]
        (topic,) = broker.ask(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, topics=wanted).topics
        assert [one.partition_index for one in topic.partitions] == [1]

    @pytest.mark.parametrize(
        ("kind", "code"),
        [(0, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE), (1, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE)],
    )
    def test_nobody_else_leads_what_a_worker_that_is_away_does(self, broker, kind, code):
        broker.placement.lead = lambda _id, index: NOBODY if index == 1 else Lead(2, 0)
        wanted = [TopicPartitions(topic="t", partitions=[0, 1])]
        answer = broker.ask(ApiKey.ELECT_LEADERS, 2, topic_partitions=wanted, election_type=kind)
        codes = [one.error_code for one in answer.replica_election_results[0].partition_result]
        assert codes == [ErrorCode.ELECTION_NOT_NEEDED, code]
