"""Requests to a coordinator before any client has looked for it: its topic is made, and until then the errors are retriable.

Kafka 4.3.1 answers NOT_COORDINATOR until FindCoordinator has made the topic (COORDINATOR_NOT_AVAILABLE to TxnOffsetCommit): clients
look for the coordinator with both codes.
"""

import asyncio

import pytest

from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from horolog.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.support.waiting import PAUSE_S, until
from tests.unit.broker.workers.test_calls_of_a_change import PairWithThreads

UNKNOWN = {"transactional_id": "x", "producer_id": 5, "producer_epoch": 0, "group_id": "g"}
TRY_AGAIN = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}
"""Clients repeat a commit of offsets with each of them."""


@pytest.fixture
async def pair():
    pair = PairWithThreads()
    await pair.start()
    assert await pair.create(1, "t", 1) == ErrorCode.NONE
    await until(lambda: all("t" in broker.cluster.topics for broker in pair.brokers.values()))
    yield pair
    await pair.stop()


async def commit(wire):
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = OffsetCommitRequestTopic(name="t", partitions=[partition])
    answer = await wire.ask(OffsetCommitRequest(group_id="g", topics=[topic]), 7)
    return answer.topics[0].partitions[0].error_code


async def init_producer_id(wire):
    answer = await wire.ask(InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000), 2)
    return answer.error_code


async def add_offsets(wire):
    return (await wire.ask(AddOffsetsToTxnRequest(**UNKNOWN), 2)).error_code


async def commit_in_transaction(wire):
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = TxnOffsetCommitRequestTopic(name="t", partitions=[partition])
    answer = await wire.ask(TxnOffsetCommitRequest(**UNKNOWN, topics=[topic]), 2)
    return answer.topics[0].partitions[0].error_code


@pytest.mark.parametrize(
    ("ask", "served"),
    [
        (commit, ErrorCode.NONE),
        (init_producer_id, ErrorCode.NONE),
        (add_offsets, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
        (commit_in_transaction, ErrorCode.INVALID_PRODUCER_ID_MAPPING),
    ],
)
async def test_the_coordinator_serves_it_once_its_topic_is_there(pair, ask, served):
    async def until_served():
        while True:
            codes = {await ask(wire) for wire in pair.wires.values()}
            assert codes <= TRY_AGAIN | {served}
            if served in codes:
                return
            await asyncio.sleep(PAUSE_S)

    await asyncio.wait_for(until_served(), 60)
