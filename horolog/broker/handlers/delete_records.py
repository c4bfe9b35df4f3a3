"""DeleteRecords, versions 0 to 2: moves the start of partitions forward.

- -1 means the high watermark; beyond it, or below -1: OFFSET_OUT_OF_RANGE; below the start: nothing to do, no error.
- A topic whose records are only compacted keeps them: POLICY_VIOLATION; an internal topic: INVALID_TOPIC_EXCEPTION.
- A partition that is named several times is moved to the last of its offsets, and answered once; a topic without partitions has no
  answer.
- The new start is on the disk before the answer; `timeout_ms` is not used.
"""

from __future__ import annotations

from horolog.broker.base.topic_names import INTERNAL_TOPICS
from horolog.broker.cluster.cluster import Cluster
from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.broker.handlers.lookup import find_partition, storage_error
from horolog.broker.log.partition import log_start
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


def handle(broker: BrokerView, request: DeleteRecordsRequest, context: RequestContext) -> DeleteRecordsResponse:  # noqa: ARG001
    asked = each_topic_once(
        (topic.name, [(each.partition_index, each.offset) for each in topic.partitions]) for topic in request.topics
    )
    topics = [
        DeleteRecordsTopicResult(
            name=name,
            partitions=[_delete(broker.cluster, name, index, offset) for index, offset in dict(offsets).items()],
        )
        for name, offsets in asked.items()
        if offsets
    ]
    failed = broker.logs.write_log_starts()
    for told in topics if failed else ():
        for answer in told.partitions:
            if not answer.error_code and (told.name, answer.partition_index) in failed:
                answer.error_code, answer.low_watermark = ErrorCode.KAFKA_STORAGE_ERROR, NO_WATERMARK
    return DeleteRecordsResponse(topics=topics)


def _delete(cluster: Cluster, name: str, index: int, offset: int) -> DeleteRecordsPartitionResult:
    result = delete_before(cluster, name, index, offset)
    failed = isinstance(result, ErrorCode)
    return DeleteRecordsPartitionResult(
        partition_index=index,
        low_watermark=NO_WATERMARK if failed else result,
        error_code=result if failed else ErrorCode.NONE,
    )


def delete_before(cluster: Cluster, name: str, index: int, offset: int) -> int | ErrorCode:
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
        try:
            log_start.delete_records_before(partition, target)
        except StorageFault as fault:
            return storage_error(partition, fault)
    return partition.log_start_offset
