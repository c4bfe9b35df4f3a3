"""Answers held against those of Kafka 4.3.1, as they were measured on the wire: codes, and whether a refusal has a text."""

import pytest

from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from horolog.protocol.messages.consumer_groups import ConsumerGroupDescribeRequest
from horolog.protocol.messages.groups import FindCoordinatorRequest, SyncGroupRequest
from horolog.protocol.messages.log_dirs import AlterReplicaLogDir, AlterReplicaLogDirsRequest, AlterReplicaLogDirTopic
from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from horolog.protocol.messages.quorum import DescribeQuorumRequest, PartitionData, TopicData
from horolog.protocol.messages.quotas import ComponentData, DescribeClientQuotasRequest
from horolog.protocol.messages.topics import CreatePartitionsRequest, CreatePartitionsTopic
from horolog.protocol.messages.transactions import DescribeProducersRequest, TopicRequest
from tests.support import raw_records as raw
from tests.support.memory_broker import NOW_MS, MemoryBroker

V2 = raw.batch([raw.record(b"value")], base_timestamp=NOW_MS, max_timestamp=NOW_MS)
TEXT = "a text"
"""Stands for any text that is not empty."""

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
BAD = ErrorCode.INVALID_REQUEST
METADATA = "__cluster_metadata"


def kind(text):
    return TEXT if text else text


def quota(*components):
    return DescribeClientQuotasRequest(
        components=[ComponentData(entity_type=kind, match_type=how, match=name) for kind, how, name in components]
    )


def one_config(kind, name):
    return DescribeConfigsRequest(resources=[DescribeConfigsResource(resource_type=kind, resource_name=name)])


def described(answer):
    return answer.results[0]


def growing(name, count):
    return CreatePartitionsRequest(topics=[CreatePartitionsTopic(name=name, count=count)], timeout_ms=1000)


def producers_of(name, index):
    return DescribeProducersRequest(topics=[TopicRequest(name=name, partition_indexes=[index])])


def of_partition(answer):
    return answer.topics[0].partitions[0]


def replaced(name):
    resource = AlterConfigsResource(resource_type=2, resource_name=name, configs=[])
    return AlterConfigsRequest(resources=[resource], validate_only=False)


def whole(answer):
    return answer


