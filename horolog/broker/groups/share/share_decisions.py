"""Decides what an event does to a share group: heartbeats carry what members want to read, the broker assigns partitions to them.

A partition may be assigned once the persister has begun its state: a heartbeat asks for the states that are missing, and a later one
finds them and begins an epoch in which they are assigned. Changes are written as records, and answered once these are in
the log. Pure but for the group itself, which only this module changes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from horolog.broker.groups.assignors import Assignment, Subscriber
from horolog.broker.groups.classic_events import GroupLoaded, Killed, LeaveGroup, SyncGroup
from horolog.broker.groups.decision import Decision, KnownStep
from horolog.broker.groups.group_epochs import TopicsRead, begin_epoch
from horolog.broker.groups.group_settings import SHARE_HEARTBEAT_INTERVAL, SHARE_SESSION_TIMEOUT
from horolog.broker.groups.known import Known
from horolog.broker.groups.share.share_events import (
    ShareHeartbeat,
    ShareLeave,
    ShareOverdue,
    StatesBegun,
    StatesToBegin,
    TopicsTracked,
)
from horolog.broker.groups.share.share_group import ShareGroup, ShareGroupMember
from horolog.broker.groups.share.share_states import ShareRefusal
from horolog.broker.groups.share.simple_assignor import assign_simple
from horolog.broker.groups.share.tracked_topics import TrackedTopic, TrackedTopics
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.groups import HeartbeatRequest, SyncGroupResponse
from horolog.protocol.messages.share_groups import (
    ShareAssignmentById,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
    SharePartitionsById,
)

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
ASK_AGAIN_MS: Final = 30_000
"""The persister is asked again for a state that it has not begun by then; Kafka's `group.share.initialize.retry.interval.ms`."""


class ShareStep(KnownStep[ShareGroup]):
    """A decision about a share group."""

    __slots__ = ()


def decide_share(group: ShareGroup, event: Any, known: Known, now_ms: int) -> Decision[ShareGroup]:
    """Apply an event to the group; returns what follows from it."""
    step = ShareStep(group, known, now_ms)
    _STEPS[type(event)](step, event)
    return step


# -- heartbeats


def _heartbeat(step: ShareStep, event: ShareHeartbeat) -> None:
    group, request = step.group, event.request
    member = _find_member(step, request)
    if isinstance(member, ShareRefusal):
        step.answer(event.answer, share_refusal(member))
        return
    before = member.assigned
    wants_others = _describe(step, member, event)
    topics = _topics_of(group, step.known)
    if begin_epoch(step, topics, bump=wants_others or _lacks_assignments(group, topics)):
        _assign(step, topics)
    _reconcile(step, member)
    _start_session(step, member)
    _ask_for_states(step, event, topics)
    is_full = request.member_epoch == JOIN_EPOCH or request.subscribed_topic_names is not None
    interval_ms = step.known.group_setting(group.id, SHARE_HEARTBEAT_INTERVAL)
    response = _response(member, interval_ms, with_assignment=is_full or member.assigned != before)
    _answer_written(step, event.answer, response)


def _answer_written(
    step: ShareStep, answer: Callable[[ShareGroupHeartbeatResponse], None], response: ShareGroupHeartbeatResponse
) -> None:
    if step.entries:
        refusal = ShareRefusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the group could not be written")
        step.promise(answer, response, share_refusal(refusal))
    else:
        step.answer(answer, response)


def _find_member(step: ShareStep, request: ShareGroupHeartbeatRequest) -> ShareGroupMember | ShareRefusal:
    group = step.group
    member = group.members.get(request.member_id)
    limit = step.known.settings.group_share_max_size
    if member is None and len(group.members) >= limit:
        message = f"The share group has reached its maximum capacity of {limit} members."
        return ShareRefusal(ErrorCode.GROUP_MAX_SIZE_REACHED, message)
    if member is not None:
        return _check_epoch(member, request.member_epoch) or member
    if request.member_epoch != JOIN_EPOCH:
        return _unknown_member(group, request)
    member = ShareGroupMember(request.member_id)
    group.add(member)
    return member


