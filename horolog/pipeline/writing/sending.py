"""Sends batches of one task's records, each written once: an idempotent producer with one batch of a partition in flight at a time.

A batch without a response is sent again with the same sequence, by which the broker recognises it. A batch that is refused for some
of its records is sent again without them; if the broker does not say which, in halves. Nothing of a refused batch was
written, so its sequence is still free.
"""

import asyncio
from typing import NamedTuple

import numpy as np

from horolog.client.values.errors import KafkaError, MalformedAnswer, check, error_of
from horolog.client.values.types import TopicPartition
from horolog.client.wire.client import Client
from horolog.pipeline.options.options import WriteOptions
from horolog.pipeline.writing.exactly_once import WriteFailed
from horolog.pipeline.writing.outgoing import Outgoing, cut, encode
from horolog.pipeline.writing.transacting import OpenTransaction
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from horolog.protocol.messages.transactions import InitProducerIdRequest
from horolog.protocol.records.compression import CODEC_NAMES, Codec

_ALL_IN_SYNC = -1
_LANE = "produce"
_BATCHES_FROM, _ZSTD_FROM = 3, 7
_TOPICS_BY_NAME_TO = 12
_MOST_SEQUENCES = 1 << 31
_NO_TRANSACTIONS_MS = 2**31 - 1
_REFUSALS = frozenset({ErrorCode.INVALID_TIMESTAMP, ErrorCode.INVALID_RECORD})
_TOO_LARGE = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})
_WRITTEN = frozenset({ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER})


class Refused(NamedTuple):
    """A record that the broker refused."""

    topic: str
    record: Outgoing
    code: ErrorCode
    reason: str


class Sending:
    """One producer; what it sends is part of the transaction, if there is one."""

    def __init__(self, client: Client, options: WriteOptions, transaction: OpenTransaction | None = None) -> None:
        self.client = client
        self._transaction = transaction
        self._options = options
        self._codec = CODEC_NAMES[options.compression]
        self._producer: tuple[int, int] | None = None
        self._sequences: dict[TopicPartition, int] = {}
        self._turns: dict[TopicPartition, asyncio.Lock] = {}
        self.written = 0

    async def begin(self) -> None:
        """Get a producer id."""

        async def ask() -> tuple[int, int]:
            answer = await self.client.attempt(InitProducerIdRequest(transaction_timeout_ms=_NO_TRANSACTIONS_MS))
            check(answer.error_code)
            return answer.producer_id, answer.producer_epoch

        if self._transaction is None:
            self._producer = await self.client.retry(ask)
            return
        await self._transaction.begin()
        self._producer = self._transaction.owner

    async def send(self, partition: TopicPartition, records: Outgoing) -> list[Refused]:
        """Write the records of one partition, after those sent to it before; returns those that were refused."""
        refused: list[Refused] = []
        async with self._turns.setdefault(partition, asyncio.Lock()):
            for batch in cut(records, self._options.batch_bytes):
                refused += await self._deliver(partition, batch)
        return refused

    async def _deliver(self, partition: TopicPartition, records: Outgoing) -> list[Refused]:
        """Write one batch, or those of its records that are not refused."""
        refused: list[Refused] = []
        while records.size:
            sequence = self._sequences.get(partition, 0)
            answer = await self._request(partition, records, sequence)
            error = error_of(answer.error_code, answer.error_message)
            if error.code in _WRITTEN:
                self._sequences[partition] = (sequence + records.size) % _MOST_SEQUENCES
                self.written += records.size
                break
            named = _named(answer, records.size) if error.code in _REFUSALS else {}
            if named:
                refused += [_refusal(partition, records, row, error, why) for row, why in named.items()]
                records = records.take(np.setdiff1d(np.arange(records.size), list(named)))
            elif error.code in _REFUSALS | _TOO_LARGE and records.size > 1:
                half = records.size // 2
                refused += await self._deliver(partition, records.slice(0, half))
                records = records.slice(half, records.size)
            elif error.code in _REFUSALS:
                return [*refused, _refusal(partition, records, 0, error, None)]
            else:
                raise WriteFailed(f"{partition}: {error}") from error
        return refused

    async def _request(self, partition: TopicPartition, records: Outgoing, sequence: int) -> PartitionProduceResponse:
        """The response to one batch, which is sent until a response is final."""
        assert self._producer is not None, "begin comes first"
        transaction = self._transaction
        encoded = encode(records, self._codec, self._producer, sequence, transactional=transaction is not None)
        data = PartitionProduceData(index=partition.partition, records=encoded)
        request = ProduceRequest(
            transactional_id=None if transaction is None else transaction.transactional_id,
            acks=_ALL_IN_SYNC,
            timeout_ms=self._options.request_timeout_ms,
            topic_data=[TopicProduceData(name=partition.topic, partition_data=[data])],
        )
        oldest = _ZSTD_FROM if self._codec == Codec.ZSTD else _BATCHES_FROM

        async def attempt() -> PartitionProduceResponse:
            response = await self.client.attempt(
                request, leader_of=partition, lane=_LANE, at_least=oldest, at_most=_TOPICS_BY_NAME_TO
            )
            answers = [each for topic in response.responses for each in topic.partition_responses]
            if len(answers) != 1:
                raise MalformedAnswer(f"{len(answers)} answers to a batch for {partition}")
            error = error_of(answers[0].error_code, answers[0].error_message)
            if error.retriable and error.code != ErrorCode.NONE:
                raise error
            return answers[0]

        try:
            if transaction is not None:
                await transaction.add(partition)
            return await self.client.retry(attempt, timeout_ms=self._options.delivery_timeout_ms)
        except KafkaError as error:
            raise WriteFailed(f"{partition}: {error}") from error


def _named(answer: PartitionProduceResponse, count: int) -> dict[int, str | None]:
    """Which records the broker refuses, and why, as far as it says."""
    return {
        each.batch_index: each.batch_index_error_message
        for each in answer.record_errors or ()
        if 0 <= each.batch_index < count
    }


def _refusal(partition: TopicPartition, records: Outgoing, row: int, error: KafkaError, why: str | None) -> Refused:
    return Refused(partition.topic, records.slice(row, row + 1), error.code, why or error.message)
