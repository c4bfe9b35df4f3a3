"""The events of a share group."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from horolog.broker.groups.classic_events import Client
from horolog.broker.groups.share.tracked_topics import Tracked, TrackedTopics
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.share_groups import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

if TYPE_CHECKING:
    from horolog.broker.groups.share.share_group import ShareGroupMember

ShareRespond = Callable[[ShareGroupHeartbeatResponse], None]
"""Sends the response to a heartbeat."""


class StatesToBegin(NamedTuple):
    """What the persister is asked for: the states of some partitions in an epoch of the group."""

    topics: Tracked
    state_epoch: int


class ShareHeartbeat(NamedTuple):
    """A member sends its subscription. `initialize` gets the states to begin once the group's records are written, else None."""

    request: ShareGroupHeartbeatRequest
    client: Client
    answer: ShareRespond
    initialize: Callable[[StatesToBegin | None], None]


class ShareLeave(NamedTuple):
    """Epoch -1: the member leaves."""

    request: ShareGroupHeartbeatRequest
    answer: ShareRespond


class ShareOverdue(NamedTuple):
    """A member has fallen silent: it is removed."""

    member: ShareGroupMember


class StatesBegun(NamedTuple):
    """The persister has answered for some partitions, well or not."""

    begun: Tracked
    refused: Tracked


class TopicsTracked(NamedTuple):
    """The tracked topics change for a reason outside of the heartbeats; `then` gets the outcome of the write."""

    change: Callable[[TrackedTopics], TrackedTopics]
    then: Callable[[ErrorCode], None]
