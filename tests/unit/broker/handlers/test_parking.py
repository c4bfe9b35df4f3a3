"""Requests about bytes that are on their way wait for them, for a bounded time and in bounded numbers, and are answered once."""

import pytest

from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support import raw_records as raw
from tests.support.memory_broker import NOW_MS, MemoryBroker
from tests.support.on_its_way import OnItsWay

BATCH = raw.batch([raw.record(b"value")], base_timestamp=NOW_MS, max_timestamp=NOW_MS)


async def filled(memory, partitions=2):
    """Partitions of one record each, none of which is here yet."""
    topic = memory.topic(partitions=partitions)
    parts = [PartitionProduceData(index=index, records=BATCH) for index in range(partitions)]
    request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=parts)])
    await memory.connect().ask(request, 9)
    found = [topic.find(index) for index in range(partitions)]
    return found, [OnItsWay(one.segments[-1]) for one in found]


def request(*indexes, timeout_ms=30_000):
    asked = [ListOffsetsPartition(partition_index=one, timestamp=NOW_MS) for one in indexes]
    return ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=asked)], timeout_ms=timeout_ms
    )


def found(response):
    return [(one.error_code, one.offset) for one in response.topics[0].partitions]


async def test_it_is_answered_when_all_is_here():
    async with MemoryBroker() as memory:
        partitions, logs = await filled(memory)
        client = memory.connect()
        client.send(request(0, 1), 10)
        assert len(memory.broker.waiting) == 1
        logs[0].arrive(memory.broker, partitions[0])
        assert client.answers() == 0
        logs[1].arrive(memory.broker, *partitions)
        assert found(await client.take(request(0, 1), 10)) == [(0, 0), (0, 0)]
        assert (len(memory.broker.waiting), memory.broker.waiting.held_bytes) == (0, 0)
        logs[1].arrive(memory.broker, *partitions)
        assert client.answers() == 0


async def test_one_that_is_here_is_not_waited_for():
    async with MemoryBroker() as memory:
        _, logs = await filled(memory)
        logs[0].is_here = True
        assert found(await memory.connect().ask(request(0), 10)) == [(0, 0)]


@pytest.mark.parametrize("timeout_ms", [0, 30])
async def test_after_its_time_it_gets_a_retriable_error(timeout_ms):
    async with MemoryBroker() as memory:
        await filled(memory)
        response = await memory.connect().ask(request(0, 1, timeout_ms=timeout_ms), 10)
        assert found(response) == [(ErrorCode.KAFKA_STORAGE_ERROR, -1)] * 2


async def test_too_many_do_not_wait():
    async with MemoryBroker(horolog_fetch_waiting_max_bytes=3_000) as memory:
        await filled(memory)
        first, second = memory.connect(), memory.connect()
        first.send(request(0), 10)
        assert found(await second.ask(request(0), 10)) == [(ErrorCode.KAFKA_STORAGE_ERROR, -1)]
        assert first.answers() == 0


async def test_a_client_that_goes_away_is_forgotten():
    async with MemoryBroker() as memory:
        await filled(memory)
        client = memory.connect()
        client.send(request(0), 7)
        assert len(memory.broker.waiting) == 1
        client.conversation.lost()
        assert len(memory.broker.waiting) == 0
