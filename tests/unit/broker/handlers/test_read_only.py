"""With `horolog.read.only` every request that would change something is refused, in every version, and nothing is changed."""

import asyncio

import pytest

from horolog.broker.handlers import HANDLERS
from horolog.broker.handlers.read_only import REFUSALS
from horolog.broker.log.storage import MemoryStorage
from horolog.protocol.apis import API, ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.groups import JoinGroupRequest, JoinGroupRequestProtocol, SyncGroupRequest
from horolog.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from horolog.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from horolog.protocol.messages.transactions import InitProducerIdRequest
from tests.support.log_model import encode
from tests.support.memory_broker import NOW_MS, MemoryBroker

CHANGES = {
    *("PRODUCE", "OFFSET_COMMIT", "CREATE_TOPICS", "DELETE_TOPICS", "DELETE_RECORDS", "INIT_PRODUCER_ID"),
    *("ADD_PARTITIONS_TO_TXN", "ADD_OFFSETS_TO_TXN", "END_TXN", "WRITE_TXN_MARKERS", "TXN_OFFSET_COMMIT"),
    *("ALTER_CONFIGS", "INCREMENTAL_ALTER_CONFIGS", "CREATE_PARTITIONS", "DELETE_GROUPS", "OFFSET_DELETE"),
    *("ALTER_USER_SCRAM_CREDENTIALS", "ALTER_CLIENT_QUOTAS"),
    *("CREATE_DELEGATION_TOKEN", "RENEW_DELEGATION_TOKEN", "EXPIRE_DELEGATION_TOKEN"),
    *("CREATE_ACLS", "DELETE_ACLS", "SHARE_FETCH", "SHARE_ACKNOWLEDGE"),
    *("INITIALIZE_SHARE_GROUP_STATE", "READ_SHARE_GROUP_STATE", "WRITE_SHARE_GROUP_STATE", "DELETE_SHARE_GROUP_STATE"),
    "STREAMS_GROUP_HEARTBEAT",
    *("SHARE_GROUP_HEARTBEAT", "ALTER_SHARE_GROUP_OFFSETS", "DELETE_SHARE_GROUP_OFFSETS"),
}
LOOKS = {
    *("FETCH", "LIST_OFFSETS", "METADATA", "OFFSET_FETCH", "FIND_COORDINATOR", "DESCRIBE_GROUPS", "LIST_GROUPS"),
    *("JOIN_GROUP", "HEARTBEAT", "LEAVE_GROUP", "SYNC_GROUP", "CONSUMER_GROUP_HEARTBEAT", "CONSUMER_GROUP_DESCRIBE"),
    *("SASL_HANDSHAKE", "SASL_AUTHENTICATE", "API_VERSIONS", "OFFSET_FOR_LEADER_EPOCH", "DESCRIBE_PRODUCERS"),
    *("DESCRIBE_ACLS", "DESCRIBE_CONFIGS", "DESCRIBE_LOG_DIRS", "DESCRIBE_CLIENT_QUOTAS", "DESCRIBE_CLUSTER"),
    *("DESCRIBE_USER_SCRAM_CREDENTIALS", "DESCRIBE_TRANSACTIONS", "LIST_TRANSACTIONS", "LIST_CONFIG_RESOURCES"),
    *("SHARE_GROUP_DESCRIBE", "DESCRIBE_SHARE_GROUP_OFFSETS", "DESCRIBE_DELEGATION_TOKEN"),
    "STREAMS_GROUP_DESCRIBE",
    *("LIST_PARTITION_REASSIGNMENTS", "DESCRIBE_TOPIC_PARTITIONS", "DESCRIBE_QUORUM"),
    "READ_SHARE_GROUP_STATE_SUMMARY",
}
NOTHING_TO_CHANGE = {
    *("UPDATE_FEATURES", "ELECT_LEADERS", "ALTER_PARTITION_REASSIGNMENTS", "ALTER_REPLICA_LOG_DIRS"),
    "UNREGISTER_BROKER",
}
"""They answer, and no handler of theirs writes anything."""


