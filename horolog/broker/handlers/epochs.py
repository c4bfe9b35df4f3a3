"""OffsetForLeaderEpoch, versions 0 to 4: where a leader epoch ended.

- An epoch that the partition has never had is answered with -1/-1 and no error.
- v2+: the client's current epoch is checked (FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH).
"""

from __future__ import annotations

from horolog.broker.cluster.cluster import Cluster
from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.broker.handlers.lookup import epoch_error, find_partition
from horolog.broker.log.partition import lookups
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.list_offsets import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

NONE = -1


def handle(
    broker: BrokerView,
    request: OffsetForLeaderEpochRequest,
    context: RequestContext,  # noqa: ARG001
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_answer(broker.cluster, topic.topic, each) for each in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _answer(cluster: Cluster, name: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    partition = find_partition(cluster, name, asked.partition)
    if isinstance(partition, ErrorCode):
        return _failed(asked, partition)
    stale = epoch_error(partition, asked.current_leader_epoch)
    if stale is not None:
        return _failed(asked, stale)
    epoch, end_offset = lookups.end_offset_for_epoch(partition, asked.leader_epoch)
    return EpochEndOffset(
        error_code=ErrorCode.NONE, partition=asked.partition, leader_epoch=epoch, end_offset=end_offset
    )


def _failed(asked: OffsetForLeaderPartition, code: ErrorCode) -> EpochEndOffset:
    return EpochEndOffset(error_code=code, partition=asked.partition, leader_epoch=NONE, end_offset=NONE)
