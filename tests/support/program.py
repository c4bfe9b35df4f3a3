"""A transactional program over two brokers, of either kind, that retries unanswered requests, as a client library does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from horolog.broker.base.topic_names import GROUP_OFFSETS
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from horolog.protocol.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from horolog.protocol.wire import Message
from tests.support.transactional import batch
from tests.support.two_brokers import TOPIC, TwoBrokers, leader_of

TRY_AGAIN = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}
PAUSE_MS = 100
MOST_TRIES = 600


class Program:
    """`newer` programs let the brokers add partitions, and get a new epoch at every end."""

    def __init__(self, pair: TwoBrokers, transactional_id: str, group_id: str, *, newer: bool) -> None:
        self._pair = pair
        self._name = transactional_id
        self._group = group_id
        self._newer = newer
        self._id = self._epoch = -1
        self._sequences: dict[int, int] = {}

    def _ask(self, node: int, request: Message, version: int, codes_of: Callable[[Any], list[int]]) -> Any:
        """Retry until there is a final response; any code other than NONE is a failure."""
        for _ in range(MOST_TRIES):
            answer = self._pair.ask(node, request, version)
            if answer is not None and not TRY_AGAIN.intersection(codes_of(answer)):
                codes = set(codes_of(answer)) - {ErrorCode.NONE}
                assert not codes, (type(request).__name__, codes)
                return answer
            self._pair.pass_time(PAUSE_MS)
        raise AssertionError(f"{type(request).__name__} is refused for ever")

    @property
    def _coordinator(self) -> int:
        return self._pair.coordinator(self._name)

    def initialize(self) -> None:
        request = InitProducerIdRequest(transactional_id=self._name, transaction_timeout_ms=600_000)
        answer = self._ask(self._coordinator, request, 5, lambda one: [one.error_code])
        self._id, self._epoch = answer.producer_id, answer.producer_epoch
        self._sequences.clear()

    def write(self, *values: tuple[int, bytes]) -> None:
        """Write one record to each of these partitions."""
        if not self._newer:
            self._add([index for index, _ in values])
        for index, value in values:
            sequence = self._sequences.get(index, 0)
            records = batch([value], self._id, self._epoch, sequence)
            data = [PartitionProduceData(index=index, records=records)]
            request = ProduceRequest(
                transactional_id=self._name,
                acks=-1,
                timeout_ms=1000,
                topic_data=[TopicProduceData(name=TOPIC, partition_data=data)],
            )
            version = 12 if self._newer else 11
            self._ask(
                leader_of(index), request, version, lambda one: [one.responses[0].partition_responses[0].error_code]
            )
            self._sequences[index] = sequence + 1

    def _add(self, indexes: list[int]) -> None:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._name,
            v3_and_below_producer_id=self._id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=TOPIC, partitions=indexes)],
        )
        self._ask(
            self._coordinator,
            request,
            3,
            lambda one: [
                each.partition_error_code
                for topic in one.results_by_topic_v3_and_below
                for each in topic.results_by_partition
            ],
        )

    def commit_offset(self, offset: int) -> None:
        who = {"transactional_id": self._name, "producer_id": self._id, "producer_epoch": self._epoch}
        if not self._newer:
            request = AddOffsetsToTxnRequest(group_id=self._group, **who)
            self._ask(self._coordinator, request, 3, lambda one: [one.error_code])
        partition = TxnOffsetCommitRequestPartition(
            partition_index=0, committed_offset=offset, committed_leader_epoch=-1, committed_metadata=""
        )
        commit = TxnOffsetCommitRequest(
            group_id=self._group,
            generation_id=-1,
            member_id="",
            group_instance_id=None,
            topics=[TxnOffsetCommitRequestTopic(name=TOPIC, partitions=[partition])],
            **who,
        )
        node = self._pair.coordinator(self._group, GROUP_OFFSETS)
        self._ask(node, commit, 5 if self._newer else 3, lambda one: [one.topics[0].partitions[0].error_code])

    def end(self, *, commit: bool = True) -> None:
        request = EndTxnRequest(
            transactional_id=self._name, producer_id=self._id, producer_epoch=self._epoch, committed=commit
        )
        answer = self._ask(self._coordinator, request, 5 if self._newer else 4, lambda one: [one.error_code])
        if self._newer:
            if (self._id, self._epoch) != (answer.producer_id, answer.producer_epoch):
                self._sequences.clear()
            self._id, self._epoch = answer.producer_id, answer.producer_epoch
