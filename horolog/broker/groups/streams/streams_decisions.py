"""Decides what an event does to a streams group: members bring a topology, the broker assigns its tasks to them.

The questions of a heartbeat: which member is it, do the topics fit the topology, what has changed, does that need a new group epoch and a
new target assignment, and how far can this member move towards its target now. Changes are written as records, and answered once these
are in the log. Pure but for the group itself, which only this module changes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from horolog.broker.groups.classic_events import GroupLoaded, Killed, LeaveGroup, SyncGroup
from horolog.broker.groups.decision import Decision, GroupTimer, KnownStep
from horolog.broker.groups.group_epochs import hash_of
from horolog.broker.groups.group_settings import (
    STREAMS_HEARTBEAT_INTERVAL,
    STREAMS_INITIAL_DELAY,
    STREAMS_SESSION_TIMEOUT,
    STREAMS_STANDBYS,
)
from horolog.broker.groups.known import Known
from horolog.broker.groups.reconcile import MemberState
from horolog.broker.groups.streams.configured_topology import (
    ASSIGNMENT_DELAYED,
    MISSING_INTERNAL_TOPICS,
    SHUTDOWN_APPLICATION,
    STALE_TOPOLOGY,
    GroupStatus,
)
from horolog.broker.groups.streams.endpoints import partitions_by_endpoint
from horolog.broker.groups.streams.sticky_assignor import TaskRunner, assign_sticky
from horolog.broker.groups.streams.streams_events import (
    NOT_GIVEN_BACK,
    DelayOver,
    InternalTopicsMade,
    StreamsHeartbeat,
    StreamsLeave,
    StreamsOverdue,
    StreamsRespond,
)
from horolog.broker.groups.streams.streams_group import NOT_VALIDATED, QueryEndpoint, StreamsGroup, StreamsMember
from horolog.broker.groups.streams.streams_reconcile import next_tasks
from horolog.broker.groups.streams.streams_requests import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    Accepted,
    StreamsRefusal,
    accept,
    existing_topics,
    owned_tasks,
    streams_refusal,
    unknown_member,
)
from horolog.broker.groups.streams.tasks import NO_TASKS, TaskSet, written_tasks
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.groups import HeartbeatRequest, SyncGroupResponse
from horolog.protocol.messages.streams_groups import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    StreamsStatus,
)

STANDBYS = "num.standby.replicas"


class StreamsStep(KnownStep[StreamsGroup]):
    """A decision about a streams group."""

    __slots__ = ()


def decide_streams(group: StreamsGroup, event: Any, known: Known, now_ms: int) -> Decision[StreamsGroup]:
    """Apply an event to the group; returns what follows from it."""
    step = StreamsStep(group, known, now_ms)
    _STEPS[type(event)](step, event)
    return step


# -- heartbeats


def _heartbeat(step: StreamsStep, event: StreamsHeartbeat) -> None:
    group, request = step.group, event.request
    accepted = accept(group, request, step.known)
    if isinstance(accepted, StreamsRefusal):
        step.answer(event.answer, streams_refusal(accepted))
        return
    member = accepted.member
    before = member.current.assigned
    _wait_for_others(step)
    has_changed = _describe(step, member, event)
    metadata_hash = _take_topology(step, accepted)
    _refresh(step, metadata_hash, bump=has_changed)
    owned = owned_tasks(request)
    _reconcile(step, member, owned)
    _start_session(step, member)
    if request.shutdown_application:
        group.shutdown_by = member.id
    is_other = request.member_epoch == JOIN_EPOCH or member.current.assigned != before
    # a member that reports other tasks has missed a response, or is about to give some back
    is_full = is_other or (owned is not None and owned != member.current.assigned)
    if is_other and member.endpoint is not None:
        group.endpoint_epoch += 1
    missing, status = _internal_topics(step, event)
    response = _response(step, member, request, _statuses(group, member, status), is_full=is_full)
    _answer_written(step, event.answer, response)
    if missing:
        _create(step, event)


def _answer_written(step: StreamsStep, answer: StreamsRespond, response: StreamsGroupHeartbeatResponse) -> None:
    if step.entries:
        refusal = StreamsRefusal(ErrorCode.COORDINATOR_NOT_AVAILABLE, "the group could not be written")
        step.promise(answer, response, streams_refusal(refusal))
    else:
        step.answer(answer, response)


def _wait_for_others(step: StreamsStep) -> None:
    """The first member of a group waits some time for others, so that tasks do not move at once."""
    group = step.group
    delay_ms = step.known.group_setting(group.id, STREAMS_INITIAL_DELAY)
    if not group.members and delay_ms:
        group.is_delayed = True
        step.start(group.delay, delay_ms)


def _describe(step: StreamsStep, member: StreamsMember, event: StreamsHeartbeat) -> bool:
    """Update a member's description; returns whether it changed, which needs a new epoch."""
    group, request = step.group, event.request
    before, is_new = member.description, member.is_new
    if is_new:
        group.add(member)
    member.is_new = False
    member.client_id, member.client_host, member.principal = event.client
    if request.rack_id is not None:
        member.rack_id = request.rack_id
    if request.rebalance_timeout_ms >= 0:
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
    if request.topology is not None:
        member.topology_epoch = request.topology.epoch
    if request.process_id is not None and request.process_id != member.process_id:
        group.set_process(member, request.process_id)
    if request.user_endpoint is not None:
        member.endpoint = QueryEndpoint(request.user_endpoint.host, request.user_endpoint.port)
    if request.client_tags is not None:
        member.tags = tuple((one.key, one.value) for one in request.client_tags)
    if not is_new and member.description == before:
        return False
    group.held.set(member.id, member.held_bytes, member.principal)
    step.entries.append(group.member_entry(member))
    return True


