"""The traces of requests on two workers: how many calls of horolog they take on the event loop, and how deep these are nested.

A bound is what the path takes today. A change that needs more says why in its commit, and moves the bound.
"""

import asyncio

import pytest

from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from horolog.protocol.messages.groups import FindCoordinatorRequest
from horolog.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from horolog.protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    InitProducerIdRequest,
)
from tests.support.log_model import NOW_MS, encode
from tests.support.waiting import PAUSE_S, until
from tests.unit.broker.workers.test_calls_of_a_change import Calls, PairWithThreads

EACH = range(4)
"""The partitions, of which each worker leads two."""
TRANSACTION, LATEST, MOST_ROUNDS = 1, -1, 20


@pytest.fixture
async def pair():
    pair = PairWithThreads()
    await pair.start()
    assert await pair.create(1, "t", len(EACH)) == ErrorCode.NONE
    await until(lambda: all("t" in broker.cluster.topics for broker in pair.brokers.values()))
    yield pair
    await pair.stop()


async def until_served(ask):
    """Ask again, as clients do: what coordinators need is made first, and the transaction before may still be ending."""
    while (code := (answer := await ask()).error_code) != ErrorCode.NONE:
        assert ErrorCode(code).retriable, answer
        await asyncio.sleep(PAUSE_S)
    return answer


async def leader(pair):
    return pair.wires[(await pair.leads(1))[0][0]]


async def nothing():
    """Most requests need nothing before them."""


async def produce(pair):
    wire = await leader(pair)
    data = [PartitionProduceData(index=0, records=encode(2, 0, [NOW_MS], [b"v"]))]
    request = ProduceRequest(acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=data)])

    async def step():
        return (await wire.ask(request, 8)).responses[0].partition_responses[0].error_code

    return nothing, step


async def fetch(pair):
    _, produced = await produce(pair)
    assert await produced() == ErrorCode.NONE
    wire = await leader(pair)
    wanted = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    topics = [FetchTopic(topic="t", partitions=[wanted])]
    request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1000, topics=topics)

    async def step():
        found = (await wire.ask(request, 11)).responses[0].partitions[0]
        assert found.records
        return found.error_code

    return nothing, step


async def list_offsets(pair):
    wire = await leader(pair)
    wanted = ListOffsetsPartition(partition_index=0, timestamp=LATEST)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[wanted])])

    async def step():
        return (await wire.ask(request, 5)).topics[0].partitions[0].error_code

    return nothing, step


async def end_transaction(pair):
    """Over partitions of both workers: one coordinates it, and each writes markers."""
    find = FindCoordinatorRequest(key="x", key_type=TRANSACTION)
    wire = pair.wires[(await until_served(lambda: pair.wires[1].ask(find, 2))).node_id]
    begin = InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000)
    known = await until_served(lambda: wire.ask(begin, 2))
    add = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="x",
        v3_and_below_producer_id=known.producer_id,
        v3_and_below_producer_epoch=known.producer_epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name="t", partitions=list(EACH))],
    )
    end = EndTxnRequest(
        transactional_id="x", producer_id=known.producer_id, producer_epoch=known.producer_epoch, committed=True
    )

    async def added():
        (topic,) = (await wire.ask(add, 2)).results_by_topic_v3_and_below
        return {one.partition_error_code for one in topic.results_by_partition}

    async def step():
        return (await wire.ask(end, 2)).error_code

    async def before():
        while (codes := await added()) != {ErrorCode.NONE}:
            assert codes == {ErrorCode.CONCURRENT_TRANSACTIONS}
            await asyncio.sleep(PAUSE_S)

    return before, step


@pytest.mark.parametrize(
    ("prepare", "most_calls", "most_deep"),
    [(produce, 44, 9), (fetch, 38, 9), (list_offsets, 29, 10), (end_transaction, 392, 18)],
)
async def test_a_request_takes_no_more_calls_and_none_deeper(pair, prepare, most_calls, most_deep):
    """Up to the response; those within the log do not count, and neither does what a busy machine brings in between in some rounds."""
    before, step = await prepare(pair)
    for _ in range(MOST_ROUNDS):
        await before()
        with Calls() as calls:
            assert await step() == ErrorCode.NONE
        if 0 < calls.count <= most_calls and 0 < calls.deepest <= most_deep:
            return
    pytest.fail(f"{calls.count} calls, {calls.deepest} deep: {calls.path}")
