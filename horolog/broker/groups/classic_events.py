"""What may happen to a classic group: requests, timers that are due, writes that have ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.groups import (
    JoinGroupRequest,
    JoinGroupResponse,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupResponse,
)

if TYPE_CHECKING:
    from horolog.broker.groups.classic_group import Member

Protocols = Sequence[tuple[str, bytes]]
AnswerJoin = Callable[[JoinGroupResponse], None]
AnswerSync = Callable[[SyncGroupResponse], None]
NewMemberId = Callable[[str, str | None], str]
"""Makes an id of the client's name and the instance id."""


class Client(NamedTuple):
    """The name that a client goes by, and where it is."""

    id: str
    host: str


class Timeouts(NamedTuple):
    """How long a member may be silent, and how long a rebalance waits for it."""

    session_ms: int
    rebalance_ms: int


# -- requests


class JoinGroup(NamedTuple):
    """Somebody joins, or joins again; `new_id` makes an id for one that has none."""

    member_id: str
    instance_id: str | None
    protocol_type: str
    protocols: Protocols
    timeouts: Timeouts
    client: Client
    version: int
    new_id: Callable[[], str]
    answer: AnswerJoin

    @classmethod
    def read(
        cls,
        request: JoinGroupRequest,
        version: int,
        client: tuple[str, str],
        new_member_id: NewMemberId,
        answer: AnswerJoin,
    ) -> JoinGroup:
        session_ms, rebalance_ms = request.session_timeout_ms, request.rebalance_timeout_ms
        return cls(
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            protocol_type=request.protocol_type,
            protocols=tuple((each.name, bytes(each.metadata)) for each in request.protocols),
            timeouts=Timeouts(session_ms, session_ms if rebalance_ms < 0 else rebalance_ms),  # v0 has one for both
            client=Client(*client),
            version=version,
            new_id=partial(new_member_id, client[0], request.group_instance_id),
            answer=answer,
        )


class SyncGroup(NamedTuple):
    """A member asks for its assignment; the leader brings those of all."""

    member_id: str
    instance_id: str | None
    generation: int
    protocol_type: str | None
    protocol_name: str | None
    assignments: Mapping[str, bytes]
    answer: AnswerSync

    @classmethod
    def read(cls, request: SyncGroupRequest, answer: AnswerSync) -> SyncGroup:
        return cls(
            member_id=request.member_id,
            instance_id=request.group_instance_id,
            generation=request.generation_id,
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignments={each.member_id: bytes(each.assignment) for each in request.assignments},
            answer=answer,
        )


class LeaveGroup(NamedTuple):
    """Members leave, or are taken out by an admin tool."""

    members: Sequence[MemberIdentity]


# -- timers that are due


class SessionOver(NamedTuple):
    """Nothing was heard of a member for its session timeout."""

    member: Member


class PendingOver(NamedTuple):
    """A new member was told its id, and has not come back with it."""

    member_id: str


class FirstWaitOver(NamedTuple):
    """The first rebalance has waited for more members."""

    waited_ms: int
    remaining_ms: int


class JoinOver(NamedTuple):
    """The time to join again is over."""


class SyncOver(NamedTuple):
    """The time to sync is over."""

    generation: int


# -- writes that have ended, well or with an error


class AssignmentsStored(NamedTuple):
    """The assignments of a generation are written."""

    generation: int
    assignments: Mapping[str, bytes]
    code: ErrorCode


class NewIdStored(NamedTuple):
    """The new id of a static member that has been restarted is written."""

    member: Member
    old_id: str
    old_leader_id: str
    version: int
    answer: AnswerJoin
    code: ErrorCode


class EmptinessStored(NamedTuple):
    """It is written that the last member is gone."""

    code: ErrorCode


# -- what the coordinator does


class Loaded(NamedTuple):
    """The group was read from the log: every member has its whole session before it to say that it is still there."""


class Downgraded(NamedTuple):
    """The group was of the newer protocol until now: its members are to join again."""


class Killed(NamedTuple):
    """The group is no more, or goes on as another; who waits in it is told `code`."""

    code: ErrorCode = ErrorCode.COORDINATOR_NOT_AVAILABLE


Event = (
    JoinGroup
    | SyncGroup
    | LeaveGroup
    | SessionOver
    | PendingOver
    | FirstWaitOver
    | JoinOver
    | SyncOver
    | AssignmentsStored
    | NewIdStored
    | EmptinessStored
    | Loaded
    | Downgraded
    | Killed
)
