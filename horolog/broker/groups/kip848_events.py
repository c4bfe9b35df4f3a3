"""The events of a group of the newer protocol, apart from the classic requests of members that still speak the old one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from horolog.broker.groups.classic_events import Client, GroupLoaded, JoinGroup, Killed, LeaveGroup, SyncGroup
from horolog.broker.groups.topic_patterns import MayDescribe
from horolog.protocol.messages.consumer_groups import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse
from horolog.protocol.messages.groups import HeartbeatRequest
from horolog.protocol.records.batch import Entry

if TYPE_CHECKING:
    from horolog.broker.groups.consumer_group import ConsumerMember

Respond = Callable[[ConsumerGroupHeartbeatResponse], None]
"""Sends the response to a heartbeat."""

SILENT = "sent no heartbeat in time"
NOT_GIVEN_BACK = "did not give back its partitions in time"
NOT_COME_BACK = "did not come back in time"


class Heartbeat(NamedTuple):
    """A member sends its subscription and its partitions.

    `entries` are records to write first if it is accepted: those that convert a group of the other protocol. Without access
    lists there is no `may_describe`.
    """

    request: ConsumerGroupHeartbeatRequest
    client: Client
    entries: Sequence[Entry]
    answer: Respond
    may_describe: MayDescribe | None = None


class Leave(NamedTuple):
    """Epoch -1: the member leaves. Epoch -2: a static member leaves, and its place is kept for a session timeout."""

    request: ConsumerGroupHeartbeatRequest
    answer: Respond


class Overdue(NamedTuple):
    """A member has exceeded a timeout: it is removed."""

    member: ConsumerMember
    why: str


class Upgraded(NamedTuple):
    """The group was classic until now: every member's session starts now."""


Event = (
    Heartbeat
    | Leave
    | Overdue
    | Upgraded
    | JoinGroup
    | SyncGroup
    | HeartbeatRequest
    | LeaveGroup
    | GroupLoaded
    | Killed
)
