"""Serves members that speak the classic protocol in a group of the newer one: while a group migrates, it has both.

Such a member is asked to rejoin whenever its assignment can change. Joining moves it as far towards its target as a heartbeat of the
newer protocol would, the generation is its epoch, the group has no leader, and syncing gives it its current assignment. A member
that was asked to rejoin is removed if it does not within its rebalance timeout.
"""

from __future__ import annotations

from horolog.broker.groups.assignors import Assignment
from horolog.broker.groups.classic import FIRST_JOIN_WITH_MEMBER_ID, join_error
from horolog.broker.groups.classic_events import JoinGroup, LeaveGroup, SyncGroup
from horolog.broker.groups.classic_group import CONSUMER_PROTOCOL, NO_GENERATION
from horolog.broker.groups.consumer_group import STATIC_LEAVE_EPOCH, ClassicPart, ConsumerGroup, ConsumerMember
from horolog.broker.groups.kip848_steps import (
    ConsumerStep,
    expect,
    has_come,
    reconcile,
    refresh,
    remove,
    replace,
    start_session,
)
from horolog.broker.groups.known import Known
from horolog.broker.groups.migration import classic_assignment, owned_by
from horolog.broker.groups.reconcile import MemberState
from horolog.protocol.errors import DecodeError, ErrorCode
from horolog.protocol.group_metadata import read_subscription
from horolog.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from horolog.protocol.messages.groups import HeartbeatRequest, JoinGroupResponse, MemberIdentity, SyncGroupResponse

# -- joining


def join(step: ConsumerStep, event: JoinGroup) -> None:
    subscription = _subscription(step.group, event)
    if subscription is None:
        step.answer(event.answer, join_error(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, event.member_id))
        return
    code = _check_join(step, event)
    if code:
        step.answer(event.answer, join_error(code, event.member_id))
        return
    if not event.member_id and event.instance_id is None and event.version >= FIRST_JOIN_WITH_MEMBER_ID:
        step.answer(event.answer, join_error(ErrorCode.MEMBER_ID_REQUIRED, event.new_id()))
        return
    member = _member(step, event)
    is_new = member.rebalance_timeout_ms < 0
    before = (member.topics, member.regex)
    _describe(member, event, subscription)
    step.entries.append(step.group.member_entry(member))
    refresh(step, bump=is_new or (member.topics, member.regex) != before)
    reconcile(step, member, _owned(member, subscription, step.known))
    start_session(step, member)
    has_come(step, member)
    expect(step, member)  # to sync
    response = JoinGroupResponse(
        generation_id=member.current.epoch,
        protocol_type=CONSUMER_PROTOCOL,
        protocol_name=event.protocols[0][0],
        member_id=member.id,
    )
    refusal = join_error(ErrorCode.COORDINATOR_NOT_AVAILABLE, member.id)
    step.promise(event.answer, response, refusal)
    step.answer_if_late(event.answer, refusal)


def _subscription(group: ConsumerGroup, event: JoinGroup) -> ConsumerProtocolSubscription | None:
    """The subscription of a joining member; None if the group or the broker does not understand it."""
    if event.protocol_type != CONSUMER_PROTOCOL or not event.protocols:
        return None
    offered = {name for name, _ in event.protocols}
    for member in group.members.values():
        if member.classic is not None and member.id != event.member_id:
            offered &= {name for name, _ in member.classic.protocols}
    try:
        return read_subscription(event.protocols[0][1]) if offered else None
    except DecodeError:
        return None


def _check_join(step: ConsumerStep, event: JoinGroup) -> ErrorCode:
    group, instance_id = step.group, event.instance_id
    holder = group.statics.get(instance_id) if instance_id is not None else None
    if holder is not None and event.member_id not in {"", holder}:
        return ErrorCode.FENCED_INSTANCE_ID
    if holder is not None and not event.member_id and group.members[holder].classic is None:
        is_free = group.members[holder].current.epoch == STATIC_LEAVE_EPOCH
        return ErrorCode.NONE if is_free else ErrorCode.UNRELEASED_INSTANCE_ID
    if instance_id is not None and holder is None and event.member_id:
        return ErrorCode.UNKNOWN_MEMBER_ID
    is_known = event.member_id in group.members or holder is not None
    if not is_known and len(group.members) >= step.known.settings.group_consumer_max_size:
        return ErrorCode.GROUP_MAX_SIZE_REACHED
    return ErrorCode.NONE


