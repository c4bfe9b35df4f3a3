"""DescribeProducers, version 0: the producers that have written to a partition, and their open transactions."""

from __future__ import annotations

from horolog.broker.base.topic_names import wrong_with
from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.broker.handlers.lookup import find_partition
from horolog.broker.log.producers import KnownProducer
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.transactions import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


def handle(
    broker: BrokerView,
    request: DescribeProducersRequest,
    context: RequestContext,  # noqa: ARG001
) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[_describe(broker, topic.name, index) for index in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )


def _describe(broker: BrokerView, name: str, index: int) -> PartitionResponse:
    wrong = wrong_with(name)
    if wrong is not None:
        return _refused(index, ErrorCode.INVALID_TOPIC_EXCEPTION, wrong)
    found = find_partition(broker.cluster, name, index)
    if isinstance(found, ErrorCode):
        # A known topic without this partition is refused without a text, as by Kafka.
        return _refused(index, found, None if name in broker.cluster.topics else found.message)
    return PartitionResponse(
        partition_index=index,
        error_code=ErrorCode.NONE,
        active_producers=[_producer(producer_id, one) for producer_id, one in found.producers],
    )


def _refused(index: int, code: ErrorCode, message: str | None) -> PartitionResponse:
    return PartitionResponse(partition_index=index, error_code=code, error_message=message, active_producers=[])


def _producer(producer_id: int, known: KnownProducer) -> ProducerState:
    return ProducerState(
        producer_id=producer_id,
        producer_epoch=known.epoch,
        last_sequence=known.last_sequence,
        last_timestamp=known.last_timestamp,
        coordinator_epoch=known.coordinator_epoch,
        current_txn_start_offset=known.transaction_start,
    )