# -- the topology


def _take_topology(step: StreamsStep, accepted: Accepted) -> int:
    """Keep the topology and its topics of the moment; returns the hash of these."""
    group = step.group
    if group.topology is None:
        group.topology = accepted.topology
        step.entries.append(group.topology_entry())
    group.configured = accepted.configured
    if accepted.topics == group.topics:
        return group.metadata_hash
    group.topics, group.subscribed = accepted.topics, frozenset(accepted.topics)
    return hash_of(accepted.topics)


def _internal_topics(step: StreamsStep, event: StreamsHeartbeat) -> tuple[bool, GroupStatus | None]:
    """Whether internal topics have to be created, and what members learn of them or of other faults of the topology."""
    configured = step.group.configured
    status = configured and configured.status
    if configured is None or status is None or status.code != MISSING_INTERNAL_TOPICS:
        return False, status
    may_create = event.may_create
    denied = [] if may_create is None else [name for name in configured.missing if not may_create(name)]
    detail = status.detail
    if denied:
        detail += f"; Unauthorized to CREATE on topics {', '.join(denied)}."
    errors = {name: why for name, why in step.group.creation_errors.items() if name in configured.missing}
    if errors:
        detail += f"; Creation failed: {', '.join(f'{name} ({why})' for name, why in errors.items())}."
    return not denied, GroupStatus(status.code, detail)


def _create(step: StreamsStep, event: StreamsHeartbeat) -> None:
    """Create the internal topics once the group's records are written."""
    configured = step.group.configured
    missing = {} if configured is None else configured.missing
    if step.entries:
        step.promise(event.create, missing, {})
    else:
        step.answer(event.create, missing)


def _made(step: StreamsStep, event: InternalTopicsMade) -> None:
    step.group.creation_errors = event.errors


# -- epochs and targets


def _refresh(step: StreamsStep, metadata_hash: int, *, bump: bool) -> None:
    """Begin a new epoch if members, topics or settings have changed, and compute its target assignment."""
    group = step.group
    assert group.topology is not None
    validated = group.topology.epoch if group.configured is not None and group.configured.is_ready else NOT_VALIDATED
    settings = {STANDBYS: str(step.known.group_setting(group.id, STREAMS_STANDBYS))}
    now = (metadata_hash, validated, settings)
    if bump or now != (group.metadata_hash, group.validated_epoch, group.assignment_settings):
        group.metadata_hash, group.validated_epoch, group.assignment_settings = now
        group.epoch += 1
        step.entries.append(group.group_entry())
    _assign(step)


def _assign(step: StreamsStep) -> None:
    """Compute the target assignment of the group's epoch: without the right topics no member has tasks."""
    group = step.group
    if group.epoch == group.assignment_epoch or group.is_delayed:
        return
    targets: dict[str, TaskSet] = {}
    if group.configured is not None and group.configured.is_ready:
        runners = {member.id: TaskRunner(member.process_id, member.target) for member in group.members.values()}
        standbys = int(group.assignment_settings.get(STANDBYS, "0"))
        targets = assign_sticky(runners, group.configured.subtopologies or {}, standbys)
    for member in group.members.values():
        target = targets.get(member.id, NO_TASKS)
        if member.target != target:
            member.target = target
            step.entries.append(group.target_entry(member))
    group.assignment_epoch, group.assigned_ms = group.epoch, step.now_ms
    step.entries.append(group.assignment_entry())


def _reconcile(step: StreamsStep, member: StreamsMember, owned: TaskSet | None) -> None:
    """Move one member as far towards its target as is possible now."""
    group = step.group
    current = next_tasks(
        member.current,
        group.assignment_epoch,
        member.target,
        lambda role, task: group.is_free(member, role, task),
        owned,
    )
    if current != member.current:
        group.set_current(member, current)
        step.entries.append(group.current_entry(member))
    _watch_revocation(step, member)


def _delay_over(step: StreamsStep, _: DelayOver) -> None:
    step.group.is_delayed = False
    if step.group.members:
        _assign(step)


# -- leaving


def _leave(step: StreamsStep, event: StreamsLeave) -> None:
    member = step.group.members.get(event.request.member_id)
    if member is None:
        step.answer(event.answer, streams_refusal(unknown_member(step.group, event.request)))
        return
    _remove(step, member)
    _answer_written(step, event.answer, StreamsGroupHeartbeatResponse(member_id=member.id, member_epoch=LEAVE_EPOCH))


