"""Requests to a coordinator before any client has looked for it: its topic is made, and until then the errors are retriable.

Kafka 4.3.1 answers NOT_COORDINATOR until FindCoordinator has made the topic (COORDINATOR_NOT_AVAILABLE to TxnOffsetCommit): clients
look for the coordinator with both codes.
"""

import asyncio
from itertools import count

import pytest

from horolog.broker.base.java_hash import partition_for
from horolog.broker.base.topic_names import GROUP_OFFSETS, TRANSACTION_STATE
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
TRY_AGAIN = {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}


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


async def commit_in_transaction(wire, transactional_id="x", version=2):
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = TxnOffsetCommitRequestTopic(name="t", partitions=[partition])
    request = TxnOffsetCommitRequest(**UNKNOWN | {"transactional_id": transactional_id}, topics=[topic])
    return (await wire.ask(request, version)).topics[0].partitions[0].error_code


async def until_served(pair, ask, served):
    while True:
        codes = {await ask(wire) for wire in pair.wires.values()}
        assert codes <= TRY_AGAIN | {served}
        if served in codes:
            return
        await asyncio.sleep(PAUSE_S)


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
    await asyncio.wait_for(until_served(pair, ask, served), 60)


@pytest.mark.parametrize("version", [2, 5])
async def test_a_commit_waits_for_the_topic_of_groups_to_reach_the_coordinator_of_its_transaction(pair, version):
    for ask in (commit, init_producer_id):
        await asyncio.wait_for(until_served(pair, ask, ErrorCode.NONE), 60)
    of_groups, of_ids = [[node for node, _ in await pair.leads(1, name)] for name in (GROUP_OFFSETS, TRANSACTION_STATE)]
    here = of_groups[partition_for("g", len(of_groups))]
    elsewhere = next(f"x{n}" for n in count() if of_ids[partition_for(f"x{n}", len(of_ids))] != here)

    def ask(wire):
        return commit_in_transaction(wire, elsewhere, version)

    served = ErrorCode.INVALID_PRODUCER_ID_MAPPING
    await asyncio.wait_for(until_served(pair, ask, served), 60)
    (other,) = (broker for node, broker in pair.brokers.items() if node != here)
    known = other.cluster.topics.pop(GROUP_OFFSETS)
    assert await ask(pair.wires[here]) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    other.cluster.topics[GROUP_OFFSETS] = known
    assert await ask(pair.wires[here]) == served