def test_every_api_is_known_to_change_something_or_not():
    assert {key.name for key in REFUSALS} == CHANGES
    assert {key.name for key in HANDLERS} <= CHANGES | LOOKS | NOTHING_TO_CHANGE


def produce(topic="t"):
    data = encode(2, 0, [NOW_MS], [b"v"])
    topics = [TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=data)])]
    return ProduceRequest(acks=-1, timeout_ms=1000, topic_data=topics)


async def populated():
    storage = MemoryStorage()
    async with MemoryBroker(storage) as broker:
        broker.topic("t", 1)
        answer = await broker.connect().ask(produce(), 9)
        assert not answer.responses[0].partition_responses[0].error_code
    return storage


def contents(storage):
    return {path: storage.read_all(path) for path in storage.files()}


@pytest.mark.parametrize("key", REFUSALS, ids=lambda key: key.name)
def test_a_refusal_can_be_said_in_every_version(key):
    async def run():
        storage = await populated()
        before = contents(storage)
        async with MemoryBroker(storage, horolog_read_only="true") as broker:
            for version in range(HANDLERS[key].min_version, HANDLERS[key].max_version + 1):
                wire = broker.connect()
                request = ProduceRequest(acks=1) if key is ApiKey.PRODUCE else API[key].request()
                await wire.ask(request, version)
        assert contents(storage) == before

    asyncio.run(run())


def test_records_are_refused_with_the_reason_and_topics_are_not_made():
    async def run():
        storage = await populated()
        before = contents(storage)
        async with MemoryBroker(storage, horolog_read_only="true", auto_create_topics_enable="true") as broker:
            wire = broker.connect()
            answer = (await wire.ask(produce(), 9)).responses[0].partition_responses[0]
            assert (answer.error_code, answer.base_offset) == (ErrorCode.POLICY_VIOLATION, -1)
            assert "horolog.read.only" in answer.error_message
            wanted = MetadataRequest(topics=[MetadataRequestTopic(name="new")], allow_auto_topic_creation=True)
            (topic,) = (await wire.ask(wanted, 9)).topics
            assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            broker.clock.advance(10**12)
            broker.broker.time_has_moved()
            assert broker.broker.cluster.topics["t"].find(0).log_start_offset == 0
        assert contents(storage) == before

    asyncio.run(run())


def test_a_group_lives_in_memory_and_cannot_commit():
    async def run():
        storage = await populated()
        before = contents(storage)
        async with MemoryBroker(storage, horolog_read_only="true", group_initial_rebalance_delay_ms=0) as broker:
            wire = broker.connect()
            protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
            join = JoinGroupRequest(
                group_id="g", session_timeout_ms=10_000, protocol_type="consumer", protocols=protocols
            )
            joined = await wire.ask(join, 3)
            assert joined.error_code == ErrorCode.NONE
            sync = SyncGroupRequest(group_id="g", generation_id=joined.generation_id, member_id=joined.member_id)
            assert (await wire.ask(sync, 2)).error_code == ErrorCode.NONE
            place = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
            commit = OffsetCommitRequest(
                group_id="g",
                generation_id_or_member_epoch=joined.generation_id,
                member_id=joined.member_id,
                topics=[OffsetCommitRequestTopic(name="t", partitions=[place])],
            )
            answer = (await wire.ask(commit, 5)).topics[0].partitions[0]
            assert answer.error_code == ErrorCode.POLICY_VIOLATION
            assert "__consumer_offsets" not in broker.broker.cluster.topics
        assert contents(storage) == before

    asyncio.run(run())


async def test_a_transactional_producer_is_refused_in_the_words_of_transactions():
    async with MemoryBroker(await populated(), horolog_read_only="true") as broker:
        for name, code in (
            (None, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
            ("x", ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ):
            request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=1000)
            assert (await broker.connect().ask(request, 4)).error_code == code
