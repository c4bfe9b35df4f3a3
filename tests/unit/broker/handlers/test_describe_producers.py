"""DescribeProducers: what a partition knows of those who write to it."""

from __future__ import annotations

from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.transactions import (
    DescribeProducersRequest,
    TopicRequest,
)
from tests.support.memory_broker import NOW_MS, MemoryBroker
from tests.support.transactional import Producer

SETTINGS = {"transaction_state_log_num_partitions": 2}


UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def begin(memory: MemoryBroker, transactional_id: str = "x") -> Producer:
    producer = Producer(memory.connect(), transactional_id)
    assert await producer.initialize() == 0
    return producer


async def test_producers_are_described() -> None:
    async with MemoryBroker(**SETTINGS) as memory:
        memory.topic()
        producer, wire = await begin(memory), memory.connect()
        request = DescribeProducersRequest(
            topics=[TopicRequest(name="t", partition_indexes=[0, 1]), TopicRequest(name="u", partition_indexes=[0])]
        )

        async def describe():
            answer = await wire.ask(request, 0)
            found, *unknown = [one for topic in answer.topics for one in topic.partitions]
            assert [one.error_code for one in unknown] == [UNKNOWN, UNKNOWN]
            (one,) = found.active_producers
            assert (one.producer_id, one.last_timestamp) == (producer.id, NOW_MS)
            return one.producer_epoch, one.last_sequence, one.coordinator_epoch, one.current_txn_start_offset

        assert await producer.send("t", 0, b"a", b"b", version=12) == 0
        assert await describe() == (0, 1, -1, 0)
        assert await producer.end(commit=True, version=5) == 0
        assert await describe() == (1, -1, 0, -1)


async def test_a_topic_that_cannot_be_is_refused_with_a_text() -> None:
    async with MemoryBroker(**SETTINGS) as memory:
        request = DescribeProducersRequest(topics=[TopicRequest(name="a b", partition_indexes=[0])])
        ((partition,),) = [one.partitions for one in (await memory.connect().ask(request, 0)).topics]
        assert partition.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert partition.error_message