def _check_epoch(member: ShareGroupMember, epoch: int) -> ShareRefusal | None:
    """A member may send its epoch, 0 to rejoin, or the previous epoch if the response was lost."""
    if epoch in {JOIN_EPOCH, member.epoch} or member.epoch > epoch == member.previous_epoch:
        return None
    size, previous = "greater", ""
    if epoch < member.epoch:
        size, previous = "smaller", f", and it does not match the previous member epoch ({member.previous_epoch})"
    message = (
        f"The share group member has a {size} member epoch ({epoch}) than the one known by the group coordinator"
        f" ({member.epoch}){previous}. The member must abandon all its partitions and rejoin."
    )
    return ShareRefusal(ErrorCode.FENCED_MEMBER_EPOCH, message)


def _unknown_member(group: ShareGroup, request: ShareGroupHeartbeatRequest) -> ShareRefusal:
    message = f"Member {request.member_id} is not a member of group {group.id}."
    return ShareRefusal(ErrorCode.UNKNOWN_MEMBER_ID, message)


def _describe(step: ShareStep, member: ShareGroupMember, event: ShareHeartbeat) -> bool:
    """Update a member's description; returns whether its subscription changed, which needs a new epoch."""
    request = event.request
    before, topics, is_new = member.description, member.topics, member.is_new
    member.client_id, member.client_host, member.principal = event.client
    if request.rack_id is not None:
        member.rack_id = request.rack_id
    if request.subscribed_topic_names is not None:
        step.group.subscribe(member, tuple(sorted(set(request.subscribed_topic_names))))
    if not is_new and member.description == before:
        return False
    member.is_new = False
    step.group.held.set(member.id, member.held_bytes, member.principal)
    step.entries.append(step.group.member_entry(member))
    return is_new or member.topics != topics


# -- epochs and targets


def _topics_of(group: ShareGroup, known: Known) -> dict[str, tuple[bytes, int]]:
    """Id and partition count of every existing topic that the group reads."""
    found = ((name, known.topics.get(name)) for name in group.names)
    return {name: (topic.id, topic.partition_count) for name, topic in found if topic is not None}


def _lacks_assignments(group: ShareGroup, topics: TopicsRead) -> bool:
    """Whether partitions that may be assigned are not: states have begun since the last assignment."""
    if group.tracked.initialized is group.assigned_of or not group.members:
        return False
    assignable = group.tracked.assignable(dict(topics.values()))
    targets = [member.target for member in group.members.values()]
    lacks = any(
        not indexes <= frozenset().union(*(target.get(topic_id, frozenset()) for target in targets))
        for topic_id, indexes in assignable.items()
    )
    if not lacks:
        group.assigned_of = group.tracked.initialized
    return lacks


def _assign(step: ShareStep, topics: TopicsRead) -> None:
    group = step.group
    subscribers = {
        member.id: Subscriber(frozenset(topics[name][0] for name in member.topics if name in topics), member.target)
        for member in group.members.values()
    }
    target = assign_simple(subscribers, group.tracked.assignable(dict(topics.values())))
    for member in group.members.values():
        if member.target != target[member.id]:
            member.target = target[member.id]
            step.entries.append(group.target_entry(member))
    group.assigned_of = group.tracked.initialized
    group.assignment_epoch, group.assigned_ms = group.epoch, step.now_ms
    step.entries.append(group.assignment_entry())


def _reconcile(step: ShareStep, member: ShareGroupMember) -> None:
    """A member has its target at once: partitions may be shared, so that it waits for no other member."""
    group = step.group
    if member.epoch != group.assignment_epoch:
        member.previous_epoch, member.epoch = member.epoch, group.assignment_epoch
        member.assigned = member.target
        step.entries.append(group.current_entry(member))


# -- the states of partitions


def _ask_for_states(step: ShareStep, event: ShareHeartbeat, topics: TopicsRead) -> None:
    """Ask the persister for the states of partitions that have none, once this is written."""
    group = step.group
    missing = _missing_states(group, topics, step.now_ms)
    if missing:
        group.tracked = group.tracked.begin(missing)
        step.entries.append(group.tracked_entry())
        step.promise(event.initialize, StatesToBegin(missing, group.epoch), None)


def _missing_states(group: ShareGroup, topics: TopicsRead, now_ms: int) -> dict[bytes, TrackedTopic]:
    missing = {}
    for name, (topic_id, count) in topics.items():
        there = group.tracked.known(topic_id, now_ms - ASK_AGAIN_MS)
        if len(there) < count:
            missing[topic_id] = TrackedTopic(name, frozenset(range(count)) - there, now_ms)
    return missing


def _begun(step: ShareStep, event: StatesBegun) -> None:
    _track(step, step.group.tracked.complete(event.begun).give_up(event.refused))


