"""Produce, versions 0 to 13: appends record sets, and answers when they are as safe as the producer asked.

- v0-v2 carry message sets of magic 0 and 1 (a v2 batch inside is accepted as 3.9 does), v3+ exactly one v2 batch per partition.
- acks=0 gets no answer, and a closed connection if anything was refused; acks=1 is answered after the write, acks=-1 after the sync.
- A topic named twice in one request is answered once, with the partitions of both; a partition named twice counts once, the
  last one. Both as real brokers do.
- The text of a refusal is null but for records that are refused one by one and for batches outside of their transaction.
- v13+ names topics by id.
- Batches of a transaction have to belong to one: see `transactional_produce`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from horolog.broker.handlers import transactional_produce
from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.broker.handlers.lookup import storage_error_for
from horolog.broker.log.partition import Partition
from horolog.broker.log.storage import StorageFault
from horolog.broker.log.validation import Refused
from horolog.broker.safety import Failures
from horolog.broker.topic import Topic
from horolog.broker.topic_names import INTERNAL_TOPICS
from horolog.protocol.errors import ErrorCode, ProtocolError
from horolog.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from horolog.protocol.records.head import ATTRIBUTES_LOW_AT, TRANSACTIONAL_BIT

ACKS_NONE, ACKS_LEADER, ACKS_ALL = 0, 1, -1
LAST_VERSION_WITH_NAMES = 12
LAST_VERSION_WITH_OLD_FORMATS = 2
FIRST_VERSION_WITH_STORAGE_ERROR = 4

REFUSED_RECORDS = frozenset({ErrorCode.INVALID_RECORD, ErrorCode.INVALID_TIMESTAMP})
"""Refusals of records, not of a batch or of the partition: Kafka gives a text for these only."""


NONE_REFUSED: Mapping[Partition, ErrorCode] = {}


class Produced:
    """A request whose records are appended but not yet written: the committer finishes it."""

    __slots__ = ("acks", "answers", "context", "durable", "partitions", "response")

    def __init__(self, context: RequestContext, response: ProduceResponse, acks: int) -> None:
        self.context = context
        self.response = response
        self.acks = acks
        self.partitions: list[Partition] = []
        self.answers: list[PartitionProduceResponse] = []  # one for each partition
        self.durable = False

    def __repr__(self) -> str:
        return f"<Produced acks={self.acks} to {len(self.partitions)} partitions for {self.context!r}>"

    def finish(self, failures: Failures) -> None:
        if failures:
            code = storage_error_for(self.context.version, FIRST_VERSION_WITH_STORAGE_ERROR)
            for partition, answer in zip(self.partitions, self.answers, strict=True):
                if partition in failures:
                    _refuse(answer, code)
        _answer(self.context, self.acks, self.response)


def handle(broker: BrokerView, request: ProduceRequest, context: RequestContext) -> None:
    acks = request.acks
    if not -1 <= acks <= 1:
        refuse_all(request, context, ErrorCode.INVALID_REQUIRED_ACKS)
        return
    if request.transactional_id is None and _has_transactional_batch(request, context.version):
        refuse_all(request, context, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return
    topics = request.topic_data if len(request.topic_data) == 1 else _each_topic_once(request.topic_data)
    if request.transactional_id is None:
        _serve(broker, topics, acks, context, NONE_REFUSED)
    else:
        found = _partitions_to_verify(broker, topics, context.version)
        serve = partial(_serve, broker, topics, acks, context)
        transactional_produce.verify(broker, request.transactional_id, found, context.version, serve)


def _serve(
    broker: BrokerView,
    topics: Iterable[TopicProduceData],
    acks: int,
    context: RequestContext,
    refused: Mapping[Partition, ErrorCode],
) -> None:
    """Append the records that are not refused, and answer once they are written."""
    responses: list[TopicProduceResponse] = []
    response = ProduceResponse(responses=responses)
    produced = Produced(context, response, acks)
    now_ms = broker.clock.wall_ms()
    for topic_data in topics:
        topic = _find_topic(broker, topic_data, context.version)
        answers: list[PartitionProduceResponse] = []
        for data in _last_of_each_partition(topic_data.partition_data):
            answer = PartitionProduceResponse(index=data.index)
            answers.append(answer)
            partition = _append(topic, data, answer, context, now_ms, refused)
            if partition is not None:
                produced.partitions.append(partition)
                produced.answers.append(answer)
                if partition.flush_is_due:
                    produced.durable = True
        responses.append(
            TopicProduceResponse(name=topic_data.name, topic_id=topic_data.topic_id, partition_responses=answers)
        )
    if not produced.partitions:
        _answer(context, acks, response)
        return
    if acks == ACKS_ALL and broker.settings.horolog_acks_all_sync:
        produced.durable = True
    broker.committer.submit(produced)


def _has_transactional_batch(request: ProduceRequest, version: int) -> bool:
    """Whether any batch says that it belongs to a transaction."""
    if version <= LAST_VERSION_WITH_OLD_FORMATS:
        return False
    for topic_data in request.topic_data:
        for data in topic_data.partition_data:
            records: memoryview | None = data.records  # type: ignore[assignment]  # decoded ones are views of the frame
            if records and len(records) > ATTRIBUTES_LOW_AT and records[ATTRIBUTES_LOW_AT] & TRANSACTIONAL_BIT:
                return True
    return False


def refuse_all(request: ProduceRequest, context: RequestContext, code: ErrorCode, message: str | None = None) -> None:
    """A request that cannot be served at all gets the same error for every partition."""
    response = ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic_data.name,
                topic_id=topic_data.topic_id,
                partition_responses=[
                    PartitionProduceResponse(index=data.index, error_code=code, base_offset=-1, error_message=message)
                    for data in _last_of_each_partition(topic_data.partition_data)
                ],
            )
            for topic_data in _each_topic_once(request.topic_data)
        ]
    )
    _answer(context, request.acks, response)


def _find_topic(broker: BrokerView, data: TopicProduceData, version: int) -> Topic | ErrorCode:
    if version > LAST_VERSION_WITH_NAMES:
        topic = broker.cluster.by_id.get(data.topic_id)
        if topic is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
    else:
        topic = broker.cluster.topics.get(data.name)
        if topic is None:
            internal = data.name in INTERNAL_TOPICS
            return ErrorCode.INVALID_TOPIC_EXCEPTION if internal else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.INVALID_TOPIC_EXCEPTION if topic.internal else topic


def _each_topic_once(topics: list[TopicProduceData]) -> list[TopicProduceData]:
    """By name and id, one of which every version sends: with the partitions of all places where the request names it."""
    merged: dict[tuple[str, bytes], TopicProduceData] = {}
    for each in topics:
        first = merged.setdefault((each.name, each.topic_id), each)
        if first is not each:
            first.partition_data = [*first.partition_data, *each.partition_data]
    return list(merged.values())


def _last_of_each_partition(partitions: list[PartitionProduceData]) -> Sequence[PartitionProduceData]:
    if len(partitions) == 1:
        return partitions
    return list({data.index: data for data in partitions}.values())


def _partitions_to_verify(
    broker: BrokerView, topics: Iterable[TopicProduceData], version: int
) -> list[tuple[Partition, memoryview]]:
    """Partitions that would take their records, were it not for the transaction."""
    found: list[tuple[Partition, memoryview]] = []
    for topic_data in topics:
        topic = _find_topic(broker, topic_data, version)
        for data in _last_of_each_partition(topic_data.partition_data):
            partition = topic if isinstance(topic, ErrorCode) else topic.find(data.index)
            if not isinstance(partition, ErrorCode):
                records = _records_of(data, partition, version)
                if partition.condition.fault is None:
                    found.append((partition, records))
    return found


def _records_of(data: PartitionProduceData, partition: Partition, version: int) -> memoryview:
    records: memoryview | None = data.records  # type: ignore[assignment]  # decoded ones are views of the frame
    if records is None:
        raise ProtocolError(f"Produce v{version} with null records for {partition.topic}-{partition.index}")
    return records


def _append(
    topic: Topic | ErrorCode,
    data: PartitionProduceData,
    answer: PartitionProduceResponse,
    context: RequestContext,
    now_ms: int,
    refused: Mapping[Partition, ErrorCode],
) -> Partition | None:
    """Append one partition's records; the partition if there is something to write and to answer for."""
    if isinstance(topic, ErrorCode):
        _refuse(answer, topic)
        return None
    partition = topic.find(data.index)
    if isinstance(partition, ErrorCode):
        _refuse(answer, partition)
        return None
    records = _records_of(data, partition, context.version)
    if partition.condition.fault is not None:
        _refuse(answer, storage_error_for(context.version, FIRST_VERSION_WITH_STORAGE_ERROR))
        return None
    if refused and partition in refused:
        code = refused[partition]
        _refuse(answer, code, code.message if code == ErrorCode.INVALID_TXN_STATE else None)
        return None
    try:
        result = partition.append(records, now_ms, produce_version=context.version)
    except Refused as refusal:
        if refusal.code in REFUSED_RECORDS:
            _refuse(answer, refusal.code, refusal.message, refusal.record_errors)
            answer.log_start_offset = partition.log_start_offset
        else:
            _refuse(answer, refusal.code)
        return None
    except StorageFault:
        _refuse(answer, storage_error_for(context.version, FIRST_VERSION_WITH_STORAGE_ERROR))
        return None
    answer.base_offset = result.base_offset
    answer.log_append_time_ms = result.append_time
    answer.log_start_offset = result.log_start_offset
    return partition


def _refuse(
    answer: PartitionProduceResponse,
    code: ErrorCode,
    message: str | None = None,
    record_errors: Sequence[tuple[int, str]] = (),
) -> None:
    answer.error_code = code
    answer.base_offset = -1
    answer.log_append_time_ms = -1
    answer.error_message = message
    answer.record_errors = [
        BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=text) for index, text in record_errors
    ]


def _answer(context: RequestContext, acks: int, response: ProduceResponse) -> None:
    if acks != ACKS_NONE:
        context.reply(response)
        return
    if any(answer.error_code for topic in response.responses for answer in topic.partition_responses):
        context.connection.close("a Produce with acks=0 was refused, and closing is the only way to say so")
    context.reply_nothing()
