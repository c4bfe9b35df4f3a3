"""DescribeLogDirs, versions 0 to 5: the data folder, its room, and the sizes of partitions.

- A null list of topics means all; partitions that are not here are left out.
- There is one data folder, no replica lags behind and none is moving. v4+ tells the disk's size and what is left of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from broker.cluster import Cluster
from broker.handlers.context import BrokerView, RequestContext
from protocol.errors import ErrorCode
from protocol.messages.log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)


def handle(broker: BrokerView, request: DescribeLogDirsRequest, context: RequestContext) -> DescribeLogDirsResponse:  # noqa: ARG001
    total_bytes, usable_bytes = broker.logs.disk_space()
    result = DescribeLogDirsResult(
        error_code=ErrorCode.NONE,
        log_dir=broker.logs.data_dir,
        topics=_topics(broker.cluster, request.topics),
        total_bytes=total_bytes,
        usable_bytes=usable_bytes,
    )
    return DescribeLogDirsResponse(error_code=ErrorCode.NONE, results=[result])


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