def _tracked(step: ShareStep, event: TopicsTracked) -> None:
    _track(step, event.change(step.group.tracked))
    if step.entries:
        step.promise(event.then, ErrorCode.NONE, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    else:
        step.answer(event.then, ErrorCode.NONE)


def _track(step: ShareStep, tracked: TrackedTopics) -> None:
    if tracked != step.group.tracked:
        step.group.tracked = tracked
        step.entries.append(step.group.tracked_entry())


# -- leaving


def _leave(step: ShareStep, event: ShareLeave) -> None:
    member = step.group.members.get(event.request.member_id)
    if member is None:
        step.answer(event.answer, share_refusal(_unknown_member(step.group, event.request)))
        return
    _remove(step, member)
    _answer_written(step, event.answer, ShareGroupHeartbeatResponse(member_id=member.id, member_epoch=LEAVE_EPOCH))


def _remove(step: ShareStep, member: ShareGroupMember) -> None:
    """Remove a member; the others get its partitions with their next heartbeats."""
    group = step.group
    step.stop(member.session)
    group.remove(member)
    step.entries += group.member_tombstones(member.id)
    begin_epoch(step, _topics_of(group, step.known), bump=True)


# -- time, and the group as a whole


def _start_session(step: ShareStep, member: ShareGroupMember) -> None:
    step.start(member.session, step.known.group_setting(step.group.id, SHARE_SESSION_TIMEOUT))


def _overdue(step: ShareStep, event: ShareOverdue) -> None:
    group, member = step.group, event.member
    if group.members.get(member.id) is member:
        step.note(logging.INFO, "group %s: removing member %s, which sent no heartbeat in time", group.id, member.id)
        _remove(step, member)


def _loaded(step: ShareStep, _: GroupLoaded) -> None:
    step.group.subscribed = frozenset(_topics_of(step.group, step.known))
    for member in step.group.members.values():
        _start_session(step, member)


def _killed(step: ShareStep, _: Killed) -> None:
    for member in step.group.members.values():
        step.stop(member.session)


# -- requests of the classic protocol; the finder refuses those that join


def _sync(step: ShareStep, event: SyncGroup) -> None:
    step.answer(event.answer, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))


def _classic_heartbeat(step: ShareStep, _: HeartbeatRequest) -> None:
    step.result = ErrorCode.UNKNOWN_MEMBER_ID


def _classic_leave(step: ShareStep, event: LeaveGroup) -> None:
    step.result = [ErrorCode.UNKNOWN_MEMBER_ID for _ in event.members]


_STEPS: dict[type, Callable[[ShareStep, Any], None]] = {
    ShareHeartbeat: _heartbeat,
    ShareLeave: _leave,
    ShareOverdue: _overdue,
    StatesBegun: _begun,
    TopicsTracked: _tracked,
    SyncGroup: _sync,
    HeartbeatRequest: _classic_heartbeat,
    LeaveGroup: _classic_leave,
    GroupLoaded: _loaded,
    Killed: _killed,
}


# -- refusals and answers


def _response(member: ShareGroupMember, interval_ms: int, *, with_assignment: bool) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(
        member_id=member.id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=interval_ms,
        assignment=_by_id(member.assigned) if with_assignment else None,
    )


def _by_id(assignment: Assignment) -> ShareAssignmentById:
    return ShareAssignmentById(
        topic_partitions=[
            SharePartitionsById(topic_id=topic_id, partitions=sorted(indexes))
            for topic_id, indexes in assignment.items()
        ]
    )


def check_share_heartbeat(request: ShareGroupHeartbeatRequest) -> ShareRefusal | None:
    """Why a request is invalid by itself, if it is."""
    if not request.member_id:
        return _invalid("MemberId can't be empty.")
    if not request.group_id:
        return _invalid("GroupId can't be empty.")
    if request.rack_id == "":
        return _invalid("RackId can't be empty.")
    if request.member_epoch < LEAVE_EPOCH:
        return _invalid("MemberEpoch is invalid.")
    if request.member_epoch == JOIN_EPOCH and not request.subscribed_topic_names:
        return _invalid("SubscribedTopicNames must be set in first request.")
    return None


def _invalid(message: str) -> ShareRefusal:
    return ShareRefusal(ErrorCode.INVALID_REQUEST, message)


def share_refusal(refusal: ShareRefusal) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(error_code=refusal.code, error_message=refusal.message)
