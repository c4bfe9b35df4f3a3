"""Decides what an event does to a classic group: members join, leave or time out, and the group changes its state.

Pure but for the group itself, which only this module changes: it touches no clock, timer, disk or response. What an event does
depends on the group's state alone, by the tables below. A rebalance: the group is PREPARING until all members have rejoined
or the rebalance timeout is over, then COMPLETING until the leader has sent the assignments, then STABLE once they are
written. A first rebalance waits `group.initial.rebalance.delay.ms` for more members instead.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

from horolog.broker.base.late_answers import ANSWERED_WITHIN_S
from horolog.broker.config.settings import Settings
from horolog.broker.groups.classic_events import (
    AssignmentsStored,
    Client,
    ClientsWaited,
    Downgraded,
    EmptinessStored,
    Event,
    FirstWaitOver,
    GroupLoaded,
    JoinGroup,
    JoinOver,
    Killed,
    LeaveGroup,
    NewIdStored,
    PendingOver,
    PlaceStored,
    Protocols,
    SessionOver,
    SyncGroup,
    SyncOver,
)
from horolog.broker.groups.classic_group import (
    CAN_REBALANCE,
    NO_GENERATION,
    ClassicGroup,
    GroupState,
    Member,
    record_of,
    stored_with,
)
from horolog.broker.groups.decision import Decision, GroupTimer
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.groups import (
    HeartbeatRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
    MemberIdentity,
    SyncGroupResponse,
)

NEW_MEMBER_TIMEOUT_MS = 300_000
"""The session timeout of a new member during its first join, in which it sends no heartbeats."""

FIRST_JOIN_WITH_MEMBER_ID = 4
FIRST_JOIN_WITH_SKIPPED_ASSIGNMENT = 9

HEARTBEAT: dict[GroupState, ErrorCode] = {
    GroupState.EMPTY: ErrorCode.UNKNOWN_MEMBER_ID,
    GroupState.PREPARING: ErrorCode.REBALANCE_IN_PROGRESS,
    GroupState.COMPLETING: ErrorCode.NONE,
    GroupState.STABLE: ErrorCode.NONE,
    GroupState.DEAD: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}

SYNC: dict[GroupState, ErrorCode] = {
    GroupState.EMPTY: ErrorCode.UNKNOWN_MEMBER_ID,
    GroupState.PREPARING: ErrorCode.REBALANCE_IN_PROGRESS,
    GroupState.COMPLETING: ErrorCode.NONE,  # waits for the leader
    GroupState.STABLE: ErrorCode.NONE,  # gets its assignment again
    GroupState.DEAD: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}

REBALANCES_ON_REJOIN: dict[GroupState, Callable[[ClassicGroup, Member, Protocols], bool]] = {
    GroupState.PREPARING: lambda _group, _member, _protocols: True,
    # The same metadata again: the response was lost.
    GroupState.COMPLETING: lambda _group, member, protocols: member.protocols != protocols,
    # A leader that rejoins requests a rebalance: something has changed that only it watches.
    GroupState.STABLE: lambda group, member, protocols: group.leader_id == member.id or member.protocols != protocols,
}
"""Whether a known member that rejoins begins or takes part in a rebalance; otherwise it gets the current generation again."""


class ClassicStep(Decision[ClassicGroup]):
    """A decision in the making, and its inputs."""

    __slots__ = ("now_ms", "settings")

    def __init__(self, group: ClassicGroup, settings: Settings, now_ms: int) -> None:
        super().__init__(group)
        self.settings = settings
        self.now_ms = now_ms


def decide(group: ClassicGroup, event: Event, settings: Settings, now_ms: int) -> Decision[ClassicGroup]:
    """Apply an event to the group; returns what follows from it."""
    step = ClassicStep(group, settings, now_ms)
    _STEPS[type(event)](step, event)
    return step


def heartbeat(group: ClassicGroup, request: HeartbeatRequest) -> tuple[ErrorCode, Member | None]:
    """The response code to a heartbeat, and the member whose session restarts.

    Heartbeats change nothing in the group and outnumber all other requests, so they skip `decide`.
    """
    if group.state is GroupState.DEAD:
        return HEARTBEAT[GroupState.DEAD], None
    code = group.check_member(request.member_id, request.group_instance_id)
    if not code and group.generation != request.generation_id:
        code = ErrorCode.ILLEGAL_GENERATION
    if code:
        return code, None
    return HEARTBEAT[group.state], None if group.state is GroupState.EMPTY else group.members[request.member_id]


def committing(group: ClassicGroup, member_id: str) -> Member | None:
    """The member whose session restarts: a commit proves a member alive, like a heartbeat."""
    return None if group.state is GroupState.DEAD else group.members.get(member_id)


# -- joining


def _join(step: ClassicStep, event: JoinGroup) -> None:
    group = step.group
    refusal = _refusal(step, event)
    if refusal is not None:
        code, member_id = refusal
        step.answer(event.answer, join_error(code, member_id))
    elif not event.member_id and event.instance_id is None:
        _join_new(step, event)
    elif event.member_id in group.pending:
        step.stop(group.pending.pop(event.member_id))
        _add(step, event, event.member_id)
    elif not event.member_id:
        _join_static(step, event)
    else:
        _rejoin(step, event, group.members[event.member_id])


def _refusal(step: ClassicStep, event: JoinGroup) -> tuple[ErrorCode, str] | None:
    """The error of a refused join, and the member id to answer with."""
    group, member_id = step.group, event.member_id
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE, member_id
    if not _has_room(step, event):
        return ErrorCode.GROUP_MAX_SIZE_REACHED, ""
    if not group.supports(event.protocol_type, (name for name, _ in event.protocols)):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id
    if not member_id or member_id in group.pending:
        return None
    code = group.check_member(member_id, event.instance_id)
    if not code and group.state not in REBALANCES_ON_REJOIN:
        code = ErrorCode.UNKNOWN_MEMBER_ID
    return (code, member_id) if code else None


def _has_room(step: ClassicStep, event: JoinGroup) -> bool:
    group = step.group
    if event.member_id in group.members or event.member_id in group.pending:
        return True
    if event.instance_id in group.statics:
        return True
    return len(group.members) + len(group.pending) < step.settings.group_max_size


def _join_new(step: ClassicStep, event: JoinGroup) -> None:
    member_id = event.new_id()
    if event.version < FIRST_JOIN_WITH_MEMBER_ID:
        _add(step, event, member_id)
        return
    # It has to return with the id: if the response were lost, a member without a client would be left.
    timer = step.group.pending[member_id] = GroupTimer(PendingOver(member_id))
    step.start(timer, event.timeouts.session_ms)
    step.answer(event.answer, join_error(ErrorCode.MEMBER_ID_REQUIRED, member_id))


def _join_static(step: ClassicStep, event: JoinGroup) -> None:
    """A static member without a member id: it is new, or it was restarted and takes its former place."""
    group = step.group
    assert event.instance_id is not None
    member_id = event.new_id()
    holder = group.members.get(group.statics.get(event.instance_id, ""))
    if holder is None:
        _add(step, event, member_id)
        return
    late = join_error(ErrorCode.COORDINATOR_NOT_AVAILABLE, "")
    _refuse_waiting(step, holder, ErrorCode.FENCED_INSTANCE_ID)
    old_id, old_leader_id = holder.id, group.leader_id or ""
    group.rename(holder, member_id)
    _update(group, holder, event, event.client)
    if group.state is GroupState.STABLE and group.select_protocol() == group.protocol_name:
        _start_session(step, holder)
        record = record_of(group)
        then = partial(NewIdStored, holder, old_id, old_leader_id, event.version, event.answer, record)
        step.write([group.entry(record)], then)
        step.answer_if_late(event.answer, late)
    elif (stored := stored_with(group, event.instance_id, member_id)) is not None:
        # Not before it is written: a coordinator that reads the group would fence a client with an id that it does not know.
        _start_session(step, holder)
        step.write([group.entry(stored)], partial(PlaceStored, holder, old_id, member_id, event.answer, stored))
        step.answer_if_late(event.answer, late)
    else:
        group.wait_to_join(holder, event.answer)
        _rebalance_or_complete(step)


def _new_id_stored(step: ClassicStep, event: NewIdStored) -> None:
    """A static member is back unchanged, and its new id is written: it gets the current generation.

    The response to a leader of a recent version asks it to skip the assignment; to an older one it names another member as leader.
    """
    group, member = step.group, event.member
    if event.code:
        _take_back_new_id(step, event, member.id)
        return
    group.stored = event.record
    is_leader = group.leader_id == member.id
    may_skip = event.version >= FIRST_JOIN_WITH_SKIPPED_ASSIGNMENT
    response = _joined(group, member, with_members=is_leader and may_skip)
    response.skip_assignment = is_leader and may_skip
    if not may_skip:
        response.leader = event.old_leader_id
    step.answer(event.answer, response)


def _place_stored(step: ClassicStep, event: PlaceStored) -> None:
    """A static member is back during a rebalance, or with other protocols, and its new id is written."""
    group, member = step.group, event.member
    if event.code:
        _take_back_new_id(step, event, event.new_id)
        return
    group.stored = event.record
    if group.members.get(event.new_id) is member:
        group.wait_to_join(member, event.answer)
        _rebalance_or_complete(step)
    else:  # another one has its place, or the group has removed it meanwhile
        is_held = group.statics.get(member.instance_id or "") is not None
        code = ErrorCode.FENCED_INSTANCE_ID if is_held else ErrorCode.UNKNOWN_MEMBER_ID
        step.answer(event.answer, join_error(code, event.new_id))


def _take_back_new_id(step: ClassicStep, event: NewIdStored | PlaceStored, new_id: str) -> None:
    group, member = step.group, event.member
    message = "group %s: the new id of static member %s could not be written"
    step.note(logging.WARNING, message, group.id, member.instance_id)
    step.answer(event.answer, join_error(ErrorCode.COORDINATOR_NOT_AVAILABLE, new_id))
    if group.members.get(new_id) is member:
        group.rename(member, event.old_id)


def _rejoin(step: ClassicStep, event: JoinGroup, member: Member) -> None:
    group = step.group
    if REBALANCES_ON_REJOIN[group.state](group, member, event.protocols):
        _update(group, member, event)
        group.wait_to_join(member, event.answer)
        _rebalance_or_complete(step)
    else:
        is_leader = group.leader_id == member.id
        step.answer(
            event.answer, _joined(group, member, with_members=is_leader and group.state is GroupState.COMPLETING)
        )


def _update(group: ClassicGroup, member: Member, event: JoinGroup, client: Client | None = None) -> None:
    member.principal = event.client.principal
    group.update(member, event.protocols, client)
    member.session_timeout_ms, member.rebalance_timeout_ms = event.timeouts


def _add(step: ClassicStep, event: JoinGroup, member_id: str) -> None:
    group = step.group
    member = Member(member_id, event.instance_id, event.client, event.timeouts, event.protocols)
    member.is_new = True
    if not group.members:
        group.protocol_type = event.protocol_type
    group.add(member)
    group.wait_to_join(member, event.answer)
    if group.state is GroupState.PREPARING and group.previous_state is GroupState.EMPTY:
        group.new_member_added = True
    step.start(member.session, NEW_MEMBER_TIMEOUT_MS)
    _rebalance_or_complete(step)


# -- rebalances


def _rebalance_or_complete(step: ClassicStep) -> None:
    """A member has joined or left: begin a rebalance, or complete the current one if all members have joined."""
    if step.group.state in CAN_REBALANCE:
        _begin_rebalance(step)
    else:
        _complete_if_all_joined(step)


def _begin_rebalance(step: ClassicStep) -> None:
    group = step.group
    if group.state is GroupState.COMPLETING:
        _drop_assignments(step, ErrorCode.REBALANCE_IN_PROGRESS)
        _stop_store_timer(step)
    step.stop(group.sync_timer)
    is_first = group.state is GroupState.EMPTY
    group.go_to(GroupState.PREPARING, step.now_ms)
    if not is_first:
        _complete_join_or_wait(step)
        return
    delay_ms = step.settings.group_initial_rebalance_delay_ms
    group.new_member_added = False
    _wait_for_first_members(step, delay_ms, max(0, _rebalance_timeout_ms(group) - delay_ms))


def _wait_for_first_members(step: ClassicStep, delay_ms: int, remaining_ms: int) -> None:
    if delay_ms:
        _start_join_timer(step, delay_ms, FirstWaitOver(delay_ms, remaining_ms))
    else:
        _complete_join(step)


def _first_wait_over(step: ClassicStep, event: FirstWaitOver) -> None:
    """Wait again while new members keep joining, up to the rebalance timeout in total."""
    group = step.group
    if group.state is not GroupState.PREPARING:
        return
    if group.new_member_added and event.remaining_ms:
        group.new_member_added = False
        delay_ms = min(step.settings.group_initial_rebalance_delay_ms, event.remaining_ms)
        _wait_for_first_members(step, delay_ms, max(0, event.remaining_ms - event.waited_ms))
    else:
        _complete_join(step)


def _complete_if_all_joined(step: ClassicStep) -> None:
    group = step.group
    is_first = group.previous_state is GroupState.EMPTY
    if group.state is GroupState.PREPARING and not is_first and group.has_all_joined:
        _complete_join(step)


def _complete_join_or_wait(step: ClassicStep) -> None:
    if step.group.has_all_joined:
        _complete_join(step)
    else:
        _start_join_timer(step, _rebalance_timeout_ms(step.group), JoinOver())


def _join_over(step: ClassicStep, _: JoinOver) -> None:
    _complete_join(step)


def _complete_join(step: ClassicStep) -> None:
    """Go on with the members that have joined. Other dynamic members are removed; static ones keep their place."""
    group = step.group
    step.stop(group.join_timer)
    if group.state is not GroupState.PREPARING:
        return
    for member in [one for one in group.members.values() if one.joining is None and one.instance_id is None]:
        _forget(step, member)
    if group.members and not _elect_joined_leader(group):
        # No member is back yet: wait on, until they return or their sessions expire.
        _start_join_timer(step, _rebalance_timeout_ms(group), JoinOver())
        return
    group.begin_generation(step.now_ms)
    if group.members:
        _begin_sync(step)
    else:
        step.write([group.entry()], EmptinessStored)


def _elect_joined_leader(group: ClassicGroup) -> bool:
    """Elect a leader among the members that joined, the old one if it did. False if none did."""
    leader = group.members.get(group.leader_id or "")
    if leader is not None and leader.joining is not None:
        return True
    first = next((member.id for member in group.members.values() if member.joining is not None), None)
    if first is not None:
        group.leader_id = first
    return first is not None


def _begin_sync(step: ClassicStep) -> None:
    group = step.group
    _start_sync_timer(step)
    for member in group.members.values():
        answer = group.take_join(member)
        if member.syncing is None:
            group.pending_sync.add(member.id)
        _start_session(step, member)
        member.is_new = False
        if answer is not None:
            step.answer(answer, _joined(group, member, with_members=member.id == group.leader_id))


def _emptiness_stored(step: ClassicStep, event: EmptinessStored) -> None:
    if event.code:
        message = "group %s: could not write that its last member has left: %s"
        step.note(logging.WARNING, message, step.group.id, event.code.name)
    else:
        step.group.stored = None


# -- syncing


def _sync(step: ClassicStep, event: SyncGroup) -> None:
    group = step.group
    code = SYNC[GroupState.DEAD] if group.state is GroupState.DEAD else _check_sync(group, event)
    code = code or SYNC[group.state]
    if code:
        step.answer(event.answer, SyncGroupResponse(error_code=code))
        return
    member = group.members[event.member_id]
    group.pending_sync.discard(member.id)
    if group.state is GroupState.STABLE:
        _start_session(step, member)
        step.answer(event.answer, _synced(group, member))
        return
    member.syncing = event.answer
    if member.id == group.leader_id:
        assignments = {member_id: event.assignments.get(member_id, b"") for member_id in group.members}
        record = record_of(group, assignments)
        step.write([group.entry(record)], partial(AssignmentsStored, group.generation, assignments, record))
        group.store_timer = group.store_timer or GroupTimer(ClientsWaited(group.generation))
    if group.store_timer is not None:
        step.start(group.store_timer, round(ANSWERED_WITHIN_S * 1000), unless_running=True)


def _check_sync(group: ClassicGroup, event: SyncGroup) -> ErrorCode:
    code = group.check_member(event.member_id, event.instance_id)
    if code:
        return code
    if event.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if event.protocol_type not in {None, group.protocol_type}:
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if event.protocol_name not in {None, group.protocol_name}:
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.NONE


def _assignments_stored(step: ClassicStep, event: AssignmentsStored) -> None:
    group = step.group
    if not event.code:
        group.stored = event.record
    if group.state is not GroupState.COMPLETING or group.generation != event.generation:
        return  # another rebalance was faster, and has answered the waiting requests
    _stop_store_timer(step)
    if event.code:
        _drop_assignments(step, sync_code(event.code))
        _begin_rebalance(step)
        return
    group.go_to(GroupState.STABLE, step.now_ms)
    leader = group.members.get(group.leader_id or "")
    group.held.assign(sum(map(len, event.assignments.values())), None if leader is None else leader.principal)
    for member in group.members.values():
        member.assignment = event.assignments.get(member.id, b"")
        _answer_sync(step, member, _synced(group, member))


def _stop_store_timer(step: ClassicStep) -> None:
    timer, step.group.store_timer = step.group.store_timer, None
    step.stop(timer)


def _clients_waited(step: ClassicStep, event: ClientsWaited) -> None:
    """Refuse all that wait for the assignments. These count once they are written: a member that returns then gets its own."""
    if step.group.state is GroupState.COMPLETING and step.group.generation == event.generation:
        for member in step.group.members.values():
            _answer_sync(step, member, SyncGroupResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE))


def _answer_sync(step: ClassicStep, member: Member, response: SyncGroupResponse) -> None:
    answer, member.syncing = member.syncing, None
    if answer is not None:
        _start_session(step, member)
        step.answer(answer, response)


def _drop_assignments(step: ClassicStep, code: ErrorCode) -> None:
    step.group.held.assign(0)
    for member in step.group.members.values():
        member.assignment = b""
        _answer_sync(step, member, SyncGroupResponse(error_code=code))


def _sync_over(step: ClassicStep, event: SyncOver) -> None:
    """The time to sync is over: members that joined but did not sync are removed."""
    group = step.group
    if group.generation != event.generation or group.state not in {GroupState.COMPLETING, GroupState.STABLE}:
        return
    late = [group.members[member_id] for member_id in group.pending_sync]
    if late:
        for member in late:
            _forget(step, member)
        _begin_rebalance(step)


# -- leaving


def _leave(step: ClassicStep, event: LeaveGroup) -> None:
    """Remove members from the group; the result has a code for each. One rebalance follows for all of them."""
    step.result = [_leave_one(step, one) for one in event.members]
    if ErrorCode.NONE in step.result:
        _after_removal(step)


def _leave_one(step: ClassicStep, identity: MemberIdentity) -> ErrorCode:
    group, member_id, instance_id = step.group, identity.member_id, identity.group_instance_id
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if instance_id is not None and not member_id:
        member_id = group.statics.get(instance_id, "")
    if member_id in group.pending and instance_id is None:
        step.stop(group.pending.pop(member_id))
        return ErrorCode.NONE
    code = group.check_member(member_id, instance_id)
    if not code:
        _forget(step, group.members[member_id])
    return code


def _after_removal(step: ClassicStep) -> None:
    if step.group.state in {GroupState.STABLE, GroupState.COMPLETING}:
        _begin_rebalance(step)
    else:
        _complete_if_all_joined(step)


def _forget(step: ClassicStep, member: Member) -> None:
    """Remove a member, and answer its pending request."""
    step.stop(member.session)
    _refuse_waiting(step, member, ErrorCode.UNKNOWN_MEMBER_ID)
    step.group.remove(member)


def _refuse_waiting(step: ClassicStep, member: Member, code: ErrorCode) -> None:
    joining = step.group.take_join(member)
    if joining is not None:
        step.answer(joining, join_error(code, ""))
    syncing, member.syncing = member.syncing, None
    if syncing is not None:
        step.answer(syncing, SyncGroupResponse(error_code=code))


# -- time


def _start_session(step: ClassicStep, member: Member) -> None:
    step.start(member.session, member.session_timeout_ms)


def _session_over(step: ClassicStep, event: SessionOver) -> None:
    group, member = step.group, event.member
    if group.members.get(member.id) is not member:
        return
    if not member.is_new and (member.joining is not None or member.syncing is not None):
        return  # it waits for the broker; its session restarts with the response
    step.note(logging.INFO, "group %s: removing member %s, which sent no heartbeat in time", group.id, member.id)
    _forget(step, member)
    _after_removal(step)


def _pending_over(step: ClassicStep, event: PendingOver) -> None:
    if step.group.pending.pop(event.member_id, None) is not None:
        _complete_if_all_joined(step)


def _rebalance_timeout_ms(group: ClassicGroup) -> int:
    return max((member.rebalance_timeout_ms for member in group.members.values()), default=0)


def _start_join_timer(step: ClassicStep, after_ms: int, event: FirstWaitOver | JoinOver) -> None:
    timer = step.group.join_timer = step.group.join_timer or GroupTimer()
    timer.event = event
    step.start(timer, after_ms)


def _start_sync_timer(step: ClassicStep) -> None:
    timer = step.group.sync_timer = step.group.sync_timer or GroupTimer()
    timer.event = SyncOver(step.group.generation)
    step.start(timer, _rebalance_timeout_ms(step.group))


# -- the group as a whole


def _loaded(step: ClassicStep, _: GroupLoaded) -> None:
    for member in step.group.members.values():
        _start_session(step, member)


def _downgraded(step: ClassicStep, _: Downgraded) -> None:
    _loaded(step, GroupLoaded())
    _begin_rebalance(step)


def _killed(step: ClassicStep, event: Killed) -> None:
    group = step.group
    for timer in group.pending.values():
        step.stop(timer)
    group.pending.clear()
    step.stop(group.join_timer)
    step.stop(group.sync_timer)
    _stop_store_timer(step)
    for member in group.members.values():
        step.stop(member.session)
        _refuse_waiting(step, member, event.code)
    group.go_to(GroupState.DEAD, step.now_ms)


_STEPS: dict[type, Callable[[ClassicStep, Any], None]] = {
    JoinGroup: _join,
    SyncGroup: _sync,
    LeaveGroup: _leave,
    SessionOver: _session_over,
    PendingOver: _pending_over,
    FirstWaitOver: _first_wait_over,
    JoinOver: _join_over,
    SyncOver: _sync_over,
    ClientsWaited: _clients_waited,
    AssignmentsStored: _assignments_stored,
    NewIdStored: _new_id_stored,
    PlaceStored: _place_stored,
    EmptinessStored: _emptiness_stored,
    GroupLoaded: _loaded,
    Downgraded: _downgraded,
    Killed: _killed,
}


# -- responses


def _joined(group: ClassicGroup, member: Member, *, with_members: bool) -> JoinGroupResponse:
    members = [
        JoinGroupResponseMember(
            member_id=each.id, group_instance_id=each.instance_id, metadata=each.metadata(group.protocol_name)
        )
        for each in (group.members.values() if with_members else ())
    ]
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        member_id=member.id,
        members=members,
    )


def _synced(group: ClassicGroup, member: Member) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol_name, assignment=member.assignment
    )


def join_error(code: ErrorCode, member_id: str) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, generation_id=NO_GENERATION, protocol_name=None, member_id=member_id)


def sync_code(code: ErrorCode) -> ErrorCode:
    """The error for a leader whose assignments could not be written."""
    if code in {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE}:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return ErrorCode.COORDINATOR_NOT_AVAILABLE