def _remove(step: StreamsStep, member: StreamsMember) -> None:
    """Remove a member; the others get its tasks with their next heartbeats."""
    group = step.group
    _stop_timers(step, member)
    group.remove(member)
    step.entries += group.member_tombstones(member.id)
    if member.endpoint is not None:
        group.endpoint_epoch += 1
    if not group.members:
        group.shutdown_by, group.is_delayed = None, False
        step.stop(group.delay)
    group.epoch += 1
    step.entries.append(group.group_entry())


# -- time, and the group as a whole


def _start_session(step: StreamsStep, member: StreamsMember) -> None:
    step.start(member.session, step.known.group_setting(step.group.id, STREAMS_SESSION_TIMEOUT))


def _watch_revocation(step: StreamsStep, member: StreamsMember) -> None:
    """Give a member its rebalance timeout to give tasks back."""
    if member.current.state is not MemberState.UNREVOKED:
        step.stop(member.rebalance)
        return
    if member.rebalance is None:
        member.rebalance = GroupTimer(StreamsOverdue(member, NOT_GIVEN_BACK))
    step.start(member.rebalance, max(0, member.rebalance_timeout_ms), unless_running=True)


def _stop_timers(step: StreamsStep, member: StreamsMember) -> None:
    step.stop(member.session)
    step.stop(member.rebalance)


def _overdue(step: StreamsStep, event: StreamsOverdue) -> None:
    group, member = step.group, event.member
    if group.members.get(member.id) is member:
        step.note(logging.INFO, "group %s: removing member %s, which %s", group.id, member.id, event.why)
        _remove(step, member)


def _loaded(step: StreamsStep, _: GroupLoaded) -> None:
    group = step.group
    if group.topology is not None:
        group.subscribed = frozenset(existing_topics(group.topology, step.known))
    for member in group.members.values():
        _start_session(step, member)
        _watch_revocation(step, member)


def _killed(step: StreamsStep, _: Killed) -> None:
    step.stop(step.group.delay)
    for member in step.group.members.values():
        _stop_timers(step, member)


# -- requests of the classic protocol; the finder refuses those that join


def _sync(step: StreamsStep, event: SyncGroup) -> None:
    step.answer(event.answer, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))


def _classic_heartbeat(step: StreamsStep, _: HeartbeatRequest) -> None:
    step.result = ErrorCode.UNKNOWN_MEMBER_ID


def _classic_leave(step: StreamsStep, event: LeaveGroup) -> None:
    step.result = [ErrorCode.UNKNOWN_MEMBER_ID for _ in event.members]


_STEPS: dict[type, Callable[[StreamsStep, Any], None]] = {
    StreamsHeartbeat: _heartbeat,
    StreamsLeave: _leave,
    StreamsOverdue: _overdue,
    DelayOver: _delay_over,
    InternalTopicsMade: _made,
    SyncGroup: _sync,
    HeartbeatRequest: _classic_heartbeat,
    LeaveGroup: _classic_leave,
    GroupLoaded: _loaded,
    Killed: _killed,
}


# -- responses


def _statuses(group: StreamsGroup, member: StreamsMember, of_topics: GroupStatus | None) -> list[StreamsStatus]:
    found: list[GroupStatus] = []
    assert group.topology is not None
    if member.topology_epoch < group.topology.epoch:
        detail = (
            f"The member's topology epoch {member.topology_epoch} is behind the group's topology epoch"
            f" {group.topology.epoch}."
        )
        found.append(GroupStatus(STALE_TOPOLOGY, detail))
    if group.is_delayed and group.epoch > group.assignment_epoch:
        detail = "Assignment delayed due to the configured initial rebalance delay."
        found.append(GroupStatus(ASSIGNMENT_DELAYED, detail))
    if of_topics is not None:
        found.append(of_topics)
    if group.shutdown_by is not None:
        detail = (
            f"Streams group member {group.shutdown_by} encountered a fatal error and requested a shutdown for the"
            " entire application."
        )
        found.append(GroupStatus(SHUTDOWN_APPLICATION, detail))
    return [StreamsStatus(status_code=code, status_detail=detail) for code, detail in found]


def _response(
    step: StreamsStep,
    member: StreamsMember,
    request: StreamsGroupHeartbeatRequest,
    statuses: list[StreamsStatus],
    *,
    is_full: bool,
) -> StreamsGroupHeartbeatResponse:
    group, assigned = step.group, member.current.assigned
    response = StreamsGroupHeartbeatResponse(
        member_id=member.id,
        member_epoch=member.current.epoch,
        heartbeat_interval_ms=step.known.group_setting(group.id, STREAMS_HEARTBEAT_INTERVAL),
        status=statuses,
        endpoint_information_epoch=group.endpoint_epoch,
    )
    if is_full:
        response.active_tasks = written_tasks(assigned.active)
        response.standby_tasks = written_tasks(assigned.standby)
        response.warmup_tasks = written_tasks(assigned.warmup)
    if request.endpoint_information_epoch != group.endpoint_epoch:
        response.partitions_by_user_endpoint = partitions_by_endpoint(group)
    return response
