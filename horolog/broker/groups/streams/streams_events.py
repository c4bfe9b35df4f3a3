"""The events of a streams group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from horolog.broker.groups.classic_events import Client
from horolog.protocol.messages.streams_groups import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    StreamsTopicInfo,
)

if TYPE_CHECKING:
    from horolog.broker.groups.streams.streams_group import StreamsMember

StreamsRespond = Callable[[StreamsGroupHeartbeatResponse], None]
"""Sends the response to a heartbeat."""

InternalTopics = Mapping[str, tuple[StreamsTopicInfo, int]]
"""Internal topics to create, as the topology declares them, and their numbers of partitions."""

SILENT = "sent no heartbeat in time"
NOT_GIVEN_BACK = "did not give back its tasks in time"


class StreamsHeartbeat(NamedTuple):
    """A member sends its topology, its tasks and its description.

    `create` gets the internal topics to create once the group's records are written. Without access lists there is no `may_create`.
    """

    request: StreamsGroupHeartbeatRequest
    client: Client
    answer: StreamsRespond
    create: Callable[[InternalTopics], None]
    may_create: Callable[[str], bool] | None = None


class StreamsLeave(NamedTuple):
    """Epoch -1: the member leaves."""

    request: StreamsGroupHeartbeatRequest
    answer: StreamsRespond


class StreamsOverdue(NamedTuple):
    """A member has exceeded a timeout: it is removed."""

    member: StreamsMember
    why: str


class DelayOver(NamedTuple):
    """The group has waited long enough for more members: tasks are assigned."""


class InternalTopicsMade(NamedTuple):
    """The cluster has answered for the internal topics; `errors` has the reasons by topic where it refused."""

    errors: Mapping[str, str]
