"""First checks of several handlers: the partition, its leader, the client's leader epoch, and the error code of a failed disk."""

from __future__ import annotations

import logging
from typing import Final, NamedTuple

from horolog.broker.cluster.cluster import Cluster
from horolog.broker.cluster.cluster_state import NO_NODE
from horolog.broker.cluster.placement import Placement
from horolog.broker.cluster.topic import Topic
from horolog.broker.log.partition import Partition
from horolog.broker.log.storage import StorageFault
from horolog.protocol.errors import ErrorCode
from horolog.protocol.records.head import NO_EPOCH

log = logging.getLogger(__name__)

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
"""The isolation levels of Fetch and ListOffsets."""


def find_partition(cluster: Cluster, name: str, index: int) -> Partition | ErrorCode:
    """The partition, if this broker leads it and its disk works."""
    return partition_of(cluster.topics.get(name), index)


def partition_of(topic: Topic | None, index: int) -> Partition | ErrorCode:
    """The partition of a topic, if this broker leads it and its disk works."""
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    partition = topic.find(index)
    if isinstance(partition, Partition) and partition.condition.state.fault is not None:
        return ErrorCode.KAFKA_STORAGE_ERROR
    return partition


class Leadership(NamedTuple):
    """A partition as clients see it: its leader, and the brokers that keep it."""

    code: ErrorCode
    leader: int
    epoch: int
    replicas: list[int]
    offline: list[int]


def leadership(placement: Placement, topic: Topic, index: int) -> Leadership:
    """The leader of a partition; there is none while its files have failed here, or its broker is away.

    A partition that is still being opened here has a leader: librdkafka keeps a partition without one for minutes, and does not ask again.
    So has one that no broker leads any more, because this one was the last to leave.
    """
    node, epoch = placement.lead(topic.id, index)
    keeper = placement.keeper(topic.id, index) if node == NO_NODE else node
    replicas = [] if keeper == NO_NODE else [keeper]
    here = topic.find(index)
    if keeper in {placement.me, NO_NODE} and here == ErrorCode.NOT_LEADER_OR_FOLLOWER:
        epoch = placement.recorded_epoch(topic.id, index)
        return Leadership(ErrorCode.NONE, placement.me, epoch, [placement.me], [])
    has_failed = isinstance(here, Partition) and here.condition.fault is not None
    if node == NO_NODE or (node == placement.me and has_failed):
        return Leadership(ErrorCode.LEADER_NOT_AVAILABLE, NO_NODE, epoch, replicas, replicas)
    return Leadership(ErrorCode.NONE, node, epoch, [*replicas, *placement.readers(topic, index)], [])


def epoch_error(partition: Partition, current_leader_epoch: int) -> ErrorCode | None:
    """The error for the leader epoch that a request names; -1 stands for none."""
    if current_leader_epoch in (NO_EPOCH, partition.leader_epoch):
        return None
    if current_leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.UNKNOWN_LEADER_EPOCH


def storage_error(partition: Partition, fault: StorageFault) -> ErrorCode:
    """Log a fault of the disk; return the error code for clients."""
    log.error("%s: %s", partition, fault)
    return ErrorCode.KAFKA_STORAGE_ERROR


def storage_error_for(version: int, first_version_that_knows_it: int) -> ErrorCode:
    """The code for a failed disk, by version: older clients do not know the newer code, and would not retry."""
    if version < first_version_that_knows_it:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.KAFKA_STORAGE_ERROR
