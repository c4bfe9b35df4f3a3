"""DeleteRecords, versions 0 to 2: moves the start of partitions forward.

- -1 means the high watermark; beyond it, or below -1: OFFSET_OUT_OF_RANGE; below the start: nothing to do, no error.
- A topic whose records are only compacted keeps them: POLICY_VIOLATION; an internal topic: INVALID_TOPIC_EXCEPTION.
- A partition that is named several times is moved to the last of its offsets, and answered once; a topic without partitions has no
  answer.
- The new start is on the disk before the answer, or in the store where brokers share one; `timeout_ms` is not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from horolog.broker.base.answers import Answer, run
from horolog.broker.base.topic_names import INTERNAL_TOPICS
from horolog.broker.cluster.cluster import Cluster
from horolog.broker.commit.safety import NotSafe
from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.broker.handlers.lookup import find_partition, storage_error
from horolog.broker.log.storage import StorageFault
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.topics import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from horolog.protocol.topic_partition import each_topic_once

HIGH_WATERMARK = -1
NO_WATERMARK = -1


def handle(broker: BrokerView, request: DeleteRecordsRequest, context: RequestContext) -> None:
    asked = each_topic_once(
        (topic.name, [(each.partition_index, each.offset) for each in topic.partitions]) for topic in request.topics
    )
    run(_answer(broker, [(name, dict(offsets)) for name, offsets in asked.items() if offsets], context))


async def _answer(broker: BrokerView, asked: Sequence[tuple[str, dict[int, int]]], context: RequestContext) -> None:
    topics = [
        DeleteRecordsTopicResult(
            name=name,
            partitions=[await _delete(broker.cluster, name, index, offset) for index, offset in offsets.items()],
        )
        for name, offsets in asked
    ]
    failed = broker.logs.write_log_starts()
    for topic in topics if failed else ():
        for answer in topic.partitions:
            if not answer.error_code and (topic.name, answer.partition_index) in failed:
                answer.error_code, answer.low_watermark = ErrorCode.KAFKA_STORAGE_ERROR, NO_WATERMARK
    context.reply(DeleteRecordsResponse(topics=topics))


async def _delete(cluster: Cluster, name: str, index: int, offset: int) -> DeleteRecordsPartitionResult:
    result = await _delete_before(cluster, name, index, offset)
    failed = isinstance(result, ErrorCode)
    return DeleteRecordsPartitionResult(
        partition_index=index,
        low_watermark=NO_WATERMARK if failed else result,
        error_code=result if failed else ErrorCode.NONE,
    )


async def _delete_before(cluster: Cluster, name: str, index: int, offset: int) -> int | ErrorCode:
    """The partition's new start, or why it did not move."""
    partition = find_partition(cluster, name, index)
    if isinstance(partition, ErrorCode):
        return partition
    if name in INTERNAL_TOPICS:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if not partition.config.delete:
        return ErrorCode.POLICY_VIOLATION
    target = partition.high_watermark if offset == HIGH_WATERMARK else offset
    if not 0 <= target <= partition.high_watermark:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    if target > partition.log_start_offset:
        fault = await Answer[StorageFault | None](partial(cluster.move_start, partition, target))
        if fault is not None:
            return fault.error if isinstance(fault, NotSafe) else storage_error(partition, fault)
    return partition.log_start_offset
