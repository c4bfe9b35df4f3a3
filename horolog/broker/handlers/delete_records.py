"""DeleteRecords, versions 0 to 2: moves the start of partitions forward.

- -1 means the high watermark; beyond it, or below -1: OFFSET_OUT_OF_RANGE; below the start: nothing to do, no error.
- A topic whose records are only compacted keeps them: POLICY_VIOLATION; an internal topic: INVALID_TOPIC_EXCEPTION.
- A partition that is named several times is moved to the last of its offsets, and answered once; a topic without partitions has no
  answer.
- The new start is on the disk before the answer, or in the store where brokers share one. If that takes longer than 20 seconds, the answer
  is REQUEST_TIMED_OUT, and the start may move later; `timeout_ms` is not used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from horolog.broker.base.answers import Answer, run
from horolog.broker.base.topic_names import INTERNAL_TOPICS
from horolog.broker.cluster.cluster import Cluster
from horolog.broker.commit.safety import NotSafe
from horolog.broker.coordination.keyed_queue import gather
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
    wanted = each_topic_once(
        (topic.name, [(each.partition_index, each.offset) for each in topic.partitions]) for topic in request.topics
    )
    asked = [(name, index, offset) for name, offsets in wanted.items() for index, offset in dict(offsets).items()]

    def answer(results: list[int | ErrorCode]) -> None:
        failed = broker.logs.write_log_starts()
        topics: dict[str, list[DeleteRecordsPartitionResult]] = {}
        for (name, index, _), result in zip(asked, results, strict=True):
            is_kept = not isinstance(result, ErrorCode) and (name, index) in failed
            topics.setdefault(name, []).append(_result(index, ErrorCode.KAFKA_STORAGE_ERROR if is_kept else result))
        found = [DeleteRecordsTopicResult(name=name, partitions=each) for name, each in topics.items()]
        context.reply(DeleteRecordsResponse(topics=found))

    gather([partial(_begin, broker.cluster, *one) for one in asked], answer)


def _result(index: int, result: int | ErrorCode) -> DeleteRecordsPartitionResult:
    if isinstance(result, ErrorCode):
        return DeleteRecordsPartitionResult(partition_index=index, low_watermark=NO_WATERMARK, error_code=result)
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=result, error_code=ErrorCode.NONE)


def _begin(cluster: Cluster, name: str, index: int, offset: int, done: Callable[[int | ErrorCode], None]) -> None:
    """Partitions wait beside each other for a store that takes its time."""

    async def steps() -> None:
        done(await _delete_before(cluster, name, index, offset))

    run(steps())


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
