"""DescribeLogDirs 0-5: the data folders, their disk space, the sizes of the partitions in each; AlterReplicaLogDirs 0-2.

- A null list of topics means all; partitions that are not here are left out. A topic named twice is answered once, with the partitions
  of both.
- No replica lags behind and none is moving. v4+ reports the disk's size and its free space.
- A folder that cannot be used is KAFKA_STORAGE_ERROR, without partitions.
- Moving a partition to the folder where it is succeeds; another folder of this broker is INVALID_REPLICA_ASSIGNMENT. A path
  that `log.dirs` does not name is LOG_DIR_NOT_FOUND, whatever the topic.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping

from horolog.broker.cluster.cluster import Cluster
from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.broker.log.manager import DataFolder, LogManager
from horolog.broker.log.storage import StorageFault
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
    DescribableLogDirTopic,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from horolog.protocol.topic_partition import each_topic_once

log = logging.getLogger(__name__)

UNKNOWN_SIZE = -1
FIRST_VERSION_WITH_ERROR = 3
"""The first version with an error for the request as a whole."""


def describe(broker: BrokerView, request: DescribeLogDirsRequest, context: RequestContext) -> DescribeLogDirsResponse:  # noqa: ARG001
    wanted = _wanted(broker.cluster, request.topics)
    results = [_result(broker.cluster, folder, wanted) for folder in broker.logs.folders]
    return DescribeLogDirsResponse(error_code=ErrorCode.NONE, results=results)


def _result(cluster: Cluster, folder: DataFolder, wanted: Mapping[str, Iterable[int]]) -> DescribeLogDirsResult:
    if folder.fault is not None:
        code = ErrorCode.KAFKA_STORAGE_ERROR
        return DescribeLogDirsResult(error_code=code, log_dir=shown_path(folder), topics=[])
    total_bytes, usable_bytes = disk_space(folder)
    return DescribeLogDirsResult(
        error_code=ErrorCode.NONE,
        log_dir=shown_path(folder),
        topics=_topics(cluster, folder, wanted),
        total_bytes=total_bytes,
        usable_bytes=usable_bytes,
    )


def disk_space(folder: DataFolder) -> tuple[int, int]:
    """The size of the disk and the space left for the broker; -1 where the system does not say."""
    try:
        return folder.disk_space()
    except StorageFault as fault:
        log.warning("%s: the size of its disk is unknown: %s", folder.path, fault)
        return UNKNOWN_SIZE, UNKNOWN_SIZE


def _wanted(cluster: Cluster, asked: Iterable[DescribableLogDirTopic] | None) -> Mapping[str, Iterable[int]]:
    if asked is None:
        return {name: range(topic.partition_count) for name, topic in cluster.topics.items()}
    mentioned = each_topic_once((each.topic, each.partitions) for each in asked)
    return {name: dict.fromkeys(indexes) for name, indexes in mentioned.items()}


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
            partition_index=index, partition_size=found.size_bytes, offset_lag=0, is_future_key=False
        )
        for index in indexes
        if (name, index) in folder.partitions and not isinstance(found := topic.find(index), ErrorCode)
    ]


def alter(
    broker: BrokerView,
    request: AlterReplicaLogDirsRequest,
    context: RequestContext,  # noqa: ARG001
) -> AlterReplicaLogDirsResponse:
    """Not done: moving a partition to another data folder (INVALID_REPLICA_ASSIGNMENT)."""
    folders = {shown_path(one): one for one in reversed(broker.logs.folders)}
    codes = each_topic_once(
        (
            topic.name,
            [(index, _placed(broker.logs, folders.get(wanted.path), topic.name, index)) for index in topic.partitions],
        )
        for wanted in request.dirs
        for topic in wanted.topics
    )
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=name,
                partitions=[
                    AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code)
                    for index, code in dict(of_topic).items()
                ],
            )
            for name, of_topic in codes.items()
            if of_topic
        ]
    )


def shown_path(folder: DataFolder) -> str:
    return os.path.abspath(folder.path)  # noqa: PTH100 - nothing is resolved, as Kafka shows it


def _placed(logs: LogManager, folder: DataFolder | None, name: str, index: int) -> ErrorCode:
    """The answer to a partition's move into a folder."""
    if folder is None:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if folder.fault is not None:
        return ErrorCode.KAFKA_STORAGE_ERROR
    if (name, index) not in logs.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE if (name, index) in folder.partitions else ErrorCode.INVALID_REPLICA_ASSIGNMENT
