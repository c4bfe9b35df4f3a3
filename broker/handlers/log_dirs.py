"""DescribeLogDirs, versions 0 to 5: the data folder, its room, and the sizes of partitions.

- A null list of topics means all; partitions that are not here are left out.
- There is one data folder, no replica lags behind and none is moving. v4+ tells the disk's size and what is left of it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable

from broker.cluster import Cluster
from broker.handlers.context import BrokerView, RequestContext
from broker.log.manager import LogManager
from broker.log.storage import StorageFault
from protocol.errors import ErrorCode
from protocol.messages.log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

log = logging.getLogger(__name__)

UNKNOWN_SIZE = -1


def handle(broker: BrokerView, request: DescribeLogDirsRequest, context: RequestContext) -> DescribeLogDirsResponse:  # noqa: ARG001
    total_bytes, usable_bytes = disk_space(broker.logs)
    result = DescribeLogDirsResult(
        error_code=ErrorCode.NONE,
        log_dir=os.path.abspath(broker.logs.data_dir),  # noqa: PTH100 - nothing is resolved, as Kafka shows it
        topics=_topics(broker.cluster, request.topics),
        total_bytes=total_bytes,
        usable_bytes=usable_bytes,
    )
    return DescribeLogDirsResponse(error_code=ErrorCode.NONE, results=[result])


def disk_space(logs: LogManager) -> tuple[int, int]:
    """The size of the disk and what is left of it for us; -1 where the system does not say."""
    try:
        return logs.disk_space()
    except StorageFault as fault:
        log.warning("%r: %s", logs, fault)
        return UNKNOWN_SIZE, UNKNOWN_SIZE


def _topics(cluster: Cluster, asked: Iterable[DescribableLogDirTopic] | None) -> list[DescribeLogDirsTopic]:
    if asked is None:
        wanted = {name: list(range(len(topic.partitions))) for name, topic in cluster.topics.items()}
    else:
        wanted = {each.topic: each.partitions for each in asked}
    return [
        DescribeLogDirsTopic(name=name, partitions=partitions)
        for name, indexes in wanted.items()
        if (partitions := _partitions(cluster, name, indexes))
    ]


def _partitions(cluster: Cluster, name: str, indexes: Iterable[int]) -> list[DescribeLogDirsPartition]:
    topic = cluster.topics.get(name)
    if topic is None:
        return []
    return [
        DescribeLogDirsPartition(
            partition_index=index,
            partition_size=topic.partitions[index].size_bytes,
            offset_lag=0,
            is_future_key=False,
        )
        for index in dict.fromkeys(indexes)
        if 0 <= index < len(topic.partitions)
    ]
