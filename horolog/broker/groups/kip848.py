"""Decides what an event does to a KIP-848 group: heartbeats carry what members want and own, the broker assigns partitions.

The questions of a heartbeat: which member is it, what has changed about it, does that need a new group epoch, does that need a new
target assignment, and how far can this member move towards its target now. Changes are written as records, and answered once these
are in the log. Pure but for the group itself, which only this module changes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, NamedTuple

from horolog.broker.groups import mixed
from horolog.broker.groups.assignors import ASSIGNORS, Assignment
from horolog.broker.groups.classic_events import GroupLoaded, JoinGroup, Killed, LeaveGroup, SyncGroup
from horolog.broker.groups.consumer_group import LEAVE_EPOCH, STATIC_LEAVE_EPOCH, ConsumerGroup, ConsumerMember, Sight
from horolog.broker.groups.decision import Decision
from horolog.broker.groups.group_settings import HEARTBEAT_INTERVAL
from horolog.broker.groups.kip848_events import (
    Event,
    Heartbeat,
    Leave,
    Overdue,
    Respond,
    Upgraded,
)
from horolog.broker.groups.kip848_steps import (
    ConsumerStep,
    has_come,
    pattern_topics,
    reconcile,
    refresh,
    remove,
    replace,
    start_session,
    stop_timers,
    topics_of,
    watch_revocation,
)
from horolog.broker.groups.known import Known
from horolog.broker.groups.reconcile import JOIN_EPOCH, MemberState, is_subset
from horolog.broker.groups.topic_patterns import MayDescribe, PatternError
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.consumer_groups import Assignment as ToldAssignment
from horolog.protocol.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)
from horolog.protocol.messages.groups import HeartbeatRequest

FIRST_WITH_OWN_MEMBER_ID = 1
NOT_SAID = -1


def decide(group: ConsumerGroup, event: Event, known: Known, now_ms: int) -> Decision[ConsumerGroup]:
    """Apply an event to the group; returns what follows from it."""
    step = ConsumerStep(group, known, now_ms)
    _STEPS[type(event)](step, event)
    return step


# -- heartbeats


def _heartbeat(step: ConsumerStep, event: Heartbeat) -> None:
    request = event.request
    refusal = _check_pattern(step, event) or _check_room(step, request)
    if refusal is not None:
        step.answer(event.answer, heartbeat_error(refusal))
        return
    step.entries += event.entries
    member = _find_member(step, request)
    if isinstance(member, HeartbeatRefusal):
        step.entries.clear()
        step.answer(event.answer, heartbeat_error(member))
        return
    before = member.current.assigned
    wants_others = _describe(step, member, event)
    sees_others = _see(step, member, event.may_describe)
    refresh(step, bump=wants_others or sees_others)
    owned = None if request.topic_partitions is None else _told(request)
    reconcile(step, member, owned)
    start_session(step, member)
    is_full = request.member_epoch == JOIN_EPOCH or (
        request.rebalance_timeout_ms != NOT_SAID
        and (request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None)
        and owned is not None
    )
    with_assignment = is_full or member.current.assigned != before
    interval_ms = step.known.group_setting(step.group.id, HEARTBEAT_INTERVAL)
    _answer_written(step, event.answer, _response(member, interval_ms, with_assignment=with_assignment))


def _answer_written(step: ConsumerStep, answer: Respond, response: ConsumerGroupHeartbeatResponse) -> None:
    if step.entries:
        refusal = HeartbeatRefusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the group could not be written")
        step.promise(answer, response, heartbeat_error(refusal))
    else:
        step.answer(answer, response)


def _check_pattern(step: ConsumerStep, event: Heartbeat) -> HeartbeatRefusal | None:
    request = event.request
    if request.subscribed_topic_regex:
        try:
            step.known.check_pattern(request.subscribed_topic_regex, event.may_describe)
        except PatternError as error:
            message = (
                f"SubscribedTopicRegex `{request.subscribed_topic_regex}` is not a valid regular expression: {error}."
            )
            return HeartbeatRefusal(ErrorCode.INVALID_REGULAR_EXPRESSION, message)
    return None


def _check_room(step: ConsumerStep, request: ConsumerGroupHeartbeatRequest) -> HeartbeatRefusal | None:
    group = step.group
    if request.member_epoch == JOIN_EPOCH and request.member_id not in group.members:
        limit = step.known.settings.group_consumer_max_size
        if request.instance_id not in group.statics and len(group.members) >= limit:
            return HeartbeatRefusal(
                ErrorCode.GROUP_MAX_SIZE_REACHED, "The consumer group has reached its maximum capacity."
            )
    return None


def _find_member(step: ConsumerStep, request: ConsumerGroupHeartbeatRequest) -> ConsumerMember | HeartbeatRefusal:
    """The member that sends a heartbeat: known, new, or in the place of a static one that has left for a while."""
    if request.instance_id is not None:
        return _find_static(step, request, request.instance_id)
    member = step.group.members.get(request.member_id)
    if member is None:
        return _new_member(step.group, request)
    return _check_epoch(member, request) or member


def _find_static(
    step: ConsumerStep, request: ConsumerGroupHeartbeatRequest, instance_id: str
) -> ConsumerMember | HeartbeatRefusal:
    group = step.group
    holder = group.members.get(group.statics.get(instance_id, ""))
    if holder is None:
        return _new_member(group, request)
    if request.member_epoch == JOIN_EPOCH:
        if holder.current.epoch != STATIC_LEAVE_EPOCH and holder.id != request.member_id:
            message = f"Instance id {instance_id} is owned by member {holder.id}."
            return HeartbeatRefusal(ErrorCode.UNRELEASED_INSTANCE_ID, message)
        return holder if holder.id == request.member_id else replace(step, holder, request.member_id)
    if holder.id != request.member_id:
        return HeartbeatRefusal(ErrorCode.FENCED_INSTANCE_ID, f"Instance id {instance_id} is owned by another member.")
    return _check_epoch(holder, request) or holder


def _new_member(group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest) -> ConsumerMember | HeartbeatRefusal:
    if request.member_epoch != JOIN_EPOCH:
        message = f"Member {request.member_id} is not a member of group {group.id}."
        return HeartbeatRefusal(ErrorCode.UNKNOWN_MEMBER_ID, message)
    member = ConsumerMember(request.member_id, request.instance_id)
    group.add(member)
    return member


def _describe(step: ConsumerStep, member: ConsumerMember, event: Heartbeat) -> bool:
    """Update a member's description; returns whether its subscription changed, which needs a new epoch."""
    request = event.request
    if _says_nothing_new(member, event):
        return False
    before, wanted = member.description, (member.topics, member.regex)
    is_new = member.rebalance_timeout_ms == NOT_SAID
    member.client_id, member.client_host, member.principal = event.client
    if request.rack_id is not None:
        member.rack_id = request.rack_id
    if request.rebalance_timeout_ms != NOT_SAID:
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
    if request.server_assignor is not None:
        member.assignor = request.server_assignor
    if request.subscribed_topic_names is not None:
        member.topics = tuple(sorted(set(request.subscribed_topic_names)))
    if request.subscribed_topic_regex is not None:
        member.regex = request.subscribed_topic_regex or None
    has_come(step, member)
    member.classic = None
    step.group.held.set(member.id, member.held_bytes, member.principal)
    if is_new or member.description != before:
        step.entries.append(step.group.member_entry(member))
    return is_new or (member.topics, member.regex) != wanted


