"""DescribeTopicPartitions, version 0: topics and their partitions in the order of names, a page at a time.

- No topics: all of them. A topic that does not exist is UNKNOWN_TOPIC_OR_PARTITION; among all topics there is none.
- A page has at most as many partitions as the request and `max.request.partition.size.limit` allow, and at least one. The
  rest begins at the cursor, which names a topic that no longer fits with partition 0. A topic that does not exist ends a full page too.
- A cursor at a topic that the request does not name, or at a negative partition, is INVALID_REQUEST for each named topic.
- Authorised operations are always included, as on real brokers.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import cast

from horolog.broker.base.topic_names import INTERNAL_TOPICS, wrong_with
from horolog.broker.cluster.topic import NO_TOPIC_ID, Topic
from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.broker.handlers.lookup import Leadership, leadership
from horolog.broker.handlers.operations import TOPIC_OPERATIONS
from horolog.broker.handlers.partition_rows import LARGE, RowForm, begun
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.metadata import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseCursor,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

FROM_THE_START = Cursor(topic_name="", partition_index=0)


def handle(
    broker: BrokerView,
    request: DescribeTopicPartitionsRequest,
    context: RequestContext,  # noqa: ARG001
) -> DescribeTopicPartitionsResponse | Generator[None, None, DescribeTopicPartitionsResponse]:
    return begun(_answered(broker, request))


def _answered(
    broker: BrokerView, request: DescribeTopicPartitionsRequest
) -> Generator[None, None, DescribeTopicPartitionsResponse]:
    cluster = broker.cluster
    cursor = request.cursor or FROM_THE_START
    room = max(1, min(request.response_partition_limit, broker.settings.max_request_partition_size_limit))
    asked = {topic.name for topic in request.topics}
    if cursor.partition_index < 0 or (request.cursor is not None and asked and cursor.topic_name not in asked):
        return DescribeTopicPartitionsResponse(
            topics=[_refused(each.name, ErrorCode.INVALID_REQUEST) for each in request.topics]
        )
    names = asked or set(cluster.topics)
    answers: list[DescribeTopicPartitionsResponseTopic] = []
    response = DescribeTopicPartitionsResponse(topics=answers)
    for name in sorted(name for name in names if name >= cursor.topic_name):
        first = cursor.partition_index if name == cursor.topic_name else 0
        topic = cluster.topics.get(name)
        if not room:
            response.next_cursor = DescribeTopicPartitionsResponseCursor(topic_name=name, partition_index=0)
            break
        if topic is None:
            wrong = wrong_with(name) is not None
            unknown = ErrorCode.INVALID_TOPIC_EXCEPTION if wrong else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            answers.append(_refused(name, unknown))
            continue
        indexes = range(max(0, first), topic.partition_count)
        described = _described(topic)
        answers.append(described)
        described.partitions = yield from _rows(broker, topic, indexes[:room])
        if len(indexes) > room:
            following = indexes[room]
            response.next_cursor = DescribeTopicPartitionsResponseCursor(topic_name=name, partition_index=following)
            break
        room -= len(indexes)
    return response


def _refused(name: str, code: ErrorCode) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=code,
        name=name,
        topic_id=NO_TOPIC_ID,
        is_internal=name in INTERNAL_TOPICS,
        partitions=[],
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _described(topic: Topic) -> DescribeTopicPartitionsResponseTopic:
    return DescribeTopicPartitionsResponseTopic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.id,
        is_internal=topic.internal,
        partitions=[],
        topic_authorized_operations=TOPIC_OPERATIONS,
    )


def _rows(
    broker: BrokerView, topic: Topic, indexes: range
) -> Generator[None, None, list[DescribeTopicPartitionsResponsePartition]]:
    if topic.partition_count < LARGE:
        return [_row(index, leadership(broker.placement, topic, index)) for index in indexes]
    rows = yield from broker.partition_rows.of(topic, RowForm(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, _row), indexes)
    return cast("list[DescribeTopicPartitionsResponsePartition]", rows)


def _row(index: int, told: Leadership) -> DescribeTopicPartitionsResponsePartition:
    return DescribeTopicPartitionsResponsePartition(
        error_code=told.code,
        partition_index=index,
        leader_id=told.leader,
        leader_epoch=told.epoch,
        replica_nodes=told.replicas,
        isr_nodes=told.replicas,
        eligible_leader_replicas=[],
        last_known_elr=[],
        offline_replicas=told.offline,
    )