REFUSALS = {
    "quotas of no type": (quota(("", 2, None)), 1, whole, (BAD, TEXT)),
    "quotas of a foreign type": (quota(("nobody", 2, None)), 1, whole, (ErrorCode.UNSUPPORTED_VERSION, TEXT)),
    "quotas by no match": (quota(("user", 7, None)), 0, whole, (BAD, TEXT)),
    "quotas of one without a name": (quota(("user", 0, None)), 0, whole, (BAD, TEXT)),
    "quotas of the default with a name": (quota(("user", 1, "u")), 0, whole, (BAD, TEXT)),
    "quotas of a type twice": (quota(("user", 2, None), ("user", 0, "u")), 1, whole, (BAD, TEXT)),
    "quotas of ip and user": (quota(("user", 2, None), ("ip", 2, None)), 1, whole, (BAD, TEXT)),
    "quotas of user and client": (quota(("user", 2, None), ("client-id", 1, None)), 1, whole, (0, "")),
    "configs of an unknown topic": (one_config(2, "nowhere"), 4, described, (UNKNOWN, "")),
    "configs of no topic name": (one_config(2, "a b"), 4, described, (ErrorCode.INVALID_TOPIC_EXCEPTION, TEXT)),
    "configs of another broker": (one_config(4, "77"), 1, described, (BAD, TEXT)),
    "configs of a topic": (one_config(2, "t"), 4, described, (0, "")),
    "change of the configs of all topics": (replaced(""), 2, lambda answer: answer.responses[0], (BAD, TEXT)),
    "change of the configs of no topic": (replaced("nowhere"), 2, lambda answer: answer.responses[0], (UNKNOWN, TEXT)),
    "growth of an unknown topic": (growing("nowhere", 2), 3, described, (UNKNOWN, None)),
    "growth to less": (growing("t", 1), 3, described, (ErrorCode.INVALID_PARTITIONS, TEXT)),
    "producers of an unknown topic": (producers_of("nowhere", 0), 0, of_partition, (UNKNOWN, TEXT)),
    "producers of an unknown partition": (producers_of("t", 9), 0, of_partition, (UNKNOWN, None)),
    "producers of no name": (producers_of("a b", 0), 0, of_partition, (ErrorCode.INVALID_TOPIC_EXCEPTION, TEXT)),
    "group without a name": (
        ConsumerGroupDescribeRequest(group_ids=[""]),
        1,
        lambda answer: answer.groups[0],
        (ErrorCode.INVALID_GROUP_ID, None),
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
async def test_a_refusal_has_a_text_where_kafkas_has_one(name):
    request, version, part, expected = REFUSALS[name]
    async with MemoryBroker() as memory:
        memory.topic(partitions=2)
        answer = part(await memory.connect().ask(request, version))
        assert (answer.error_code, kind(answer.error_message)) == expected


# Produce


def parts(*named, acks=1):
    topics = [
        TopicProduceData(
            **({"name": name} if isinstance(name, str) else {"topic_id": name}),
            partition_data=[PartitionProduceData(index=index, records=V2) for index in indexes],
        )
        for name, *indexes in named
    ]
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=topics)


def answered(response):
    return [
        (topic.name or topic.topic_id, sorted(each.index for each in topic.partition_responses))
        for topic in response.responses
    ]


@pytest.mark.parametrize("version", [3, 8, 9, 12])
@pytest.mark.parametrize("acks", [1, 5])
async def test_a_topic_named_twice_is_answered_once(version, acks):
    async with MemoryBroker() as memory:
        topic, other = memory.topic(partitions=3), memory.topic("u")
        response = await memory.connect().ask(parts(("t", 0), ("u", 0), ("t", 1, 2), acks=acks), version)
        assert answered(response) == [("t", [0, 1, 2]), ("u", [0])]
        written = int(acks == 1)
        assert [one.log_end_offset for one in (*topic.led_here, *other.led_here)] == [written] * 4


async def test_a_topic_id_named_twice_is_answered_once():
    async with MemoryBroker() as memory:
        topic = memory.topic(partitions=2)
        unknown = b"\7" * 16
        response = await memory.connect().ask(parts((topic.id, 0), (unknown, 0), (topic.id, 1), (unknown, 1)), 13)
        assert answered(response) == [(topic.id, [0, 1]), (unknown, [0, 1])]


async def test_of_a_partition_named_in_two_places_the_last_counts():
    async with MemoryBroker() as memory:
        topic = memory.topic()
        response = await memory.connect().ask(parts(("t", 0), ("t", 0)), 9)
        assert answered(response) == [("t", [0])]
        assert topic.find(0).log_end_offset == 1


@pytest.mark.parametrize(
    ("records", "code", "text"),
    [
        (V2[:-1] + b"!", ErrorCode.CORRUPT_MESSAGE, None),
        (raw.batch([raw.record(b"v" * 3000)], base_timestamp=NOW_MS), ErrorCode.MESSAGE_TOO_LARGE, None),
        (raw.batch([raw.record(b"v")], base_timestamp=0, max_timestamp=0), ErrorCode.INVALID_TIMESTAMP, TEXT),
    ],
)
async def test_only_refused_records_have_a_text(records, code, text):
    async with MemoryBroker() as memory:
        memory.topic(max_message_time_difference_ms=1000, max_message_bytes=2000)
        asked = parts(("t", 0))
        asked.topic_data[0].partition_data[0].records = records
        answer = (await memory.connect().ask(asked, 9)).responses[0].partition_responses[0]
        assert (answer.error_code, kind(answer.error_message)) == (code, text)


# Groups


@pytest.mark.parametrize(("key_type", "topic"), [(0, "__consumer_offsets"), (1, "__transaction_state")])
async def test_asking_for_a_coordinator_makes_its_topic(key_type, topic):
    async with MemoryBroker(offsets_topic_num_partitions=2, transaction_state_log_num_partitions=2) as memory:
        assert topic not in memory.broker.cluster.topics
        answer = await memory.connect().ask(FindCoordinatorRequest(coordinator_keys=["x"], key_type=key_type), 4)
        assert [one.error_code for one in answer.coordinators] == [0]
        assert memory.broker.cluster.topics[topic].partition_count == 2


@pytest.mark.parametrize("key_type", [0, 1])
async def test_a_coordinator_whose_topic_cannot_be_made_is_not_available(key_type):
    async with MemoryBroker() as memory:
        memory.storage.fail("rename", "horolog-cluster", times=5)
        answer = await memory.connect().ask(FindCoordinatorRequest(key="x", key_type=key_type), 3)
        assert (answer.error_code, answer.node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)


@pytest.mark.parametrize("version", [4, 5, 6])
async def test_share_partitions_have_no_coordinator_and_no_text(version):
    async with MemoryBroker() as memory:
        answer = await memory.connect().ask(FindCoordinatorRequest(coordinator_keys=["x"], key_type=2), version)
        assert [(one.error_code, one.error_message) for one in answer.coordinators] == [(BAD, "")]


@pytest.mark.parametrize(("kind_of", "name"), [(None, None), ("consumer", None), (None, "range")])
async def test_a_sync_names_the_protocol_from_version_5_on(kind_of, name):
    async with MemoryBroker() as memory:
        request = SyncGroupRequest(
            group_id="g", generation_id=1, member_id="m", protocol_type=kind_of, protocol_name=name
        )
        client = memory.connect()
        assert (await client.ask(request, 5)).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        assert (await client.ask(request, 4)).error_code == ErrorCode.UNKNOWN_MEMBER_ID


# The quorum and the data folders


def quorum(*wanted):
    names = dict.fromkeys(name for name, _ in wanted)
    return DescribeQuorumRequest(
        topics=[
            TopicData(topic_name=name, partitions=[PartitionData(partition_index=i) for n, i in wanted if n == name])
            for name in names
        ]
    )


@pytest.mark.parametrize("version", range(3))
async def test_the_only_broker_is_the_only_voter(version):
    async with MemoryBroker() as memory:
        memory.topic()
        answer = await memory.connect().ask(quorum((METADATA, 0)), version)
        found = of_partition(answer)
        (voter,) = found.current_voters
        assert (answer.error_code, found.error_code, found.leader_id, found.observers) == (0, 0, 1, [])
        assert found.high_watermark == voter.log_end_offset > 0
        assert voter.last_caught_up_timestamp == (NOW_MS if version else -1)
        if version == 2:
            assert [one.node_id for one in answer.nodes] == [1]
            assert voter.replica_directory_id != bytes(16)


@pytest.mark.parametrize("wanted", [[("t", 0)], [(METADATA, 1)], [(METADATA, 0), (METADATA, 1)]])
async def test_other_partitions_have_no_quorum(wanted):
    async with MemoryBroker() as memory:
        memory.topic()
        answer = await memory.connect().ask(quorum(*wanted), 2)
        partitions = [each for topic in answer.topics for each in topic.partitions]
        assert [(each.error_code, kind(each.error_message)) for each in partitions] == [(UNKNOWN, TEXT)] * len(wanted)


@pytest.mark.parametrize("version", range(3))
async def test_partitions_stay_in_their_folder(version):
    async with MemoryBroker() as memory:
        memory.topic()

        async def moved(path, name, index):
            wanted = AlterReplicaLogDir(path=path, topics=[AlterReplicaLogDirTopic(name=name, partitions=[index])])
            answer = await memory.connect().ask(AlterReplicaLogDirsRequest(dirs=[wanted]), version)
            return answer.results[0].partitions[0].error_code

        assert await moved("/data", "t", 0) == 0
        assert await moved("/data", "t", 1) == await moved("/data", "nowhere", 0) == UNKNOWN
        assert await moved("/elsewhere", "t", 0) == await moved("/elsewhere", "nowhere", 0)
        assert await moved("/elsewhere", "t", 0) == ErrorCode.LOG_DIR_NOT_FOUND