def _see(step: ConsumerStep, member: ConsumerMember, may_describe: MayDescribe | None) -> bool:
    """Limit a pattern to the topics that the member may describe; returns whether that changes its topics."""
    if may_describe is None or member.regex is None:
        member.sight = None
        return False
    if member.sight is not None and member.sight.may_describe == may_describe:
        return False
    before = pattern_topics(member, step.known)
    member.sight = Sight(may_describe)
    return pattern_topics(member, step.known) != before


def _says_nothing_new(member: ConsumerMember, event: Heartbeat) -> bool:
    """Whether a heartbeat only keeps the session alive, as nearly all do."""
    request = event.request
    return (
        request.rebalance_timeout_ms == NOT_SAID != member.rebalance_timeout_ms
        and request.subscribed_topic_names is None
        and request.subscribed_topic_regex is None
        and request.rack_id is None
        and request.server_assignor is None
        and member.classic is None
        and (member.client_id, member.client_host, member.principal) == event.client
    )


# -- leaving


def _leave(step: ConsumerStep, event: Leave) -> None:
    group, request = step.group, event.request
    member = _leaving_member(group, request)
    if isinstance(member, HeartbeatRefusal):
        step.answer(event.answer, heartbeat_error(member))
        return
    response = ConsumerGroupHeartbeatResponse(member_id=member.id, member_epoch=request.member_epoch)
    if request.member_epoch == LEAVE_EPOCH:
        remove(step, [member])
    else:
        left = member.current._replace(epoch=STATIC_LEAVE_EPOCH, state=MemberState.STABLE, revoking={})
        group.set_current(member, left)
        step.entries.append(group.current_entry(member))
        watch_revocation(step, member)
    _answer_written(step, event.answer, response)


def _leaving_member(group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest) -> ConsumerMember | HeartbeatRefusal:
    if request.instance_id is not None:
        holder = group.statics.get(request.instance_id)
        if holder is not None and holder != request.member_id:
            return HeartbeatRefusal(
                ErrorCode.FENCED_INSTANCE_ID, f"Instance id {request.instance_id} is another member's."
            )
    member = group.members.get(request.member_id)
    if member is None:
        return HeartbeatRefusal(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Member {request.member_id} is not a member of the group."
        )
    return member


