"""ListOffsets, versions 0 to 11: offsets by time, and the earliest, the latest and the one of the largest timestamp.

- v0 answers from segment base offsets and file times, newest first, at most `max_num_offsets`; a negative number of them is
  UNKNOWN_SERVER_ERROR, as on real brokers.
- v1+ answers exactly (`lookups.first_at_or_after`). Negative targets: -1 latest, -2 earliest, -3 largest timestamp (v7+),
  -4 earliest local (v8+: the earliest, all data is local), -5 latest tiered (v9+) and -6 earliest pending upload (v11+):
  none, for nothing is tiered. Others, and these in older versions: UNSUPPORTED_VERSION for the partition.
- v2+: read_committed sees up to the last stable offset; a record behind it is no answer.
- v4+: the leader epoch is checked and answered. A partition named twice in v1+ is answered once, with INVALID_REQUEST.
- A topic that stores magic 0 has no times: UNSUPPORTED_FOR_MESSAGE_FORMAT for targets by time.
- v10's timeout is not used: an answer never waits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from horolog.broker.cluster import Cluster
from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.broker.handlers.lookup import epoch_error, find_partition, storage_error
from horolog.broker.log.partition import Partition, lookups
from horolog.broker.log.storage import StorageFault
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)

LATEST, EARLIEST, LARGEST_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
FIRST_VERSION_OF_TARGET = {
    LATEST: 0,
    EARLIEST: 0,
    LARGEST_TIMESTAMP: 7,
    EARLIEST_LOCAL: 8,
    LATEST_TIERED: 9,
    EARLIEST_PENDING_UPLOAD: 11,
}
FIRST_VERSION_WITH_EPOCH = 4
READ_COMMITTED = 1
NONE = -1


def handle(broker: BrokerView, request: ListOffsetsRequest, context: RequestContext) -> ListOffsetsResponse:
    version = context.version
    if version == 0:
        return _answer_v0(broker, request)
    committed = request.isolation_level == READ_COMMITTED
    twice = _named_twice(request.topics)
    topics = []
    for topic in request.topics:
        name, asked = topic.name, topic.partitions
        if twice:
            asked = list({each.partition_index: each for each in asked}.values())
        answers = [
            _failed(each.partition_index, ErrorCode.INVALID_REQUEST)
            if twice and (name, each.partition_index) in twice
            else _answer(broker.cluster, name, each, version, committed)
            for each in asked
        ]
        topics.append(ListOffsetsTopicResponse(name=name, partitions=answers))
    return ListOffsetsResponse(topics=topics)


def _named_twice(topics: Sequence[ListOffsetsTopic]) -> set[tuple[str, int]]:
    if len(topics) == 1 and len(topics[0].partitions) == 1:
        return set()
    counts = Counter((topic.name, each.partition_index) for topic in topics for each in topic.partitions)
    return {key for key, count in counts.items() if count > 1}


def _answer(
    cluster: Cluster, name: str, asked: ListOffsetsPartition, version: int, committed: bool
) -> ListOffsetsPartitionResponse:
    index, target = asked.partition_index, asked.timestamp
    if target < 0 and version < FIRST_VERSION_OF_TARGET.get(target, version + 1):
        return _failed(index, ErrorCode.UNSUPPORTED_VERSION)
    partition = find_partition(cluster, name, index)
    if isinstance(partition, ErrorCode):
        return _failed(index, partition)
    stale = epoch_error(partition, asked.current_leader_epoch)
    if stale is not None:
        return _failed(index, stale)
    if partition.config.stored_magic == 0 and (target >= 0 or target == LARGEST_TIMESTAMP):
        return _failed(index, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT)
    try:
        timestamp, offset, leader_epoch = look_up(partition, target, committed)
    except StorageFault as fault:
        return _failed(index, storage_error(partition, fault))
    return ListOffsetsPartitionResponse(
        partition_index=index,
        error_code=ErrorCode.NONE,
        timestamp=timestamp,
        offset=offset,
        leader_epoch=leader_epoch if version >= FIRST_VERSION_WITH_EPOCH else NONE,
    )


def look_up(partition: Partition, target: int, committed: bool) -> tuple[int, int, int]:
    """The (timestamp, offset, leader epoch) that a target stands for; -1 for what there is not."""
    end = partition.last_stable_offset if committed else partition.high_watermark
    if target == LATEST:
        return NONE, end, partition.leader_epoch
    if target in (EARLIEST, EARLIEST_LOCAL):
        return NONE, partition.log_start_offset, lookups.epoch_at(partition, partition.log_start_offset)
    if target < EARLIEST_LOCAL:
        return NONE, NONE, NONE
    if target == LARGEST_TIMESTAMP:
        found = lookups.largest_timestamp(partition)
    else:
        found = lookups.first_at_or_after(partition, target, end)
    if found is None or found.offset >= end:
        return NONE, NONE, NONE
    return found.timestamp, found.offset, found.leader_epoch


def _failed(index: int, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(
        partition_index=index, error_code=code, timestamp=NONE, offset=NONE, leader_epoch=NONE, old_style_offsets=[]
    )


def _answer_v0(broker: BrokerView, request: ListOffsetsRequest) -> ListOffsetsResponse:
    now_ms = broker.clock.wall_ms()
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[_offsets_before(broker.cluster, topic.name, each, now_ms) for each in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _offsets_before(
    cluster: Cluster, name: str, asked: ListOffsetsPartition, now_ms: int
) -> ListOffsetsPartitionResponse:
    index = asked.partition_index
    partition = find_partition(cluster, name, index)
    if isinstance(partition, ErrorCode):
        return _failed(index, partition)
    if asked.max_num_offsets < 0:
        return _failed(index, ErrorCode.UNKNOWN_SERVER_ERROR)
    try:
        offsets = lookups.offsets_before(partition, asked.timestamp, asked.max_num_offsets, now_ms)
    except StorageFault as fault:
        return _failed(index, storage_error(partition, fault))
    return ListOffsetsPartitionResponse(partition_index=index, error_code=ErrorCode.NONE, old_style_offsets=offsets)
