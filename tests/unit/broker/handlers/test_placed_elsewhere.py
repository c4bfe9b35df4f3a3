"""Handlers where a second broker leads some partitions: clients are sent to whom the placement names."""

import pytest

from horolog.broker.base.java_hash import partition_for
from horolog.broker.base.topic_names import GROUP_OFFSETS
from horolog.broker.cluster.cluster_state import Lead, LeadsChanged
from horolog.broker.cluster.placement import NOBODY, Endpoint
from horolog.broker.handlers import HANDLERS
from horolog.broker.log.partition import lookups
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from horolog.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from horolog.protocol.messages.metadata import MetadataRequestTopic, TopicRequest
from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from horolog.protocol.messages.reassignments import ReassignablePartition, ReassignableTopic
from horolog.protocol.messages.topics import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from horolog.protocol.messages.transactions import (
    DescribeProducersRequest,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from horolog.protocol.messages.transactions import TopicRequest as ProducersTopic
from tests.support import raw_records as raw
from tests.support.at_once import at_once, delete_topic
from tests.support.members import among
from tests.support.memory_broker import NOW_MS, MemoryBroker
from tests.unit.broker.handlers.stand_ins import StandIn

ME, OTHER, AWAY = 1, 2, 3


class TwoBrokers:
    """A placement: this broker leads partitions with even numbers, the other one those with odd ones, nobody the fifth, which a third keeps."""

    me, selector = ME, None

    def lead(self, _topic_id, index):
        return NOBODY if index == 5 else Lead(OTHER, 4) if index % 2 else Lead(ME, 3)

    def coordinator(self, topic_id, index):
        return self.lead(topic_id, index).node

    def keeper(self, _topic_id, _index):
        return AWAY

    def readers(self, _topic, _index):
        return ()

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
    assert partitions[5].replica_nodes == partitions[5].offline_replicas == [AWAY]


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
        def ensure_topic(self, done):
            done(ErrorCode.NONE)

    broker.groups = Groups()
    topic = broker.cluster.create_topic(GROUP_OFFSETS, 6)
    keys = [f"group-{n}" for n in range(40)]
    answer = broker.ask(ApiKey.FIND_COORDINATOR, 4, key_type=0, coordinator_keys=keys)
    assert {partition_for(key, topic.partition_count) for key in keys} == set(range(6))
    for found in answer.coordinators:
        shard = partition_for(found.key, 6)
        if shard == 5:
            assert (found.error_code, found.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
        else:
            assert (found.node_id, found.port) == ((OTHER, 9002) if shard % 2 else (ME, 9001))


def test_a_partition_stays_with_its_leader(broker):
    broker.cluster.nodes = (ME, OTHER)
    broker.hand_overs._placement = broker.placement
    moves = [ReassignablePartition(partition_index=index, replicas=[to]) for index, to in ((1, AWAY), (1, OTHER))]
    wanted = [ReassignableTopic(name="t", partitions=[move]) for move in moves]
    answers = [broker.ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, topics=[one]) for one in wanted]
    codes = [one.responses[0].partitions[0].error_code for one in answers]
    assert codes == [ErrorCode.INVALID_REPLICA_ASSIGNMENT, ErrorCode.NONE]


V2 = raw.batch([raw.record()], base_timestamp=NOW_MS, max_timestamp=NOW_MS)

# -- requests for a partition that another broker leads: the client looks for its leader again, and comes to nothing that is here


def produce(topic, version):
    data = [PartitionProduceData(index=1, records=V2 if version > 2 else raw.message(b"v"))]
    place = {"topic_id": topic.id} if version > 12 else {"name": topic.name}
    return ProduceRequest(acks=1, timeout_ms=1000, topic_data=[TopicProduceData(partition_data=data, **place)])


def fetch(topic, version):
    wanted = [FetchPartition(partition=1, fetch_offset=0, partition_max_bytes=1000)]
    place = {"topic_id": topic.id} if version > 12 else {"topic": topic.name}
    return FetchRequest(max_wait_ms=0, min_bytes=1, topics=[FetchTopic(partitions=wanted, **place)])


def list_offsets(topic, _version):
    wanted = [ListOffsetsPartition(partition_index=1, timestamp=-1, max_num_offsets=1)]
    return ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic.name, partitions=wanted)])


def end_of_epoch(topic, _version):
    wanted = [OffsetForLeaderPartition(partition=1, leader_epoch=0)]
    return OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=topic.name, partitions=wanted)])


