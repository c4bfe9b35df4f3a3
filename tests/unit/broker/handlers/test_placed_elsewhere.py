"""Handlers where a second broker leads some partitions: clients are sent to whom the placement names."""

import pytest

from horolog.broker.java_hash import partition_for
from horolog.broker.placement import NOBODY, Endpoint, Lead
from horolog.broker.topic_names import GROUP_OFFSETS
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.metadata import MetadataRequestTopic, TopicRequest
from horolog.protocol.messages.reassignments import ReassignablePartition, ReassignableTopic
from tests.unit.broker.handlers.stand_ins import StandIn

ME, OTHER = 1, 2


class TwoBrokers:
    """A placement: this broker leads partitions with even numbers, the other one those with odd ones, nobody the fifth."""

    me = ME

    def lead(self, _topic_id, index):
        return NOBODY if index == 5 else Lead(OTHER, 4) if index % 2 else Lead(ME, 3)

    def brokers(self, listener):
        return Endpoint(ME, "one." + listener, 9001, "a"), Endpoint(OTHER, "two." + listener, 9002, "b")

    def controller(self):
        return OTHER


@pytest.fixture
def broker():
    broker = StandIn()
    broker.cluster.create_topic("t", 6)
    broker.placement = TwoBrokers()
    return broker


def test_metadata_names_both_brokers_and_each_leader(broker):
    answer = broker.ask(ApiKey.METADATA, 12, topics=[MetadataRequestTopic(name="t")])
    assert [(one.node_id, one.host, one.port, one.rack) for one in answer.brokers] == [
        (1, "one.PLAINTEXT", 9001, "a"),
        (2, "two.PLAINTEXT", 9002, "b"),
    ]
    assert answer.controller_id == OTHER
    partitions = answer.topics[0].partitions
    assert [(one.leader_id, one.leader_epoch) for one in partitions[:2]] == [(ME, 3), (OTHER, 4)]
    assert partitions[1].replica_nodes == partitions[1].isr_nodes == [OTHER]
    assert (partitions[5].error_code, partitions[5].leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)


def test_topics_are_described_with_their_leaders(broker):
    answer = broker.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, topics=[TopicRequest(name="t")])
    partitions = answer.topics[0].partitions
    assert [one.leader_id for one in partitions] == [ME, OTHER, ME, OTHER, ME, -1]
    assert partitions[3].replica_nodes == [OTHER]


def test_the_cluster_has_two_brokers(broker):
    answer = broker.ask(ApiKey.DESCRIBE_CLUSTER, 1)
    assert [(one.broker_id, one.port) for one in answer.brokers] == [(ME, 9001), (OTHER, 9002)]
    assert answer.controller_id == OTHER


def test_resources_of_both_brokers_can_be_described(broker):
    answer = broker.ask(ApiKey.LIST_CONFIG_RESOURCES, 1, resource_types=[4])
    assert [one.resource_name for one in answer.config_resources] == ["1", "2"]


def test_the_coordinator_is_who_leads_the_shard(broker):
    class Groups:
        def ensure_topic(self):
            return ErrorCode.NONE

    broker.groups = Groups()
    topic = broker.cluster.create_topic(GROUP_OFFSETS, 6)
    keys = [f"group-{n}" for n in range(40)]
    answer = broker.ask(ApiKey.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=keys)
    assert {partition_for(key, len(topic.partitions)) for key in keys} == set(range(6))
    for found in answer.coordinators:
        shard = partition_for(found.key, 6)
        if shard == 5:
            assert (found.error_code, found.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
        else:
            assert (found.node_id, found.port) == ((OTHER, 9002) if shard % 2 else (ME, 9001))


def test_a_partition_stays_with_its_leader(broker):
    moves = [ReassignablePartition(partition_index=index, replicas=[OTHER]) for index in (0, 1)]
    wanted = [ReassignableTopic(name="t", partitions=moves)]
    answer = broker.ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, topics=wanted)
    codes = [one.error_code for one in answer.responses[0].partitions]
    assert codes == [ErrorCode.INVALID_REPLICA_ASSIGNMENT, ErrorCode.NONE]
