"""The simplest possible Produce, on messages as objects: the reference for the broker's own handler.

Nothing is kept from one request to the next, every rule is checked in its place, and each response is sent separately.
"""

from __future__ import annotations

from collections.abc import Mapping

from horolog.broker.base.topic_names import INTERNAL_TOPICS
from horolog.broker.commit.committer import InternalCommit
from horolog.broker.commit.safety import Failures
from horolog.broker.handlers import HANDLERS, Handler, transactional_produce
from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.broker.log.partition import Partition
from horolog.broker.log.storage import StorageFault
from horolog.broker.log.validation import RefusedSet
from horolog.protocol.apis import ApiKey
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

TRANSACTIONAL_AT, TRANSACTIONAL = 22, 0x10
Place = tuple[str, bytes, int]


def asked(request: ProduceRequest) -> dict[tuple[str, bytes], dict[int, PartitionProduceData]]:
    """Each topic once, and for each partition the last entry of the request."""
    topics: dict[tuple[str, bytes], dict[int, PartitionProduceData]] = {}
    for topic in request.topic_data:
        partitions = topics.setdefault((topic.name, topic.topic_id), {})
        for data in topic.partition_data:
            partitions[data.index] = data
    return topics


def find(broker: BrokerView, topic: TopicProduceData | tuple[str, bytes], index: int, version: int) -> object:
    name, topic_id = topic if isinstance(topic, tuple) else (topic.name, topic.topic_id)
    if version >= 13:
        found = [one for one in broker.cluster.topics.values() if one.id == topic_id]
        missing = ErrorCode.UNKNOWN_TOPIC_ID
    else:
        found = [one for one in broker.cluster.topics.values() if one.name == name]
        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if not found and name in INTERNAL_TOPICS:
            missing = ErrorCode.INVALID_TOPIC_EXCEPTION
    if not found:
        return missing
    return ErrorCode.INVALID_TOPIC_EXCEPTION if found[0].internal else found[0].find(index)


class PlainProduce:
    """One request."""

    def __init__(self, broker: BrokerView, request: ProduceRequest, context: RequestContext) -> None:
        self.broker = broker
        self.request = request
        self.context = context
        self.topics = asked(request)
        self.answers = {
            (*topic, index): PartitionProduceResponse(index=index)
            for topic, partitions in self.topics.items()
            for index in partitions
        }

    def refuse(self, place: Place, code: ErrorCode, message: str | None = None) -> None:
        answer = self.answers[place]
        answer.error_code, answer.base_offset, answer.log_append_time_ms = code, -1, -1
        answer.error_message = message

    def answer(self) -> None:
        if self.request.acks == 0:
            if any(answer.error_code for answer in self.answers.values()):
                self.context.connection.close("refused")
            self.context.set_no_response()
            self.context.connection.answered()
            return
        topics = [
            TopicProduceResponse(
                name=name,
                topic_id=topic_id,
                partition_responses=[self.answers[name, topic_id, index] for index in partitions],
            )
            for (name, topic_id), partitions in self.topics.items()
        ]
        self.context.reply(ProduceResponse(responses=topics))

    def storage_error(self) -> ErrorCode:
        return ErrorCode.KAFKA_STORAGE_ERROR if self.context.version >= 4 else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def refuse_all(self, code: ErrorCode) -> None:
        for place in self.answers:
            self.refuse(place, code)
        self.answer()

    def serve(self, refused: Mapping[Partition, ErrorCode]) -> None:
        appended: dict[Place, Partition] = {}
        for topic, partitions in self.topics.items():
            for index, data in partitions.items():
                partition = find(self.broker, topic, index, self.context.version)
                if not isinstance(partition, Partition):
                    assert isinstance(partition, ErrorCode)
                    self.refuse((*topic, index), partition)
                elif self.append((*topic, index), partition, data, refused):
                    appended[*topic, index] = partition
        if not appended:
            self.answer()
            return

        def written(failures: Failures) -> None:
            for place, partition in appended.items():
                if partition in failures:
                    self.refuse(place, self.storage_error())
            self.answer()

        wants_sync = self.request.acks == -1 and self.broker.settings.horolog_acks_all_sync
        durable = wants_sync or any(
            one.durability.is_due_at(one.log_end_offset, one.config.flush_messages) for one in appended.values()
        )
        self.broker.committer.submit(InternalCommit(list(appended.values()), written, durable=durable))

    def append(
        self, place: Place, partition: Partition, data: PartitionProduceData, refused: Mapping[Partition, ErrorCode]
    ) -> bool:
        if data.records is None:
            raise ProtocolError("null records")
        if partition.condition.fault is not None:
            self.refuse(place, self.storage_error())
            return False
        if partition in refused:
            code = refused[partition]
            self.refuse(place, code, code.message if code == ErrorCode.INVALID_TXN_STATE else None)
            return False
        answer = self.answers[place]
        try:
            now_ms = self.broker.clock.wall_ms()
            result = partition.append(bytes(data.records), now_ms, produce_version=self.context.version)
        except RefusedSet as refusal:
            self.refuse(place, refusal.code)
            if refusal.code in {ErrorCode.INVALID_RECORD, ErrorCode.INVALID_TIMESTAMP}:
                answer.error_message = refusal.message
                answer.record_errors = [
                    BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=text)
                    for index, text in refusal.record_errors
                ]
                answer.log_start_offset = partition.log_start_offset
            return False
        except StorageFault:
            self.refuse(place, self.storage_error())
            return False
        answer.base_offset, answer.log_append_time_ms = result.base_offset, result.append_time
        answer.log_start_offset = result.log_start_offset
        return True


def handle(broker: BrokerView, request: ProduceRequest, context: RequestContext) -> None:
    plain = PlainProduce(broker, request, context)
    every = [data for topic in request.topic_data for data in topic.partition_data]
    if request.acks not in {-1, 0, 1}:
        plain.refuse_all(ErrorCode.INVALID_REQUIRED_ACKS)
        return
    if request.transactional_id is None:
        heads = [bytes(data.records or b"")[: TRANSACTIONAL_AT + 1] for data in every]
        marked = [head for head in heads if len(head) > TRANSACTIONAL_AT and head[TRANSACTIONAL_AT] & TRANSACTIONAL]
        if context.version >= 3 and marked:
            plain.refuse_all(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        else:
            plain.serve({})
        return
    found: list[tuple[Partition, memoryview]] = []
    for topic, partitions in plain.topics.items():
        for index, data in partitions.items():
            partition = find(broker, topic, index, context.version)
            if isinstance(partition, Partition):
                if data.records is None:
                    raise ProtocolError("null records")
                if partition.condition.fault is None:
                    found.append((partition, memoryview(bytes(data.records))))
    transactional_produce.verify(broker, request.transactional_id, found, context.version, plain.serve)


HANDLERS_WITH_PLAIN_PRODUCE = {**HANDLERS, ApiKey.PRODUCE: Handler(0, 13, handle)}
