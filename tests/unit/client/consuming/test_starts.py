"""A consumer begins at its group's offset, else at an end or a time, or says that there is no position."""

import asyncio

import pytest

from horolog.client.admin.admin import Admin
from horolog.client.consuming.starts import Starts
from horolog.client.producing.producer import Producer
from horolog.client.values.errors import KafkaError
from horolog.client.values.types import TopicPartition
from horolog.client.wire.client import Client
from horolog.protocol.errors import ErrorCode
from horolog.testing import broker_in_thread

T0 = 1_700_000_000_000
A, B = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture(scope="module")
def address():
    """Three records in partition 0, a second apart, one in partition 1; group g has read one of partition 0."""

    async def write(bootstrap):
        async with Producer(bootstrap) as producer:
            for second in range(3):
                await producer.send("t", b"v", timestamp_ms=T0 + 1000 * second, partition=0)
            await producer.send("t", b"v", timestamp_ms=T0, partition=1)
        async with Admin(bootstrap) as admin:
            await admin.alter_group_offsets("g", {A: 1})

    with broker_in_thread(clock=T0 + 10_000, log_retention_ms=-1) as broker:
        broker.create_topic("t", 2)
        asyncio.run(write(broker.bootstrap))
        yield broker.bootstrap


@pytest.mark.parametrize(
    ("group", "start", "found"),
    [
        (None, "earliest", {A: 0, B: 0}),
        (None, "latest", {A: 3, B: 1}),
        (None, T0 + 500, {A: 1, B: 1}),
        ("g", "earliest", {A: 1, B: 0}),
        ("g", "latest", {A: 1, B: 1}),
        ("other", T0 + 1500, {A: 2, B: 1}),
    ],
)
async def test_where_a_consumer_begins(address, group, start, found):
    async with Client(address) as client:
        assert await Starts(client, group, start, 1).find([A, B]) == found


async def test_without_a_start_a_missing_position_is_an_error(address):
    async with Client(address) as client:
        starts = Starts(client, "g", "none", 0)
        assert await starts.find([A]) == {A: 1}
        with pytest.raises(KafkaError, match="there is no offset to start at in t-1") as caught:
            await starts.find([A, B])
        assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE


async def test_times_become_offsets_or_the_end(address):
    async with Client(address) as client:
        starts = Starts(client, None, "earliest", 0)
        assert await starts.at_times({A: T0 + 1000, B: T0 + 1}) == {A: 1, B: 1}
        assert repr(starts) == "<Starts: earliest>"


def test_a_start_that_is_none():
    with pytest.raises(ValueError, match="start 'soon': expected earliest, latest, none or milliseconds"):
        Starts(None, None, "soon", 0)
