"""Checks of APIs about groups and transactions, beyond the common ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from horolog.base.acl_types import Operation, ResourceType
from horolog.broker.groups import offset_fetch
from horolog.broker.handlers import find_coordinator, log_dirs, streams_groups, transactions
from horolog.broker.handlers.authorization.authorized_request import FAILED, AuthorizedRequest
from horolog.broker.handlers.authorization.checks import own_cluster_operations, own_operations
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.consumer_groups import ConsumerGroupDescribeResponse, DescribedGroup
from horolog.protocol.messages.groups import DescribeGroupsResponse
from horolog.protocol.messages.log_dirs import DescribeLogDirsResponse
from horolog.protocol.messages.metadata import DescribeClusterResponse
from horolog.protocol.messages.offsets import (
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from horolog.protocol.messages.share_groups import (
    DescribedShareGroup,
    DescribedShareMember,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
    ShareGroupDescribeResponse,
)
from horolog.protocol.messages.streams_groups import DescribedStreamsGroup, StreamsGroupDescribeResponse
from horolog.protocol.messages.transactions import AddPartitionsToTxnResponse, DescribeTransactionsResponse
from horolog.protocol.records.head import NO_OFFSET

DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."


# -- groups


def coordinators(asked: AuthorizedRequest) -> ErrorCode | None:
    """DESCRIBE on each group or transactional id whose coordinator is asked for."""
    request = asked.request
    kind = {find_coordinator.GROUP: ResourceType.GROUP, find_coordinator.TRANSACTION: ResourceType.TRANSACTIONAL_ID}
    sought = kind.get(request.key_type)
    if sought is None:
        share = request.key_type == find_coordinator.SHARE
        return (
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            if share and not asked.may_cluster(Operation.CLUSTER_ACTION)
            else None
        )
    if asked.version < find_coordinator.FIRST_VERSION_WITH_MANY_KEYS:
        return None if asked.may(Operation.DESCRIBE, sought, request.key) else FAILED[sought]
    asked.keep_if(lambda key: asked.may(Operation.DESCRIBE, sought, key), "coordinator_keys", FAILED[sought])
    return None


def own_group_operations(
    asked: AuthorizedRequest,
    answer: DescribeGroupsResponse
    | ConsumerGroupDescribeResponse
    | ShareGroupDescribeResponse
    | StreamsGroupDescribeResponse,
) -> None:
    for group in answer.groups:
        group.authorized_operations = own_operations(
            asked, ResourceType.GROUP, group.group_id, group.authorized_operations
        )


def subscribed(asked: AuthorizedRequest) -> ErrorCode | None:
    """DESCRIBE on all topics that a member subscribes to by name."""
    names = asked.request.subscribed_topic_names or ()
    return None if all(asked.may_topic(Operation.DESCRIBE, name) for name in names) else DENIED


def hide_assignments(
    asked: AuthorizedRequest, answer: ConsumerGroupDescribeResponse | ShareGroupDescribeResponse
) -> None:
    """A group with a topic that may not be described is refused."""
    groups: Any = [
        one
        if all(asked.may_topic(Operation.DESCRIBE, name) for name in _assigned(one))
        else type(one)(group_id=one.group_id, error_code=DENIED, error_message=HIDDEN_TOPICS)
        for one in answer.groups
    ]
    answer.groups = groups


def in_topology(asked: AuthorizedRequest) -> ErrorCode | None:
    """DESCRIBE on all topics of the topology that a member brings."""
    topology = asked.request.topology
    names = () if topology is None else streams_groups.topic_names(topology)
    return None if all(asked.may_topic(Operation.DESCRIBE, name) for name in names) else DENIED


def hide_topologies(asked: AuthorizedRequest, answer: StreamsGroupDescribeResponse) -> None:
    """A group with a topic that may not be described is refused."""
    answer.groups = [
        one
        if one.topology is None
        or all(asked.may_topic(Operation.DESCRIBE, name) for name in streams_groups.topic_names(one.topology))
        else DescribedStreamsGroup(group_id=one.group_id, error_code=DENIED, error_message=HIDDEN_TOPICS)
        for one in answer.groups
    ]


def _assigned(group: DescribedGroup | DescribedShareGroup) -> set[str]:
    return {
        topic.topic_name
        for member in group.members
        for assignment in _assignments(member)
        for topic in assignment.topic_partitions
    }


def _assignments(member: Any) -> tuple[Any, ...]:
    """Members of share groups have no other target than their assignment."""
    return (
        (member.assignment,)
        if isinstance(member, DescribedShareMember)
        else (member.assignment, member.target_assignment)
    )


# -- offsets


def committed(asked: AuthorizedRequest) -> ErrorCode | None:
    """DESCRIBE on the group, and on each topic; a request for all topics gets those that the principal may know."""
    if asked.version >= offset_fetch.FIRST_WITH_MANY_GROUPS:
        _committed_of_groups(asked)
        return None
    request = asked.request
    if not asked.may(Operation.DESCRIBE, ResourceType.GROUP, request.group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    if request.topics is None:
        asked.then(lambda answer: _keep_known(asked, answer))
        return None
    asked.keep_if(lambda each: asked.may_topic(Operation.DESCRIBE, each.name), "topics", DENIED)
    return None


def _keep_known(asked: AuthorizedRequest, answer: Any) -> None:
    answer.topics = [each for each in answer.topics if asked.may_topic(Operation.DESCRIBE, _name_of(each))]


def _name_of(topic: Any) -> str:
    return str(topic.topic_name if isinstance(topic, DescribeShareGroupOffsetsResponseTopic) else topic.name)


def _committed_of_groups(asked: AuthorizedRequest) -> None:
    kept: list[OffsetFetchRequestGroup] = []
    refused: list[OffsetFetchRequestGroup] = []
    hidden: list[list[OffsetFetchResponseTopics]] = []
    for group in asked.request.groups:
        if not asked.may(Operation.DESCRIBE, ResourceType.GROUP, group.group_id):
            refused.append(group)
            continue
        kept.append(group)
        hidden.append([])
        if group.topics is not None:
            denied = [each for each in group.topics if not _is_known(asked, each)]
            hidden[-1] = [_refused_topic(each) for each in denied]
            if denied:
                asked.hides_something()
            group.topics = [each for each in group.topics if _is_known(asked, each)]
    asked.leave_out("groups", kept, refused, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    _show_known(asked, kept, hidden)


def _show_known(asked: AuthorizedRequest, kept: Sequence[Any], hidden: Sequence[Sequence[Any]]) -> None:
    """Groups that were asked for all topics get those that may be described, the others a refusal for each hidden topic."""
    every = [group.topics is None for group in kept]

    def merge(answer: OffsetFetchResponse | DescribeShareGroupOffsetsResponse) -> None:
        group: Any
        for group, refused, all_topics in zip(answer.groups, hidden, every, strict=True):
            if all_topics:
                _keep_known(asked, group)
            elif not group.error_code:
                group.topics += refused

    asked.then(merge)


def share_offsets(asked: AuthorizedRequest) -> ErrorCode | None:
    """DESCRIBE on each group, and on each topic; a request for all topics gets those that the principal may describe."""
    kept: list[DescribeShareGroupOffsetsRequestGroup] = []
    refused: list[DescribeShareGroupOffsetsRequestGroup] = []
    hidden: list[list[DescribeShareGroupOffsetsResponseTopic]] = []
    for group in asked.request.groups:
        if not asked.may(Operation.DESCRIBE, ResourceType.GROUP, group.group_id):
            refused.append(group)
            continue
        kept.append(group)
        topics = group.topics or ()
        hidden.append([_hidden_share(one) for one in topics if not asked.may_topic(Operation.DESCRIBE, one.topic_name)])
        if hidden[-1]:
            asked.hides_something()
            group.topics = [one for one in topics if asked.may_topic(Operation.DESCRIBE, one.topic_name)]
    asked.leave_out("groups", kept, refused, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    _show_known(asked, kept, hidden)
    return None


def _hidden_share(topic: DescribeShareGroupOffsetsRequestTopic) -> DescribeShareGroupOffsetsResponseTopic:
    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=topic.topic_name,
        partitions=[
            DescribeShareGroupOffsetsResponsePartition(
                partition_index=index,
                start_offset=NO_OFFSET,
                leader_epoch=-1,
                error_code=DENIED,
                error_message=DENIED.message,
            )
            for index in topic.partitions
        ],
    )


def _is_known(asked: AuthorizedRequest, topic: Any) -> bool:
    by_id = asked.version >= offset_fetch.FIRST_BY_TOPIC_ID
    name = asked.name_of(topic.topic_id) if by_id else topic.name
    return name is None or asked.may_topic(Operation.DESCRIBE, name)


def _refused_topic(topic: Any) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetFetchResponsePartitions(
                partition_index=index, committed_offset=NO_OFFSET, metadata="", error_code=DENIED
            )
            for index in topic.partition_indexes
        ],
    )


# -- transactions


def producer(asked: AuthorizedRequest) -> ErrorCode | None:
    """WRITE on the transactional id; without one IDEMPOTENT_WRITE on the cluster, or WRITE on any topic."""
    transactional_id = asked.request.transactional_id
    if transactional_id is not None:
        allowed = asked.may(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id)
        return None if allowed else ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    if asked.may_cluster(Operation.IDEMPOTENT_WRITE) or asked.rights.may_any(Operation.WRITE, ResourceType.TOPIC):
        return None
    return ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def joined_partitions(asked: AuthorizedRequest) -> ErrorCode | None:
    """Clients need WRITE on the transactional id and all topics, brokers CLUSTER_ACTION."""
    request = asked.request
    if asked.version >= transactions.FIRST_VERSION_OF_BROKERS:
        if not asked.may_cluster(Operation.CLUSTER_ACTION):
            asked.answer = AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return None
    if not asked.may(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.v3_and_below_transactional_id):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    topics = request.v3_and_below_topics
    denied = {topic.name for topic in topics if not asked.may_topic(Operation.WRITE, topic.name)}
    if denied:
        asked.answer = AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=transactions.none_added(asked.broker.cluster, topics, denied)
        )
    return None


def hide_topics_of_transactions(asked: AuthorizedRequest, answer: DescribeTransactionsResponse) -> None:
    for each in answer.transaction_states:
        each.topics = [topic for topic in each.topics if asked.may_topic(Operation.DESCRIBE, topic.topic)]


# -- the broker


def own_operations_on_cluster(asked: AuthorizedRequest, answer: DescribeClusterResponse) -> None:
    answer.cluster_authorized_operations = own_cluster_operations(asked, answer.cluster_authorized_operations)


def folders(asked: AuthorizedRequest) -> ErrorCode | None:
    """DESCRIBE on the cluster; answers of old versions have no place for the error, and list no folder."""
    if asked.may_cluster(Operation.DESCRIBE):
        return None
    if asked.version < log_dirs.FIRST_VERSION_WITH_ERROR:
        asked.answer = DescribeLogDirsResponse()
        return None
    return ErrorCode.CLUSTER_AUTHORIZATION_FAILED
