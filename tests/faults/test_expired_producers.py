"""A producer is known after its records have expired and the broker was killed: what it sends again is not appended again."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from horolog.client.wire.connection import Connection, connect
from horolog.protocol.apis import API, ApiKey
from horolog.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from horolog.protocol.messages.transactions import InitProducerIdRequest
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.record import Record
from tests.support.broker_process import BrokerProcess
from tests.support.witness import create

PRODUCE_VERSION, LIST_OFFSETS_VERSION, INIT_VERSION = 9, 5, 4
EARLIEST, LATEST = -2, -1
RETENTION_MS = 3_600_000
BATCHES = 5
WAIT_SECONDS = 60.0
TIMEOUT_MS = 20_000


class Producer:
    """Sends batches of one record, each as often as it is told to."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.id = self.epoch = -1
        self.time_ms = time.time_ns() // 1_000_000 - 2 * RETENTION_MS

    async def connect(self) -> Connection:
        host, _, port = self.address.rpartition(":")
        return await connect(host, int(port), "again", TIMEOUT_MS, 1 << 20)

    async def initialize(self) -> None:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
        connection = await self.connect()
        answer = await connection.request(API[ApiKey.INIT_PRODUCER_ID], INIT_VERSION, request, TIMEOUT_MS)
        connection.close()
        self.id, self.epoch = answer.producer_id, answer.producer_epoch

    async def send(self, *sequences: int) -> list[int]:
        """Where the batches are, or were."""
        connection = await self.connect()
        places = []
        for sequence in sequences:
            record = Record(0, self.time_ms, 0, None, b"%d" % sequence)
            data = encode_batch([record], producer_id=self.id, producer_epoch=self.epoch, base_sequence=sequence)
            part = PartitionProduceData(index=0, records=bytes(data))
            request = ProduceRequest(
                acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=[part])]
            )
            answer = await connection.request(API[ApiKey.PRODUCE], PRODUCE_VERSION, request, TIMEOUT_MS)
            found = answer.responses[0].partition_responses[0]
            assert not found.error_code
            places.append(found.base_offset)
        connection.close()
        return places

    async def offset(self, target: int) -> int:
        part = ListOffsetsPartition(partition_index=0, timestamp=target)
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="t", partitions=[part])])
        connection = await self.connect()
        answer = await connection.request(API[ApiKey.LIST_OFFSETS], LIST_OFFSETS_VERSION, request, TIMEOUT_MS)
        connection.close()
        return int(answer.topics[0].partitions[0].offset)

    async def expired(self) -> None:
        """Until retention has emptied the log."""
        end = time.monotonic() + WAIT_SECONDS
        while await self.offset(EARLIEST) < await self.offset(LATEST):
            assert time.monotonic() < end, "retention leaves what has expired"
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("end", [BrokerProcess.kill, BrokerProcess.stop])
def test_batches_that_have_expired_are_known(
    tmp_path: Path, brokers: Callable[..., BrokerProcess], end: Callable[[BrokerProcess], int]
) -> None:
    broker = brokers(tmp_path / "data", log_retention_check_interval_ms="300", log_initial_task_delay_ms="300").start()
    create(broker.address, "t", 1, retention_ms=str(RETENTION_MS))
    producer = Producer(broker.address)

    async def send_and_wait(first: int) -> list[int]:
        places = await producer.send(*range(first, first + BATCHES))
        await producer.expired()
        return places

    asyncio.run(producer.initialize())
    for first in (0, BATCHES):
        places = asyncio.run(send_and_wait(first))
        assert places == list(range(first, first + BATCHES))
        end(broker)
        broker.start()
        assert asyncio.run(producer.send(*range(first, first + BATCHES))) == places
        assert asyncio.run(producer.offset(LATEST)) == first + BATCHES
