"""ShareGroupHeartbeat 1, ShareGroupDescribe 1, DescribeShareGroupOffsets 0-1, AlterShareGroupOffsets 0, DeleteShareGroupOffsets 0.

- A member brings its own id, of at most 36 characters. Describe of a group of another type, or of none: GROUP_ID_NOT_FOUND.
- DescribeShareGroupOffsets takes any group, known or not: a partition without a state has offset -1, and v1 adds the lag. Offsets are
  set and deleted only while a group has no members; setting them makes a group that does not exist.
- Without a group DescribeShareGroupOffsets is INVALID_GROUP_ID; real brokers answer UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

from horolog.broker.coordination.keyed_queue import gather
from horolog.broker.groups.assignors import Assignment
from horolog.broker.groups.share.share_group import ShareGroup, ShareGroupMember
from horolog.broker.groups.share.share_offsets import OffsetsTold, ShareOffset, TopicOutcome
from horolog.broker.groups.share.share_states import ShareRefusal
from horolog.broker.groups.share.simple_assignor import NAME
from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.broker.handlers.groups import client_of
from horolog.broker.handlers.operations import GROUP_OPERATIONS, NOT_ASKED
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.share_groups import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
    DescribedShareGroup,
    DescribedShareMember,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
    ShareAssignmentByName,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    SharePartitionsByName,
)
from horolog.protocol.topic_partition import TopicPartition
from horolog.protocol.wire import NO_UUID

LONGEST_MEMBER_ID = 36
V = TypeVar("V")
Replying = Callable[[DescribeShareGroupOffsetsResponseGroup], None]


def heartbeat(
    broker: BrokerView, request: ShareGroupHeartbeatRequest, context: RequestContext
) -> ShareGroupHeartbeatResponse | None:
    if not 0 < len(request.member_id) <= LONGEST_MEMBER_ID:
        return ShareGroupHeartbeatResponse(error_code=ErrorCode.INVALID_REQUEST)
    broker.groups.share.heartbeat(request, client_of(context), context.reply)
    return None


# -- describing


def describe(
    broker: BrokerView,
    request: ShareGroupDescribeRequest,
    context: RequestContext,  # noqa: ARG001
) -> ShareGroupDescribeResponse:
    operations = GROUP_OPERATIONS if request.include_authorized_operations else NOT_ASKED
    return ShareGroupDescribeResponse(
        groups=[_describe(broker, group_id, operations) for group_id in request.group_ids]
    )


def _describe(broker: BrokerView, group_id: str, operations: int) -> DescribedShareGroup:
    if not group_id:
        return DescribedShareGroup(error_code=ErrorCode.INVALID_GROUP_ID, group_id=group_id)
    group = broker.groups.share.find(group_id)
    if not isinstance(group, ShareGroup):
        return DescribedShareGroup(error_code=group.code, error_message=group.message, group_id=group_id)
    return DescribedShareGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=NAME,
        members=[_member(broker, member) for member in group.members.values()],
        authorized_operations=operations,
    )


def _member(broker: BrokerView, member: ShareGroupMember) -> DescribedShareMember:
    return DescribedShareMember(
        member_id=member.id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        assignment=_assignment(broker, member.assigned),
    )


def _assignment(broker: BrokerView, assignment: Assignment) -> ShareAssignmentByName:
    topics = [
        SharePartitionsByName(topic_id=topic_id, topic_name=topic.name, partitions=sorted(indexes))
        for topic_id, indexes in assignment.items()
        if (topic := broker.cluster.by_id.get(topic_id)) is not None
    ]
    return ShareAssignmentByName(topic_partitions=topics)


# -- offsets


def describe_offsets(broker: BrokerView, request: DescribeShareGroupOffsetsRequest, context: RequestContext) -> None:
    def reply(groups: list[DescribeShareGroupOffsetsResponseGroup]) -> None:
        context.reply(DescribeShareGroupOffsetsResponse(groups=groups))

    gather([partial(_offsets_of, broker, group) for group in request.groups], reply)


def _offsets_of(broker: BrokerView, asked: DescribeShareGroupOffsetsRequestGroup, done: Replying) -> None:
    group_id, offsets = asked.group_id, broker.share_offsets

    def pick_wanted(found: OffsetsTold) -> None:
        wanted = found if asked.topics is None else dict.fromkeys(named)
        done(_told_group(group_id, {place: found.get(place) for place in wanted}))

    if not group_id:
        done(_refused_group(group_id, ErrorCode.INVALID_GROUP_ID))
    elif code := broker.groups.share.load_error(group_id):
        done(_refused_group(group_id, code))
    elif asked.topics is None:
        offsets.tell_all(group_id, pick_wanted)
    else:
        named = [(topic.topic_name, index) for topic in asked.topics for index in topic.partitions]
        offsets.tell(group_id, named, pick_wanted)


def _refused_group(group_id: str, code: ErrorCode) -> DescribeShareGroupOffsetsResponseGroup:
    return DescribeShareGroupOffsetsResponseGroup(group_id=group_id, error_code=code, error_message=code.message)


def _told_group(
    group_id: str, offsets: Mapping[TopicPartition, ShareOffset | None]
) -> DescribeShareGroupOffsetsResponseGroup:
    topics = [
        DescribeShareGroupOffsetsResponseTopic(
            topic_name=name,
            topic_id=next((one.topic_id for one in found.values() if one is not None), NO_UUID),
            partitions=[_told_partition(index, one or ShareOffset(NO_UUID)) for index, one in found.items()],
        )
        for name, found in _by_topic(offsets).items()
    ]
    return DescribeShareGroupOffsetsResponseGroup(group_id=group_id, topics=topics)


def _told_partition(index: int, offset: ShareOffset) -> DescribeShareGroupOffsetsResponsePartition:
    return DescribeShareGroupOffsetsResponsePartition(
        partition_index=index,
        start_offset=offset.start_offset,
        leader_epoch=offset.leader_epoch,
        lag=offset.lag,
        error_code=offset.code,
        error_message=offset.code.message if offset.code else None,
    )


def alter_offsets(
    broker: BrokerView, request: AlterShareGroupOffsetsRequest, context: RequestContext
) -> AlterShareGroupOffsetsResponse | None:
    def done(outcome: ShareRefusal | dict[TopicPartition, TopicOutcome]) -> None:
        context.reply(_altered(outcome))

    if not request.group_id:
        return _altered(ShareRefusal(ErrorCode.INVALID_GROUP_ID, ErrorCode.INVALID_GROUP_ID.message))
    offsets = {
        (topic.topic_name, one.partition_index): one.start_offset
        for topic in request.topics
        for one in topic.partitions
    }
    broker.share_offsets.alter(request.group_id, offsets, done)
    return None


def _altered(outcome: ShareRefusal | dict[TopicPartition, TopicOutcome]) -> AlterShareGroupOffsetsResponse:
    if isinstance(outcome, ShareRefusal):
        return AlterShareGroupOffsetsResponse(error_code=outcome.code, error_message=outcome.message)
    topics = [
        AlterShareGroupOffsetsResponseTopic(
            topic_name=name,
            topic_id=next(iter(outcomes.values())).topic_id,
            partitions=[
                AlterShareGroupOffsetsResponsePartition(
                    partition_index=index, error_code=one.code, error_message=one.message
                )
                for index, one in outcomes.items()
            ],
        )
        for name, outcomes in _by_topic(outcome).items()
    ]
    return AlterShareGroupOffsetsResponse(responses=topics)


def delete_offsets(
    broker: BrokerView, request: DeleteShareGroupOffsetsRequest, context: RequestContext
) -> DeleteShareGroupOffsetsResponse | None:
    def done(outcome: ShareRefusal | dict[str, TopicOutcome]) -> None:
        context.reply(_deleted(outcome))

    if not request.group_id:
        return _deleted(ShareRefusal(ErrorCode.INVALID_GROUP_ID, ErrorCode.INVALID_GROUP_ID.message))
    names = list(dict.fromkeys(topic.topic_name for topic in request.topics))
    broker.share_offsets.delete(request.group_id, names, done)
    return None


def _deleted(outcome: ShareRefusal | dict[str, TopicOutcome]) -> DeleteShareGroupOffsetsResponse:
    if isinstance(outcome, ShareRefusal):
        return DeleteShareGroupOffsetsResponse(error_code=outcome.code, error_message=outcome.message)
    topics = [
        DeleteShareGroupOffsetsResponseTopic(
            topic_name=name, topic_id=one.topic_id, error_code=one.code, error_message=one.message
        )
        for name, one in outcome.items()
    ]
    return DeleteShareGroupOffsetsResponse(responses=topics)


def _by_topic(places: Mapping[TopicPartition, V]) -> dict[str, dict[int, V]]:
    topics: dict[str, dict[int, V]] = {}
    for (name, index), one in places.items():
        topics.setdefault(name, {})[index] = one
    return topics
