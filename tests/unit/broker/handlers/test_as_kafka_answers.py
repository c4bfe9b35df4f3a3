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
from horolog.protocol.messages.groups import SyncGroupRequest
from horolog.protocol.messages.log_dirs import AlterReplicaLogDir, AlterReplicaLogDirsRequest, AlterReplicaLogDirTopic
from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from horolog.protocol.messages.topics import CreatePartitionsRequest, CreatePartitionsTopic
from horolog.protocol.messages.transactions import DescribeProducersRequest, TopicRequest
from tests.support import raw_records as raw
from tests.support.memory_broker import NOW_MS, MemoryBroker

V2 = raw.batch([raw.record(b"value")], base_timestamp=NOW_MS, max_timestamp=NOW_MS)
TEXT = "a text"
"""Stands for any text that is not empty."""

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
BAD = ErrorCode.INVALID_REQUEST


def kind(text):
    return TEXT if text else text


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