def _member(step: ConsumerStep, event: JoinGroup) -> ConsumerMember:
    group, instance_id = step.group, event.instance_id
    member_id = event.member_id or event.new_id()
    holder = group.members.get(group.statics.get(instance_id or "", "") if instance_id else member_id)
    if holder is not None and holder.id == member_id:
        return holder
    if holder is not None:
        has_come(step, holder)
        return replace(step, holder, member_id)
    member = ConsumerMember(member_id, instance_id)
    group.add(member)
    return member


def _describe(member: ConsumerMember, event: JoinGroup, subscription: ConsumerProtocolSubscription) -> None:
    member.client_id, member.client_host, member.principal = event.client
    member.rack_id = subscription.rack_id
    member.topics, member.regex = tuple(sorted(set(subscription.topics))), None
    member.rebalance_timeout_ms = event.timeouts.rebalance_ms
    comeback = member.classic.comeback if member.classic is not None else None
    member.classic = ClassicPart(event.timeouts.session_ms, event.protocols)
    member.classic.comeback = comeback


def _owned(member: ConsumerMember, subscription: ConsumerProtocolSubscription, known: Known) -> Assignment:
    """The partitions that a member still owns; those of an older generation do not count."""
    if subscription.generation_id not in {NO_GENERATION, member.current.epoch}:
        return {}
    return owned_by(subscription, known)


# -- syncing and heartbeats


def sync(step: ConsumerStep, event: SyncGroup) -> None:
    group = step.group
    member = _check(group, event.member_id, event.instance_id, event.generation)
    if isinstance(member, ErrorCode):
        step.answer(event.answer, SyncGroupResponse(error_code=member))
        return
    assert member.classic is not None
    name = member.classic.protocols[0][0]
    if event.protocol_type not in {None, CONSUMER_PROTOCOL} or event.protocol_name not in {None, name}:
        step.answer(event.answer, SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
        return
    if group.epoch > member.current.epoch and member.current.state is not MemberState.UNREVOKED:
        expect(step, member)
        step.answer(event.answer, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        return
    has_come(step, member)
    start_session(step, member)
    response = SyncGroupResponse(
        protocol_type=CONSUMER_PROTOCOL,
        protocol_name=name,
        assignment=classic_assignment(member, step.known),
    )
    step.answer(event.answer, response)


def heartbeat(step: ConsumerStep, request: HeartbeatRequest) -> None:
    group = step.group
    member = _check(group, request.member_id, request.group_instance_id, request.generation_id)
    if isinstance(member, ErrorCode):
        step.result = member
        return
    start_session(step, member)
    step.result = ErrorCode.NONE
    if _has_news(group, member):
        expect(step, member)
        step.result = ErrorCode.REBALANCE_IN_PROGRESS


def _has_news(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether rejoining would change something: a new epoch, partitions to give back, or partitions that are free now."""
    current = member.current
    if current.epoch < group.epoch or current.state is MemberState.UNREVOKED:
        return True
    return current.state is MemberState.UNRELEASED and any(
        group.is_free(topic_id, index)
        for topic_id, indexes in member.target.items()
        for index in indexes - current.assigned.get(topic_id, frozenset())
    )


def _check(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
) -> ConsumerMember | ErrorCode:
    if instance_id is not None:
        holder = group.statics.get(instance_id)
        if holder is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if holder != member_id:
            return ErrorCode.FENCED_INSTANCE_ID
    member = group.members.get(member_id)
    if member is None or member.classic is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return member if generation == member.current.epoch else ErrorCode.ILLEGAL_GENERATION


# -- leaving


def leave(step: ConsumerStep, event: LeaveGroup) -> None:
    """Remove members of either kind; the result has a code for each."""
    codes: list[ErrorCode] = []
    leaving: dict[str, ConsumerMember] = {}
    for one in event.members:
        member = _leaving(step.group, one)
        if isinstance(member, ConsumerMember) and member.id not in leaving:
            leaving[member.id] = member
            codes.append(ErrorCode.NONE)
        else:
            codes.append(member if isinstance(member, ErrorCode) else ErrorCode.UNKNOWN_MEMBER_ID)
    if leaving:
        remove(step, list(leaving.values()))
    step.result = codes


def _leaving(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember | ErrorCode:
    member_id, instance_id = identity.member_id, identity.group_instance_id
    if instance_id is not None:
        holder = group.statics.get(instance_id)
        if holder is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if member_id not in {"", holder}:
            return ErrorCode.FENCED_INSTANCE_ID
        member_id = holder
    return group.members.get(member_id) or ErrorCode.UNKNOWN_MEMBER_ID
