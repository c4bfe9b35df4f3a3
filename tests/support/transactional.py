"""A transactional producer and a reader of raw frames, for tests against a broker in memory."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from horolog.broker.log.partition import Partition
from horolog.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from horolog.protocol.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    InitProducerIdRequest,
)
from horolog.protocol.records.batch import encode_batch, iter_batch, read_header
from horolog.protocol.records.head import TRANSACTIONAL_BIT
from horolog.protocol.records.record import Record
from horolog.protocol.records.timestamps import TimestampType
from tests.support.memory_broker import NOW_MS, Wire

CREATE_TIME = int(TimestampType.CREATE_TIME)


def batch(values: list[bytes], producer_id: int, epoch: int, sequence: int, timestamp: int = NOW_MS) -> bytes:
    return bytes(
        encode_batch(
            [Record(place, timestamp, CREATE_TIME, b"k", value) for place, value in enumerate(values)],
            attributes=TRANSACTIONAL_BIT,
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
    )


def aborted_in(partition: Partition, from_offset: int, upto: int) -> list[tuple[int, int]]:
    """(producer id, first offset) of the aborted transactions in a response."""
    return [(one.producer_id, one.first_offset) for one in partition.aborted.overlapping(from_offset, upto)]


class Producer:
    """One transactional producer; every method returns an error code."""

    def __init__(self, wire: Wire, transactional_id: str = "x", timeout_ms: int = 60_000) -> None:
        self.wire = wire
        self.transactional_id = transactional_id
        self.timeout_ms = timeout_ms
        self.id, self.epoch = -1, -1
        self.sequences: dict[tuple[str, int], int] = {}

    async def initialize(self, version: int = 5, *, as_before: bool = False) -> int:
        request = InitProducerIdRequest(transactional_id=self.transactional_id, transaction_timeout_ms=self.timeout_ms)
        if as_before:
            request.producer_id, request.producer_epoch = self.id, self.epoch
        answer = await self.wire.ask(request, version)
        if not answer.error_code:
            self.id, self.epoch = answer.producer_id, answer.producer_epoch
            self.sequences.clear()
        return int(answer.error_code)

    def add_request(self, *places: tuple[str, int]) -> AddPartitionsToTxnRequest:
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=name, partitions=[index]) for name, index in places],
        )

    async def add(self, *places: tuple[str, int], version: int = 3) -> int:
        answer = await self.wire.ask(self.add_request(*places), version)
        codes = [
            one.partition_error_code
            for topic in answer.results_by_topic_v3_and_below
            for one in topic.results_by_partition
        ]
        return int(max(codes, key=abs))

    def produce_request(self, name: str, index: int, *values: bytes) -> ProduceRequest:
        records = batch(list(values), self.id, self.epoch, self.sequences.get((name, index), 0))
        return ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=1000,
            topic_data=[
                TopicProduceData(name=name, partition_data=[PartitionProduceData(index=index, records=records)])
            ],
        )

    async def send(self, name: str, index: int, *values: bytes, version: int = 11) -> int:
        answer = await self.wire.ask(self.produce_request(name, index, *values), version)
        code = int(answer.responses[0].partition_responses[0].error_code)
        if not code:
            self.sequences[name, index] = self.sequences.get((name, index), 0) + len(values)
        return code

    def end_request(self, *, commit: bool) -> EndTxnRequest:
        return EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.id,
            producer_epoch=self.epoch,
            committed=commit,
        )

    async def end(self, *, commit: bool, version: int = 4) -> int:
        answer = await self.wire.ask(self.end_request(commit=commit), version)
        if version >= 5 and not answer.error_code:
            if (self.id, self.epoch) != (answer.producer_id, answer.producer_epoch):
                self.sequences.clear()
            self.id, self.epoch = answer.producer_id, answer.producer_epoch
        return int(answer.error_code)


def committed_records(
    data: bytes, aborted: Iterable[tuple[int, int]], from_offset: int = 0
) -> list[tuple[int, bytes | None]]:
    """Offsets and values that a client shows, given these aborted (first offset, producer id)."""
    waiting = sorted(aborted, reverse=True)
    leaving_out: set[int] = set()
    found: list[tuple[int, bytes | None]] = []
    position = 0
    while position < len(data):
        header = read_header(data, position)
        while waiting and waiting[-1][0] <= header.last_offset:
            leaving_out.add(waiting.pop()[1])
        if header.is_control:
            leaving_out.discard(header.producer_id)
        elif not header.is_transactional or header.producer_id not in leaving_out:
            found += [(record.offset, record.value) for record in iter_batch(data, position)]
        position += header.size_bytes
    return [one for one in found if one[0] >= from_offset]


async def fetch(wire: Wire, name: str, index: int = 0, *, committed: bool, offset: int = 0) -> Any:
    """The response for one partition."""
    partition = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 20,
        isolation_level=int(committed),
        topics=[FetchTopic(topic=name, partitions=[partition])],
    )
    answer = await wire.ask(request, 11)
    return answer.responses[0].partitions[0]
