"""The classic group protocol: who joins, leaves or falls silent, and what that makes of the group.

What a request does depends on the group's state alone; the tables below say what. A rebalance: the group is PREPARING until
all members have joined again or their time is up, then COMPLETING until the leader has brought the assignments, then STABLE
once they are written. A first rebalance waits `group.initial.rebalance.delay.ms` for more members instead.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial

from horolog.broker.clock import Clock
from horolog.broker.groups.classic_group import (
    CAN_REBALANCE,
    NO_GENERATION,
    AnswerJoin,
    AnswerSync,
    ClassicGroup,
    Member,
    Protocols,
    State,
    new_member_id,
)
from horolog.broker.groups.journal import Journal
from horolog.broker.groups.timers import Timer, Timers
from horolog.broker.settings import Settings
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.groups import (
    JoinGroupRequest,
    JoinGroupResponse,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupResponse,
)

log = logging.getLogger(__name__)

NEW_MEMBER_TIMEOUT_MS = 300_000
"""A new member that waits in its first join sends no heartbeats; it is given so long."""

FIRST_JOIN_WITH_MEMBER_ID = 4
FIRST_JOIN_WITH_SKIPPED_ASSIGNMENT = 9

HEARTBEAT: dict[State, ErrorCode] = {
    State.EMPTY: ErrorCode.UNKNOWN_MEMBER_ID,
    State.PREPARING: ErrorCode.REBALANCE_IN_PROGRESS,
    State.COMPLETING: ErrorCode.NONE,
    State.STABLE: ErrorCode.NONE,
    State.DEAD: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}

SYNC: dict[State, ErrorCode] = {
    State.EMPTY: ErrorCode.UNKNOWN_MEMBER_ID,
    State.PREPARING: ErrorCode.REBALANCE_IN_PROGRESS,
    State.COMPLETING: ErrorCode.NONE,  # waits for the leader
    State.STABLE: ErrorCode.NONE,  # gets its assignment again
    State.DEAD: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}

REBALANCES_ON_REJOIN: dict[State, Callable[[ClassicGroup, Member, Protocols], bool]] = {
    State.PREPARING: lambda _group, _member, _protocols: True,
    # The same metadata again: the answer was lost on its way.
    State.COMPLETING: lambda _group, member, protocols: member.protocols != protocols,
    # A leader that joins again asks for a rebalance: something has changed that only it looks at.
    State.STABLE: lambda group, member, protocols: group.leader_id == member.id or member.protocols != protocols,
}
"""Whether a known member that joins again begins (or takes part in) a rebalance, or gets the current generation once more."""


class Classic:
    """Runs classic groups. Nothing here waits: an answer may come later, through the function that came with the request."""

    def __init__(self, settings: Callable[[], Settings], clock: Clock, timers: Timers, journal: Journal) -> None:
        self._settings = settings
        self._clock = clock
        self._timers = timers
        self._journal = journal

    # -- joining

    def join(
        self,
        group: ClassicGroup,
        request: JoinGroupRequest,
        version: int,
        client: tuple[str, str],
        answer: AnswerJoin,
    ) -> None:
        protocols = tuple((each.name, bytes(each.metadata)) for each in request.protocols)
        refusal = self._refusal(group, request, protocols)
        if refusal is not None:
            code, member_id = refusal
            answer(join_error(code, member_id))
        elif not request.member_id and request.group_instance_id is None:
            self._join_new(group, request, protocols, version, client, answer)
        elif request.member_id in group.pending:
            self._timers.stop(group.pending.pop(request.member_id))
            self._add(group, request, request.member_id, protocols, client, answer)
        elif not request.member_id:
            self._join_static(group, request, protocols, version, client, answer)
        else:
            self._rejoin(group, group.members[request.member_id], request, protocols, answer)

    def _refusal(
        self, group: ClassicGroup, request: JoinGroupRequest, protocols: Protocols
    ) -> tuple[ErrorCode, str] | None:
        """What is wrong with this request, and the member id to answer with."""
        member_id = request.member_id
        if group.state is State.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE, member_id
        if not self._has_room(group, request):
            return ErrorCode.GROUP_MAX_SIZE_REACHED, ""
        if not group.supports(request.protocol_type, (name for name, _ in protocols)):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id
        if not member_id or member_id in group.pending:
            return None
        code = group.check_member(member_id, request.group_instance_id)
        if not code and group.state not in REBALANCES_ON_REJOIN:
            code = ErrorCode.UNKNOWN_MEMBER_ID
        return (code, member_id) if code else None

    def _has_room(self, group: ClassicGroup, request: JoinGroupRequest) -> bool:
        if request.member_id in group.members or request.member_id in group.pending:
            return True
        if request.group_instance_id in group.statics:
            return True
        return len(group.members) + len(group.pending) < self._settings().group_max_size

    def _join_new(
        self,
        group: ClassicGroup,
        request: JoinGroupRequest,
        protocols: Protocols,
        version: int,
        client: tuple[str, str],
        answer: AnswerJoin,
    ) -> None:
        member_id = new_member_id(client[0], None)
        if version < FIRST_JOIN_WITH_MEMBER_ID:
            self._add(group, request, member_id, protocols, client, answer)
            return
        # It has to come back with the id: one whose answer is lost would otherwise be a member nobody speaks for.
        timer = group.pending[member_id] = Timer(partial(self._pending_over, group, member_id))
        self._timers.start(timer, request.session_timeout_ms)
        answer(join_error(ErrorCode.MEMBER_ID_REQUIRED, member_id))

    def _join_static(
        self,
        group: ClassicGroup,
        request: JoinGroupRequest,
        protocols: Protocols,
        version: int,
        client: tuple[str, str],
        answer: AnswerJoin,
    ) -> None:
        """A static member without a member id: it is new, or it has been restarted and takes its own place."""
        instance_id = request.group_instance_id
        assert instance_id is not None
        member_id = new_member_id(client[0], instance_id)
        holder = group.members.get(group.statics.get(instance_id, ""))
        if holder is None:
            self._add(group, request, member_id, protocols, client, answer)
            return
        self._refuse_waiting(group, holder, ErrorCode.FENCED_INSTANCE_ID)
        old_id, old_leader_id = holder.id, group.leader_id
        group.rename(holder, member_id)
        holder.client_id, holder.client_host = client
        self._update(group, holder, request, protocols)
        if group.state is State.STABLE and group.select_protocol() == group.protocol_name:
            self._start_session(holder)
            written = partial(self._renamed, group, holder, old_id, old_leader_id or "", version, answer)
            self._journal.append(group.shard, [group.entry()], written, is_state=True)
        else:
            group.wait_to_join(holder, answer)
            self._rebalance_or_complete(group)

    def _renamed(
        self,
        group: ClassicGroup,
        member: Member,
        old_id: str,
        old_leader_id: str,
        version: int,
        answer: AnswerJoin,
        code: ErrorCode,
        _: int,
    ) -> None:
        """A static member is back, nothing has changed, and its new id is written: it gets the current generation.

        A leader that understands it is told to leave the assignment alone; an older one is told that another leads.
        """
        if code:
            log.warning("group %s: the new id of static member %s could not be written", group.id, member.instance_id)
            answer(join_error(ErrorCode.COORDINATOR_NOT_AVAILABLE, member.id))
            if group.members.get(member.id) is member:
                group.rename(member, old_id)
            return
        is_leader = group.leader_id == member.id
        may_skip = version >= FIRST_JOIN_WITH_SKIPPED_ASSIGNMENT
        response = group.joined(member, with_members=is_leader and may_skip)
        response.skip_assignment = is_leader and may_skip
        if not may_skip:
            response.leader = old_leader_id
        answer(response)

    def _rejoin(
        self,
        group: ClassicGroup,
        member: Member,
        request: JoinGroupRequest,
        protocols: Protocols,
        answer: AnswerJoin,
    ) -> None:
        if REBALANCES_ON_REJOIN[group.state](group, member, protocols):
            self._update(group, member, request, protocols)
            group.wait_to_join(member, answer)
            self._rebalance_or_complete(group)
        else:
            is_leader = group.leader_id == member.id
            answer(group.joined(member, with_members=is_leader and group.state is State.COMPLETING))

    def _update(self, group: ClassicGroup, member: Member, request: JoinGroupRequest, protocols: Protocols) -> None:
        group.update(member, protocols)
        member.session_timeout_ms = request.session_timeout_ms
        member.rebalance_timeout_ms = rebalance_timeout_ms(request)

    def _add(
        self,
        group: ClassicGroup,
        request: JoinGroupRequest,
        member_id: str,
        protocols: Protocols,
        client: tuple[str, str],
        answer: AnswerJoin,
    ) -> None:
        member = self.make_member(
            group,
            member_id,
            request.group_instance_id,
            client,
            request.session_timeout_ms,
            rebalance_timeout_ms(request),
            protocols,
        )
        member.is_new = True
        if not group.members:
            group.protocol_type = request.protocol_type
        group.add(member)
        group.wait_to_join(member, answer)
        if group.state is State.PREPARING and group.previous_state is State.EMPTY:
            group.new_member_added = True
        self._timers.start(member.session, NEW_MEMBER_TIMEOUT_MS)
        self._rebalance_or_complete(group)

    def make_member(
        self,
        group: ClassicGroup,
        member_id: str,
        instance_id: str | None,
        client: tuple[str, str],
        session_timeout_ms: int,
        member_rebalance_timeout_ms: int,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> Member:
        member = Member(
            member_id,
            instance_id,
            client[0],
            client[1],
            session_timeout_ms,
            member_rebalance_timeout_ms,
            protocols,
            Timer(_nothing),
            assignment,
        )
        member.session.action = partial(self._session_over, group, member)
        return member

    # -- rebalances

    def _rebalance_or_complete(self, group: ClassicGroup) -> None:
        """Someone has come or gone: begin a rebalance, or end the one that is on if nobody is missing any more."""
        if group.state in CAN_REBALANCE:
            self.begin_rebalance(group)
        else:
            self._complete_if_all_joined(group)

    def begin_rebalance(self, group: ClassicGroup) -> None:
        if group.state is State.COMPLETING:
            self._drop_assignments(group, ErrorCode.REBALANCE_IN_PROGRESS)
        self._stop(group.sync_timer)
        is_first = group.state is State.EMPTY
        group.go_to(State.PREPARING, self._clock.wall_ms())
        if not is_first:
            self._complete_join_or_wait(group)
            return
        delay_ms = self._settings().group_initial_rebalance_delay_ms
        group.new_member_added = False
        self._wait_for_first_members(group, delay_ms, max(0, group.rebalance_timeout_ms - delay_ms))

    def _wait_for_first_members(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        if delay_ms:
            self._start_join_timer(group, delay_ms, partial(self._first_wait_over, group, delay_ms, remaining_ms))
        else:
            self._complete_join(group)

    def _first_wait_over(self, group: ClassicGroup, waited_ms: int, remaining_ms: int) -> None:
        """Wait again as long as new members keep coming, up to the rebalance timeout in all."""
        if group.state is not State.PREPARING:
            return
        if group.new_member_added and remaining_ms:
            group.new_member_added = False
            delay_ms = min(self._settings().group_initial_rebalance_delay_ms, remaining_ms)
            self._wait_for_first_members(group, delay_ms, max(0, remaining_ms - waited_ms))
        else:
            self._complete_join(group)

    def _complete_if_all_joined(self, group: ClassicGroup) -> None:
        is_first = group.previous_state is State.EMPTY
        if group.state is State.PREPARING and not is_first and group.has_all_joined:
            self._complete_join(group)

    def _complete_join_or_wait(self, group: ClassicGroup) -> None:
        if group.has_all_joined:
            self._complete_join(group)
        else:
            self._start_join_timer(group, group.rebalance_timeout_ms, partial(self._complete_join, group))

    def _complete_join(self, group: ClassicGroup) -> None:
        """Go on with those who have joined. Dynamic members that have not are out; static ones keep their place."""
        self._stop(group.join_timer)
        if group.state is not State.PREPARING:
            return
        for member in [one for one in group.members.values() if one.joining is None and one.instance_id is None]:
            self._forget(group, member)
        if group.members and not group.elect_joined_leader():
            # Nobody is back yet: sessions that end will tell whether anybody will be.
            self._start_join_timer(group, group.rebalance_timeout_ms, partial(self._complete_join, group))
            return
        group.begin_generation(self._clock.wall_ms())
        if group.members:
            self._begin_sync(group)
        else:
            self._journal.append(group.shard, [group.entry()], partial(self._empty_written, group), is_state=True)

    def _begin_sync(self, group: ClassicGroup) -> None:
        self._start_sync_timer(group)
        for member in list(group.members.values()):
            answer = group.take_join(member)
            if member.syncing is None:
                group.pending_sync.add(member.id)
            self._start_session(member)
            member.is_new = False
            if answer is not None:
                answer(group.joined(member, with_members=member.id == group.leader_id))

    def _empty_written(self, group: ClassicGroup, code: ErrorCode, _: int) -> None:
        if code:
            log.warning("group %s: its last member is gone, which could not be written (%s)", group.id, code.name)

    # -- syncing

    def sync(self, group: ClassicGroup, request: SyncGroupRequest, answer: AnswerSync) -> None:
        code = SYNC[State.DEAD] if group.state is State.DEAD else self._check_sync(group, request)
        code = code or SYNC[group.state]
        if code:
            answer(SyncGroupResponse(error_code=code))
            return
        member = group.members[request.member_id]
        group.pending_sync.discard(member.id)
        if group.state is State.STABLE:
            self._start_session(member)
            answer(group.synced(member))
            return
        member.syncing = answer
        if member.id == group.leader_id:
            given = {each.member_id: bytes(each.assignment) for each in request.assignments}
            assignments = {member_id: given.get(member_id, b"") for member_id in group.members}
            written = partial(self._assignments_written, group, group.generation, assignments)
            self._journal.append(group.shard, [group.entry(assignments)], written, is_state=True)

    def _check_sync(self, group: ClassicGroup, request: SyncGroupRequest) -> ErrorCode:
        code = group.check_member(request.member_id, request.group_instance_id)
        if code:
            return code
        if request.generation_id != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        if request.protocol_type not in {None, group.protocol_type}:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if request.protocol_name not in {None, group.protocol_name}:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return ErrorCode.NONE

    def _assignments_written(
        self, group: ClassicGroup, generation: int, assignments: dict[str, bytes], code: ErrorCode, _: int
    ) -> None:
        if group.state is not State.COMPLETING or group.generation != generation:
            return  # another rebalance was faster, and has told those who waited
        if code:
            self._drop_assignments(group, sync_code(code))
            self.begin_rebalance(group)
            return
        group.go_to(State.STABLE, self._clock.wall_ms())
        for member in group.members.values():
            member.assignment = assignments.get(member.id, b"")
            self._answer_sync(member, group.synced(member))

    def _answer_sync(self, member: Member, response: SyncGroupResponse) -> None:
        answer, member.syncing = member.syncing, None
        if answer is not None:
            self._start_session(member)
            answer(response)

    def _drop_assignments(self, group: ClassicGroup, code: ErrorCode) -> None:
        for member in group.members.values():
            member.assignment = b""
            self._answer_sync(member, SyncGroupResponse(error_code=code))

    def _sync_over(self, group: ClassicGroup, generation: int) -> None:
        """The time to sync is over: members that joined and did not sync are out."""
        if group.generation != generation or group.state not in {State.COMPLETING, State.STABLE}:
            return
        late = [group.members[member_id] for member_id in group.pending_sync]
        if late:
            for member in late:
                self._forget(group, member)
            self.begin_rebalance(group)

    # -- heartbeats and leaving

    def heartbeat(self, group: ClassicGroup, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        if group.state is State.DEAD:
            return HEARTBEAT[State.DEAD]
        code = group.check_member(member_id, instance_id)
        if not code and group.generation != generation:
            code = ErrorCode.ILLEGAL_GENERATION
        if not code and group.state is not State.EMPTY:
            self._start_session(group.members[member_id])
        return code or HEARTBEAT[group.state]

    def leave(self, group: ClassicGroup, identities: Iterable[MemberIdentity]) -> list[ErrorCode]:
        """Take members out of the group; what became of each. One rebalance follows for all of them."""
        codes = [self._leave(group, one.member_id, one.group_instance_id) for one in identities]
        if ErrorCode.NONE in codes:
            self._after_removal(group)
        return codes

    def _leave(self, group: ClassicGroup, member_id: str, instance_id: str | None) -> ErrorCode:
        if group.state is State.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if instance_id is not None and not member_id:
            member_id = group.statics.get(instance_id, "")
        if member_id in group.pending and instance_id is None:
            self._timers.stop(group.pending.pop(member_id))
            return ErrorCode.NONE
        code = group.check_member(member_id, instance_id)
        if not code:
            self._forget(group, group.members[member_id])
        return code

    def _after_removal(self, group: ClassicGroup) -> None:
        if group.state in {State.STABLE, State.COMPLETING}:
            self.begin_rebalance(group)
        else:
            self._complete_if_all_joined(group)

    def _forget(self, group: ClassicGroup, member: Member) -> None:
        """A member is out; what it waits with is answered."""
        self._timers.stop(member.session)
        self._refuse_waiting(group, member, ErrorCode.UNKNOWN_MEMBER_ID)
        group.remove(member)

    def _refuse_waiting(self, group: ClassicGroup, member: Member, code: ErrorCode) -> None:
        answer = group.take_join(member)
        if answer is not None:
            answer(join_error(code, ""))
        syncing, member.syncing = member.syncing, None
        if syncing is not None:
            syncing(SyncGroupResponse(error_code=code))

    # -- time

    def _start_session(self, member: Member) -> None:
        self._timers.start(member.session, member.session_timeout_ms)

    def start_sessions(self, group: ClassicGroup) -> None:
        """After a restart every member has its whole session before it to say that it is still there."""
        for member in group.members.values():
            self._start_session(member)

    def _session_over(self, group: ClassicGroup, member: Member) -> None:
        if group.members.get(member.id) is not member:
            return
        if not member.is_new and (member.joining is not None or member.syncing is not None):
            return  # it waits for us; its session begins again with the answer
        log.info("group %s: member %s has fallen silent", group.id, member.id)
        self._forget(group, member)
        self._after_removal(group)

    def _pending_over(self, group: ClassicGroup, member_id: str) -> None:
        if group.pending.pop(member_id, None) is not None:
            self._complete_if_all_joined(group)

    def _start_join_timer(self, group: ClassicGroup, after_ms: int, action: Callable[[], None]) -> None:
        if group.join_timer is None:
            group.join_timer = Timer(action)
        group.join_timer.action = action
        self._timers.start(group.join_timer, after_ms)

    def _start_sync_timer(self, group: ClassicGroup) -> None:
        action = partial(self._sync_over, group, group.generation)
        if group.sync_timer is None:
            group.sync_timer = Timer(action)
        group.sync_timer.action = action
        self._timers.start(group.sync_timer, group.rebalance_timeout_ms)

    def _stop(self, timer: Timer | None) -> None:
        if timer is not None:
            self._timers.stop(timer)

    def kill(self, group: ClassicGroup, code: ErrorCode = ErrorCode.COORDINATOR_NOT_AVAILABLE) -> None:
        """The group is no more: whoever waits in it is told so, or to join again if it goes on as another."""
        for member_id in list(group.pending):
            self._timers.stop(group.pending.pop(member_id))
        self._stop(group.join_timer)
        self._stop(group.sync_timer)
        for member in list(group.members.values()):
            self._timers.stop(member.session)
            self._refuse_waiting(group, member, code)
        group.go_to(State.DEAD, self._clock.wall_ms())


def join_error(code: ErrorCode, member_id: str) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, generation_id=NO_GENERATION, protocol_name=None, member_id=member_id)


def rebalance_timeout_ms(request: JoinGroupRequest) -> int:
    """v0 has one timeout for both."""
    return request.session_timeout_ms if request.rebalance_timeout_ms < 0 else request.rebalance_timeout_ms


def sync_code(code: ErrorCode) -> ErrorCode:
    """What a leader is told whose assignments could not be written."""
    if code in {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE}:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return ErrorCode.COORDINATOR_NOT_AVAILABLE


def _nothing() -> None:
    """Stands in a timer until its action is known."""