def delete_records(topic, _version):
    wanted = [DeleteRecordsPartition(partition_index=1, offset=0)]
    return DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic.name, partitions=wanted)], timeout_ms=1000)


def describe_producers(topic, _version):
    return DescribeProducersRequest(topics=[ProducersTopic(name=topic.name, partition_indexes=[1])])


def write_markers(topic, _version):
    topics = [WritableTxnMarkerTopic(name=topic.name, partition_indexes=[1])]
    marker = WritableTxnMarker(
        producer_id=1, producer_epoch=0, transaction_result=True, coordinator_epoch=0, topics=topics
    )
    return WriteTxnMarkersRequest(markers=[marker])


ASKED = {
    ApiKey.PRODUCE: (produce, lambda answer: answer.responses[0].partition_responses),
    ApiKey.FETCH: (fetch, lambda answer: answer.responses[0].partitions),
    ApiKey.LIST_OFFSETS: (list_offsets, lambda answer: answer.topics[0].partitions),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (end_of_epoch, lambda answer: answer.topics[0].partitions),
    ApiKey.DELETE_RECORDS: (delete_records, lambda answer: answer.topics[0].partitions),
    ApiKey.DESCRIBE_PRODUCERS: (describe_producers, lambda answer: answer.topics[0].partitions),
    ApiKey.WRITE_TXN_MARKERS: (write_markers, lambda answer: answer.markers[0].topics[0].partitions),
}


def led_by(cluster, topic, index, lead):
    among(cluster, 2)
    assert at_once(cluster.changes.make, lambda _: LeadsChanged((((topic.id, index), lead),))) == {}


async def test_who_leads_again_does_so_in_a_new_epoch():
    async with MemoryBroker() as memory:
        topic, client = memory.topic(partitions=2), memory.connect()
        assert (await client.ask(produce(topic, 9), 9)).responses[0].partition_responses[0].error_code == 0
        led_by(memory.broker.cluster, topic, 1, Lead(OTHER, 4))
        assert memory.broker.placement.lead(topic.id, 1) == Lead(-1, 4)
        memory.broker.placement.live_are(frozenset({OTHER}))
        assert memory.broker.placement.lead(topic.id, 1) == Lead(OTHER, 4)
        led_by(memory.broker.cluster, topic, 1, Lead(ME, 5))
        assert (await client.ask(produce(topic, 9), 9)).responses[0].partition_responses[0].error_code == 0
        partition = topic.find(1)
        assert (partition.leader_epoch, lookups.epoch_at(partition, 0), lookups.epoch_at(partition, 1)) == (5, 0, 5)
        assert lookups.end_offset_for_epoch(partition, 0) == (0, 1)


async def test_settings_changed_while_another_led_count_when_it_does_no_more():
    async with MemoryBroker() as memory:
        topic, cluster = memory.topic(partitions=2), memory.broker.cluster
        led_by(cluster, topic, 1, Lead(OTHER, 4))
        assert at_once(cluster.alter_topic_configs, {"t": {"retention.ms": "77"}}) is None
        led_by(cluster, topic, 1, Lead(ME, 5))
        assert topic.find(1).config.retention_ms == 77


@pytest.mark.parametrize("index", [0, 1])
async def test_a_deleted_topic_leaves_only_what_another_is_still_to_remove(index):
    async with MemoryBroker() as memory:
        topic, cluster = memory.topic(partitions=2), memory.broker.cluster
        led_by(cluster, topic, index, Lead(OTHER, 4))
        delete_topic(cluster, "t")
        assert not memory.broker.logs.partitions
        assert cluster.state.deleting == {"t": {topic.id}}


@pytest.mark.parametrize("key", ASKED)
async def test_every_version_is_told_that_this_is_not_the_leader(key):
    request, answers = ASKED[key]
    handler = HANDLERS[key]
    async with MemoryBroker() as memory:
        topic, client = memory.topic(partitions=2), memory.connect()
        there = topic.find(1)
        led_by(memory.broker.cluster, topic, 1, Lead(OTHER, 4))
        for version in range(handler.min_version, handler.max_version + 1):
            (answer,) = answers(await client.ask(request(topic, version), version))
            assert answer.error_code == 6, version  # an old client knows it as NotLeaderForPartition
        assert (topic.partition_count, topic.led_here) == (2, [topic.find(0)])
        assert there.log_end_offset == 0
        led_by(memory.broker.cluster, topic, 1, Lead(ME, 5))
        assert topic.find(1).leader_epoch == 5
