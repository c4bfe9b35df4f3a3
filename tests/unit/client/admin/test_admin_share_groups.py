"""Where share groups deliver from: set before they have members, read, and forgotten."""

import asyncio

import pytest

from horolog.client.admin.admin import Admin
from horolog.client.admin.admin_share_groups import GroupPosition
from horolog.client.producing.producer import Producer
from horolog.client.values.errors import KafkaError
from horolog.client.values.types import TopicPartition
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.share_groups import (
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
    ShareGroupHeartbeatRequest,
)
from horolog.testing import broker_in_thread
from tests.support.fake_peer import Scripted
from tests.support.scripted_client import Time, client_of

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture(scope="module")
def broker():
    async def write(bootstrap):
        async with Producer(bootstrap) as producer:
            for number in range(10):
                await producer.send("t", b"v", partition=number % 2)

    with broker_in_thread() as running:
        running.create_topic("t", 2)
        running.create_topic("u")
        asyncio.run(write(running.bootstrap))
        yield running


@pytest.fixture
async def admin(broker):
    async with asyncio.timeout(60), Admin(broker.bootstrap) as made:
        yield made


async def test_offsets_are_set_read_and_forgotten(admin):
    assert await admin.share_group_of("g") is None
    await admin.alter_share_group_offsets("g", {A: 2, B: 4, TopicPartition("u", 0): 0})
    found = await admin.share_group_of("g")
    assert (found.group_state, found.members) == ("Empty", [])
    assert {place: one.offset for place, one in (await admin.share_group_offsets("g")).items()} == {
        A: 2,
        B: 4,
        TopicPartition("u", 0): 0,
    }
    assert (await admin.share_group_offsets("g", [B]))[B].lag == 1
    await admin.delete_share_group_offsets("g", ["t"])
    assert set(await admin.share_group_offsets("g")) == {TopicPartition("u", 0)}


async def test_what_is_not_there_is_named(admin):
    with pytest.raises(KafkaError, match="none-0"):
        await admin.alter_share_group_offsets("g", {TopicPartition("none", 0): 1})
    with pytest.raises(KafkaError, match="GROUP_ID_NOT_FOUND"):
        await admin.delete_share_group_offsets("nobody", ["t"])
    await admin.alter_share_group_offsets("g", {A: 0})
    with pytest.raises(KafkaError, match="none"):
        await admin.delete_share_group_offsets("g", ["none"])


async def test_a_group_with_members_is_not_moved(admin):
    join = ShareGroupHeartbeatRequest(group_id="busy", member_id="m", member_epoch=0, subscribed_topic_names=["t"])
    assert (await admin.client.request(join, coordinator_of=("group", "busy"))).error_code == 0
    with pytest.raises(KafkaError) as caught:
        await admin.alter_share_group_offsets("busy", {A: 1})
    assert caught.value.code == ErrorCode.NON_EMPTY_GROUP


def described(partition_code=0, code=0):
    part = DescribeShareGroupOffsetsResponsePartition(
        partition_index=0, start_offset=-1, lag=-1, error_code=partition_code, error_message="no"
    )
    topic = DescribeShareGroupOffsetsResponseTopic(topic_name="t", partitions=[part])
    group = DescribeShareGroupOffsetsResponseGroup(group_id="g", topics=[topic], error_code=code)
    return DescribeShareGroupOffsetsResponse(groups=[group])


async def read(answer):
    broker = Scripted()
    broker.scripts[ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS] = lambda _: answer
    async with broker.serving() as address, client_of(address, Time()) as client:
        return await Admin(client).share_group_offsets("g")


async def test_a_group_that_has_not_begun_has_no_offset_and_older_brokers_say_no_lag():
    assert await read(described()) == {A: GroupPosition(None, None)}
    for answer in (described(29), described(0, 30)):
        with pytest.raises(KafkaError, match=r"not authorized for (topic 't'|group 'g')"):
            await read(answer)


async def test_a_broker_without_share_groups_has_none():
    broker = Scripted()
    del broker.versions[ApiKey.SHARE_GROUP_DESCRIBE]
    async with broker.serving() as address, client_of(address, Time()) as client:
        assert await Admin(client).share_group_of("g") is None
