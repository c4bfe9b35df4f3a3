"""Topics are made, described, grown, trimmed and deleted; each failure names its topic."""

import asyncio

import pytest

from horolog.client.admin.admin import Admin
from horolog.client.admin.admin_topics import UP_TO_THE_END, NewTopic
from horolog.client.producing.producer import Producer
from horolog.client.values.errors import KafkaError, PartialFailure
from horolog.client.values.types import EARLIEST, LATEST, Found, TopicPartition
from horolog.client.wire.offsets import LARGEST_TIMESTAMP
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.topics import (
    CreatableTopicResult,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsResponse,
)
from horolog.testing import broker_in_thread
from tests.support.fake_peer import Scripted
from tests.support.scripted_client import Time, client_of

NOW_MS = 1_700_000_000_000
T0 = TopicPartition("t", 0)


@pytest.fixture(scope="module")
def broker():
    with broker_in_thread(clock=NOW_MS, log_retention_ms=-1) as running:
        running.create_topic("t", 2, retention_ms=7)
        yield running


@pytest.fixture
async def admin(broker):
    async with Admin(broker.bootstrap) as made:
        yield made


async def test_topics_are_listed_and_described(admin):
    assert "t" in await admin.topics()
    assert not any(name.startswith("__") for name in await admin.topics())
    described = (await admin.describe_topics(["t"]))["t"]
    assert (described.numbers, described.partitions[1].leader) == ([0, 1], described.partitions[0].leader)
    assert set(await admin.describe_topics()) >= {"t"}


async def test_what_is_not_there_is_named(admin):
    with pytest.raises(KafkaError, match="there is no topic 'none'") as alone:
        await admin.describe_topics(["none"])
    assert not isinstance(alone.value, PartialFailure)
    with pytest.raises(PartialFailure) as some:
        await admin.describe_topics(["none", "t"])
    assert (set(some.value.failures), set(some.value.results)) == ({"none"}, {"t"})


async def test_topics_come_and_go(admin):
    await admin.create_topic("one", 3, configs={"retention.ms": "5"}, validate_only=True)
    assert "one" not in await admin.topics()
    await admin.create_topic("one", 3, configs={"retention.ms": "5"})
    assert await admin.create_topics([NewTopic("two"), NewTopic("three", assignment={0: [1], 1: [1]})]) == [
        "two",
        "three",
    ]
    described = await admin.describe_topics(["one", "two", "three"])
    assert {name: len(one.numbers) for name, one in described.items()} == {"one": 3, "two": 1, "three": 2}
    with pytest.raises(PartialFailure) as some:
        await admin.create_topics([NewTopic("one"), NewTopic("four")])
    assert some.value.failures["one"].code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert list(some.value.results) == ["four"]
    await admin.delete_topics(["one", "two", "three", "four"])
    assert admin.client.partitions_now("one") is None
    assert not {"one", "two", "three", "four"} & set(await admin.topics())
    with pytest.raises(KafkaError, match="one"):
        await admin.delete_topics(["one"])


async def test_partitions_grow_and_do_not_shrink(admin):
    await admin.create_topic("grows")
    await admin.create_partitions({"grows": 4}, validate_only=True)
    assert await admin.client.topic("grows") == [0]
    await admin.create_partitions({"grows": 4})
    assert await admin.client.topic("grows") == [0, 1, 2, 3]
    with pytest.raises(KafkaError, match=r"^INVALID_PARTITIONS: grows: "):
        await admin.create_partitions({"grows": 2})


async def test_records_are_deleted_up_to_an_offset(admin):
    await admin.create_topic("trimmed", 2)
    one, other = TopicPartition("trimmed", 0), TopicPartition("trimmed", 1)
    async with Producer(admin.client) as producer:
        futures = [
            await producer.send("trimmed", b"v", partition=index % 2, timestamp_ms=NOW_MS) for index in range(10)
        ]
    await asyncio.gather(*futures)
    assert await admin.delete_records({one: 3, other: UP_TO_THE_END}) == {one: 3, other: 5}
    gone = TopicPartition("trimmed", 7)
    with pytest.raises(KafkaError, match=r"^OFFSET_OUT_OF_RANGE"):
        await admin.delete_records({one: 99})
    with pytest.raises(PartialFailure) as some:
        await admin.delete_records({one: 4, other: 99})
    assert (set(some.value.failures), some.value.results) == ({other}, {one: 4})
    with pytest.raises(KafkaError, match="there is no partition trimmed-7"):
        await admin.delete_records({gone: 0})
    assert await admin.list_offsets({one: EARLIEST, other: LATEST}) == {one: Found(4, -1, 0), other: Found(5, -1, 0)}
    found = await admin.list_offsets({one: LARGEST_TIMESTAMP}, isolation="read_committed")
    assert found[one].timestamp_ms == NOW_MS


class Old:
    """A broker of old versions, and what it was asked."""

    def __init__(self):
        self.broker = Scripted()
        self.asked = []
        self.broker.versions |= {ApiKey.CREATE_TOPICS: (0, 2), ApiKey.DELETE_TOPICS: (0, 5)}
        self.broker.scripts[ApiKey.CREATE_TOPICS] = self.create
        self.broker.scripts[ApiKey.DELETE_TOPICS] = self.delete

    def create(self, request):
        self.asked += [(one.name, one.num_partitions, one.replication_factor) for one in request.topics]
        codes = {"a": ErrorCode.NOT_CONTROLLER, "b": ErrorCode.TOPIC_ALREADY_EXISTS}
        return CreateTopicsResponse(
            topics=[
                CreatableTopicResult(name=one.name, error_code=int(codes.get(one.name, 0))) for one in request.topics
            ]
        )

    def delete(self, request):
        self.asked += request.topic_names
        return DeleteTopicsResponse(responses=[DeletableTopicResult(name=name) for name in request.topic_names])


async def test_brokers_without_defaults_get_one_partition_and_names():
    old = Old()
    async with old.broker.serving() as address, client_of(address, Time()) as client:
        await Admin(client).create_topics([NewTopic("t"), NewTopic("u", 3, 2), NewTopic("v", assignment={0: [1]})])
        assert old.asked == [("t", 1, 1), ("u", 3, 2), ("v", -1, -1)]
        await Admin(client).delete_topics(["t"])
        assert old.asked[-1] == "t"


async def test_a_request_is_not_repeated_for_topics_that_fared_differently():
    """A second one would find topics that the first has made."""
    old, time = Old(), Time()
    async with old.broker.serving() as address, client_of(address, time) as client:
        with pytest.raises(PartialFailure) as some:
            await Admin(client).create_topics([NewTopic("a"), NewTopic("b")])
    assert set(some.value.failures) == {"a", "b"}
    assert time.pauses_ms == []
