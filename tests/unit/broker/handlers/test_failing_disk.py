"""A disk that is full, broken or out of descriptors, seen by clients: refused at once, others go on, reads go on, and it ends with its cause."""

from __future__ import annotations

import asyncio
import errno

import pytest

from horolog.broker.log.storage.memory_disk import ALL
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from horolog.protocol.records.entries import iter_records
from tests.support import raw_records as raw
from tests.support.memory_broker import NOW_MS, MemoryBroker, Wire

BATCH = raw.batch([raw.record(b"value")], base_timestamp=NOW_MS, max_timestamp=NOW_MS)
CODES = [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE]
SICK, WELL = 0, 1
SICK_FOLDER = "/t-0/"


async def produce(client: Wire, partition: int, acks: int) -> int:
    parts = [PartitionProduceData(index=partition, records=BATCH)]
    request = ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=parts)])
    answer = await client.ask(request, 9)
    return int(answer.responses[0].partition_responses[0].error_code)


async def read(client: Wire, partition: int) -> tuple[int, int]:
    """The error code that ends it, and the number of records: all that there are, one segment after another."""
    count = 0
    while True:
        parts = [FetchPartition(partition=partition, fetch_offset=count, partition_max_bytes=1 << 20)]
        topics = [FetchTopic(topic="t", partitions=parts)]
        request = FetchRequest(replica_id=-1, max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=topics)
        answer = (await client.ask(request, 11)).responses[0].partitions[0]
        found = len(list(iter_records(answer.records or b"")))
        count += found
        if answer.error_code or not found:
            return int(answer.error_code), count


async def until_it_is_taken(memory: MemoryBroker, client: Wire, acks: int) -> None:
    async with asyncio.timeout(20):
        while await produce(client, SICK, acks):
            memory.clock.advance(250)
            memory.broker.time_has_moved()
            await asyncio.sleep(0.005)


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize(
    ("operation", "acks"), [("write", 1), ("write", -1), ("create", 1), ("create", -1), ("sync", -1)]
)
async def test_appends_are_refused_at_once_and_taken_when_it_ends(operation: str, code: int, acks: int) -> None:
    """Every append makes a segment, so that it writes and creates, and for acks=all it syncs."""
    async with MemoryBroker() as memory:
        memory.topic(partitions=2, segment_bytes=len(BATCH))
        client = memory.connect()
        assert [await produce(client, one, acks) for one in (SICK, WELL)] == [0, 0]
        memory.storage.fail(operation, SICK_FOLDER, times=ALL, code=code)
        for _ in range(3):
            assert await produce(client, SICK, acks) == ErrorCode.KAFKA_STORAGE_ERROR
            assert await produce(client, WELL, acks) == 0
        seen = await read(client, SICK)
        assert seen[0] == 0
        assert seen[1] >= 1
        assert await read(client, WELL) == (0, 4)
        memory.storage.heal()
        await until_it_is_taken(memory, client, acks)
        code_now, count = await read(client, SICK)
        assert (code_now, count) == (0, seen[1] + 1), "nobody who has read before finds anything else"


@pytest.mark.parametrize("code", [errno.EIO, errno.EMFILE])
async def test_a_read_that_fails_is_an_error_of_that_partition_and_ends_with_its_cause(code: int) -> None:
    async with MemoryBroker() as memory:
        memory.topic(partitions=2)
        client = memory.connect()
        assert [await produce(client, one, -1) for one in (SICK, WELL)] == [0, 0]
        memory.storage.fail("read", SICK_FOLDER, times=ALL, code=code)
        assert await read(client, SICK) == (ErrorCode.KAFKA_STORAGE_ERROR, 0)
        assert await read(client, WELL) == (0, 1)
        memory.storage.heal()
        async with asyncio.timeout(20):
            while await read(client, SICK) != (0, 1):
                memory.clock.advance(250)
                memory.broker.time_has_moved()
                await asyncio.sleep(0.005)
        assert await produce(client, SICK, -1) == 0
