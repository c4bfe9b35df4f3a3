"""The events of a classic group: requests, timers that are due, writes that have finished."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from horolog.broker.base.principal import Principal
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
    from horolog.protocol.messages.coordinator_records import GroupMetadataValue

Protocols = Sequence[tuple[str, bytes]]
AnswerJoin = Callable[[JoinGroupResponse], None]
AnswerSync = Callable[[SyncGroupResponse], None]
NewMemberId = Callable[[str, str | None], str]
"""Makes a member id from the client id and the instance id."""


class Client(NamedTuple):
    """A client's id, its host, and the principal of its requests: None if that is not known, as after a start."""

    id: str
    host: str
    principal: Principal | None = None


class Timeouts(NamedTuple):
    """How long a member may send nothing, and how long a rebalance waits for it."""

    session_ms: int
    rebalance_ms: int


# -- requests


class JoinGroup(NamedTuple):
    """A member joins or rejoins; `new_id` makes an id for a member without one."""

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
        client: Client,
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
            client=client,
            version=version,
            new_id=partial(new_member_id, client.id, request.group_instance_id),
            answer=answer,
        )


class SyncGroup(NamedTuple):
    """A member requests its assignment; the leader sends those of all members."""

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
    """Members leave, or an admin tool removes them."""

    members: Sequence[MemberIdentity]


# -- timers that are due


class SessionOver(NamedTuple):
    """A member's session timeout has expired."""

    member: Member


class PendingOver(NamedTuple):
    """A new member was given its id, but has not rejoined with it."""

    member_id: str


class FirstWaitOver(NamedTuple):
    """The first rebalance has waited for more members."""

    waited_ms: int
    remaining_ms: int


class JoinOver(NamedTuple):
    """The time to rejoin is over."""


class SyncOver(NamedTuple):
    """The time to sync is over."""

    generation: int


class ClientsWaited(NamedTuple):
    """The assignments of a generation are still not written, and clients wait no longer."""

    generation: int


# -- writes that have finished or failed


class AssignmentsStored(NamedTuple):
    """The assignments of a generation are written."""

    generation: int
    assignments: Mapping[str, bytes]
    record: GroupMetadataValue
    code: ErrorCode


class NewIdStored(NamedTuple):
    """The new id of a restarted static member is written: it gets the current generation."""

    member: Member
    old_id: str
    old_leader_id: str
    version: int
    answer: AnswerJoin
    record: GroupMetadataValue
    code: ErrorCode


class PlaceStored(NamedTuple):
    """The new id of a restarted static member is written in the stored generation: it takes part in the rebalance."""

    member: Member
    old_id: str
    new_id: str
    answer: AnswerJoin
    record: GroupMetadataValue
    code: ErrorCode


class EmptinessStored(NamedTuple):
    """The record that the group is empty is written."""

    code: ErrorCode


# -- what the coordinator does


class GroupLoaded(NamedTuple):
    """The group was read from the log: every member's session starts now."""


class Downgraded(NamedTuple):
    """The group used the newer protocol until now: its members have to rejoin."""


class Killed(NamedTuple):
    """The group ends, or another replaces it; its waiting requests are answered with `code`."""

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
    | ClientsWaited
    | AssignmentsStored
    | NewIdStored
    | PlaceStored
    | EmptinessStored
    | GroupLoaded
    | Downgraded
    | Killed
)
