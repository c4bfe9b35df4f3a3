"""DescribeLogDirs, versions 0 to 5: the data folders, their room, and the sizes of the partitions in each.

- A null list of topics means all; partitions that are not here are left out.
- No replica lags behind and none is moving. v4+ tells the disk's size and what is left of it.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping

from broker.cluster import Cluster
from broker.handlers.context import BrokerView, RequestContext
from broker.log.data_folder import DataFolder
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
    wanted = _wanted(broker.cluster, request.topics)
    results = [_result(broker.cluster, folder, wanted) for folder in broker.logs.folders]
    return DescribeLogDirsResponse(error_code=ErrorCode.NONE, results=results)


def _result(cluster: Cluster, folder: DataFolder, wanted: Mapping[str, Iterable[int]]) -> DescribeLogDirsResult:
    total_bytes, usable_bytes = disk_space(folder)
    return DescribeLogDirsResult(
        error_code=ErrorCode.NONE,
        log_dir=os.path.abspath(folder.path),  # noqa: PTH100 - nothing is resolved, as Kafka shows it
        topics=_topics(cluster, folder, wanted),
        total_bytes=total_bytes,
        usable_bytes=usable_bytes,
    )


def disk_space(folder: DataFolder) -> tuple[int, int]:
    """The size of the disk and what is left of it for us; -1 where the system does not say."""
    try:
        return folder.disk_space()
    except StorageFault as fault:
        log.warning("%r: %s", folder, fault)
        return UNKNOWN_SIZE, UNKNOWN_SIZE


def _wanted(cluster: Cluster, asked: Iterable[DescribableLogDirTopic] | None) -> dict[str, Iterable[int]]:
    if asked is None:
        return {name: range(len(topic.partitions)) for name, topic in cluster.topics.items()}
    return {each.topic: each.partitions for each in asked}


def _topics(cluster: Cluster, folder: DataFolder, wanted: Mapping[str, Iterable[int]]) -> list[DescribeLogDirsTopic]:
    return [
        DescribeLogDirsTopic(name=name, partitions=partitions)
        for name, indexes in wanted.items()
        if (partitions := _partitions(cluster, folder, name, indexes))
    ]


def _partitions(
    cluster: Cluster, folder: DataFolder, name: str, indexes: Iterable[int]
) -> list[DescribeLogDirsPartition]:
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
        if (name, index) in folder.partitions and index < len(topic.partitions)
    ]
