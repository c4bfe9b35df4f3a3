"""ConsumerGroupHeartbeat 0-1 and ConsumerGroupDescribe 0-1: groups whose assignments the broker makes (KIP-848).

- v0: a member that joins may leave its id to the broker; v1+: it brings its own, and may subscribe by regular expression.
- Describe of a group of the other protocol, or of none: GROUP_ID_NOT_FOUND. Topics that are gone are left out.
- Where `group.coordinator.rebalance.protocols` leaves this protocol out both are UNSUPPORTED_VERSION, as with Kafka.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator

from horolog.broker.groups.assignors import Assignment
from horolog.broker.groups.consumer_group import ConsumerGroup, ConsumerMember
from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.broker.handlers.groups import client_of
from horolog.broker.handlers.operations import GROUP_OPERATIONS, NOT_ASKED
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupDescribeResponseAssignment,
    ConsumerGroupDescribeResponseTopicPartitions,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    DescribedGroup,
    Member,
)
from horolog.protocol.uuids import show_uuid

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1
LAST_WITHOUT_OWN_ID = 0
PROTOCOL = "consumer"


def heartbeat(
    broker: BrokerView, request: ConsumerGroupHeartbeatRequest, context: RequestContext
) -> ConsumerGroupHeartbeatResponse | Generator[None, None, None] | None:
    """Not done: rack-aware assignment by the broker."""
    if not _is_served(broker):
        return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    if context.version <= LAST_WITHOUT_OWN_ID and request.member_epoch == 0 and not request.member_id:
        request.member_id = show_uuid(uuid.uuid4().bytes)
    rights = None
    if broker.authorizer is not None:
        rights = broker.authorizer.rights(context.principal, context.connection.peer_host)
    may_describe = None if rights is None else rights.may_describe
    if request.subscribed_topic_regex:
        return _subscribe(broker, request, context, may_describe)
    broker.groups.consumer_heartbeat(request, context.version, client_of(context), context.reply, may_describe)
    return None


def _subscribe(
    broker: BrokerView,
    request: ConsumerGroupHeartbeatRequest,
    context: RequestContext,
    may_describe: Callable[[str], bool] | None,
) -> Generator[None, None, None]:
    """A pattern runs over the topics in steps before the group decides by it."""
    yield from broker.groups.try_out(request.subscribed_topic_regex or "", may_describe)
    broker.groups.consumer_heartbeat(request, context.version, client_of(context), context.reply, may_describe)


def _is_served(broker: BrokerView) -> bool:
    return PROTOCOL in broker.settings.group_coordinator_rebalance_protocols


def describe(
    broker: BrokerView,
    request: ConsumerGroupDescribeRequest,
    context: RequestContext,  # noqa: ARG001
) -> ConsumerGroupDescribeResponse:
    operations = GROUP_OPERATIONS if request.include_authorized_operations else NOT_ASKED
    return ConsumerGroupDescribeResponse(
        groups=[_describe(broker, group_id, operations) for group_id in request.group_ids]
        if _is_served(broker)
        else [
            DescribedGroup(error_code=ErrorCode.UNSUPPORTED_VERSION, group_id=group_id)
            for group_id in request.group_ids
        ]
    )


def _describe(broker: BrokerView, group_id: str, operations: int) -> DescribedGroup:
    if not group_id:
        return DescribedGroup(error_code=ErrorCode.INVALID_GROUP_ID, group_id=group_id)
    group = broker.groups.find(group_id)
    if not isinstance(group, ConsumerGroup):
        code = group if isinstance(group, ErrorCode) else ErrorCode.GROUP_ID_NOT_FOUND
        return DescribedGroup(
            error_code=code,
            error_message=f"Group {group_id} not found."
            if isinstance(group, ErrorCode)
            else f"Group {group_id} is not a consumer group.",
            group_id=group_id,
        )
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor,
        members=[_member(broker, member) for member in group.members.values()],
        authorized_operations=operations,
    )


def _member(broker: BrokerView, member: ConsumerMember) -> Member:
    return Member(
        member_id=member.id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.current.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        subscribed_topic_regex=member.regex or "",
        assignment=_assignment(broker, member.current.assigned),
        target_assignment=_assignment(broker, member.target),
        member_type=CONSUMER_MEMBER if member.classic is None else CLASSIC_MEMBER,
    )


def _assignment(broker: BrokerView, assignment: Assignment) -> ConsumerGroupDescribeResponseAssignment:
    topics = [
        ConsumerGroupDescribeResponseTopicPartitions(
            topic_id=topic_id, topic_name=topic.name, partitions=sorted(indexes)
        )
        for topic_id, indexes in assignment.items()
        if (topic := broker.cluster.by_id.get(topic_id)) is not None
    ]
    return ConsumerGroupDescribeResponseAssignment(topic_partitions=topics)