# -- time, and the group as a whole


def _overdue(step: ConsumerStep, event: Overdue) -> None:
    group, member = step.group, event.member
    if group.members.get(member.id) is member:
        step.note(logging.INFO, "group %s: removing member %s, which %s", group.id, member.id, event.why)
        remove(step, [member])


def _loaded(step: ConsumerStep, _: GroupLoaded) -> None:
    step.group.subscribed = frozenset(topics_of(step.group, step.known))
    for member in step.group.members.values():
        start_session(step, member)
        watch_revocation(step, member)


def _upgraded(step: ConsumerStep, _: Upgraded) -> None:
    for member in step.group.members.values():
        start_session(step, member)


def _killed(step: ConsumerStep, _: Killed) -> None:
    for member in step.group.members.values():
        stop_timers(step, member)


_STEPS: dict[type, Callable[[ConsumerStep, Any], None]] = {
    Heartbeat: _heartbeat,
    Leave: _leave,
    JoinGroup: mixed.join,
    SyncGroup: mixed.sync,
    HeartbeatRequest: mixed.heartbeat,
    LeaveGroup: mixed.leave,
    Overdue: _overdue,
    GroupLoaded: _loaded,
    Upgraded: _upgraded,
    Killed: _killed,
}


# -- refusals and answers


def _response(member: ConsumerMember, interval_ms: int, *, with_assignment: bool) -> ConsumerGroupHeartbeatResponse:
    assignment = None
    if with_assignment:
        topics = [
            ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=topic_id, partitions=sorted(indexes))
            for topic_id, indexes in member.current.assigned.items()
        ]
        assignment = ToldAssignment(topic_partitions=topics)
    return ConsumerGroupHeartbeatResponse(
        member_id=member.id,
        member_epoch=member.current.epoch,
        heartbeat_interval_ms=interval_ms,
        assignment=assignment,
    )


class HeartbeatRefusal(NamedTuple):
    """Why a heartbeat is refused."""

    code: ErrorCode
    message: str


def check_heartbeat(request: ConsumerGroupHeartbeatRequest, version: int) -> HeartbeatRefusal | None:
    """Why a request is invalid by itself, if it is."""
    epoch = request.member_epoch
    if not request.group_id:
        return _invalid("GroupId can't be empty.")
    if not request.member_id and (version >= FIRST_WITH_OWN_MEMBER_ID or epoch != JOIN_EPOCH):
        return _invalid("MemberId can't be empty.")
    if request.instance_id == "":
        return _invalid("InstanceId can't be empty.")
    if request.rack_id == "":
        return _invalid("RackId can't be empty.")
    if epoch < STATIC_LEAVE_EPOCH:
        return _invalid("MemberEpoch is invalid.")
    if epoch == STATIC_LEAVE_EPOCH and request.instance_id is None:
        return _invalid("InstanceId can't be null.")
    if epoch == JOIN_EPOCH:
        if request.rebalance_timeout_ms < 0:
            return _invalid("RebalanceTimeoutMs must be provided in first request.")
        if request.topic_partitions is None or request.topic_partitions:
            return _invalid("TopicPartitions must be empty when (re-)joining.")
        if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
            return _invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")
    if request.server_assignor is not None and request.server_assignor not in ASSIGNORS:
        message = (
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(ASSIGNORS)}."
        )
        return HeartbeatRefusal(ErrorCode.UNSUPPORTED_ASSIGNOR, message)
    return None


def _invalid(message: str) -> HeartbeatRefusal:
    return HeartbeatRefusal(ErrorCode.INVALID_REQUEST, message)


def _check_epoch(member: ConsumerMember, request: ConsumerGroupHeartbeatRequest) -> HeartbeatRefusal | None:
    """A member may send its epoch, 0 to rejoin, or the previous epoch if the response was lost."""
    epoch, current = request.member_epoch, member.current
    if epoch in {JOIN_EPOCH, current.epoch}:
        return None
    owned = _told(request) if request.topic_partitions is not None else None
    if epoch == current.previous_epoch and owned is not None and is_subset(owned, current.assigned):
        return None
    message = (
        f"The consumer group member has epoch {current.epoch}, not {epoch}. It must abandon its partitions and rejoin."
    )
    return HeartbeatRefusal(ErrorCode.FENCED_MEMBER_EPOCH, message)


def _told(request: ConsumerGroupHeartbeatRequest) -> Assignment:
    told: dict[bytes, set[int]] = {}
    for one in request.topic_partitions or ():
        told.setdefault(one.topic_id, set()).update(one.partitions)
    return {topic_id: frozenset(indexes) for topic_id, indexes in told.items() if indexes}


def heartbeat_error(refusal: HeartbeatRefusal) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=refusal.code, error_message=refusal.message, member_id=None)
