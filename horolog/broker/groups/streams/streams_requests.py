"""Checks heartbeats of streams groups, by themselves and for their group: nothing is changed before all of a request is checked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from horolog.broker.groups.known import Known
from horolog.broker.groups.streams.configured_topology import (
    ConfiguredTopology,
    InvalidTopologyError,
    configure,
    topics_of_topology,
)
from horolog.broker.groups.streams.streams_group import StreamsGroup, StreamsMember
from horolog.broker.groups.streams.tasks import TaskSet, each_task, read_tasks
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.streams_group_records import StreamsGroupTopologyValue
from horolog.protocol.messages.streams_groups import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    StreamsTaskIds,
    StreamsTopology,
)

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
LOWEST_EPOCH: Final = -2


class StreamsRefusal(NamedTuple):
    """Why a heartbeat is refused."""

    code: ErrorCode
    message: str


class Accepted(NamedTuple):
    """What an accepted heartbeat is about: a member that may be new, and the topology over the topics of the moment."""

    member: StreamsMember
    topology: StreamsGroupTopologyValue
    topics: dict[str, tuple[bytes, int]]
    configured: ConfiguredTopology


def streams_refusal(refusal: StreamsRefusal) -> StreamsGroupHeartbeatResponse:
    return StreamsGroupHeartbeatResponse(error_code=refusal.code, error_message=refusal.message)


def _invalid(message: str) -> StreamsRefusal:
    return StreamsRefusal(ErrorCode.INVALID_REQUEST, message)


# -- by itself


def check_streams_heartbeat(request: StreamsGroupHeartbeatRequest) -> StreamsRefusal | None:
    """Why a request is invalid by itself, if it is."""
    if not request.member_id:
        return _invalid("MemberId can't be empty.")
    if not request.group_id:
        return _invalid("GroupId can't be empty.")
    if request.member_epoch == LOWEST_EPOCH and request.instance_id is None:
        return _invalid("InstanceId can't be null.")
    if request.instance_id is not None:
        return _invalid("Static membership is not yet supported.")
    if request.rack_id == "":
        return _invalid("RackId can't be empty.")
    if request.member_epoch < LOWEST_EPOCH:
        return _invalid(f"MemberEpoch is {request.member_epoch}, but must be greater than or equal to -2.")
    owned = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    if any(one is None for one in owned) != all(one is None for one in owned):
        names = ("ActiveTasks", "StandbyTasks", "WarmupTasks")
        missing = next(name for name, one in zip(names, owned, strict=True) if one is None)
        if request.member_epoch == JOIN_EPOCH:
            return _invalid(f"{missing} must be empty when (re-)joining.")
        return _invalid("If one task-type is non-null, all must be non-null.")
    if request.member_epoch == JOIN_EPOCH:
        return _check_join(request)
    return None if request.topology is None else _invalid("Topology can only be provided when (re-)joining.")


def _check_join(request: StreamsGroupHeartbeatRequest) -> StreamsRefusal | None:
    if request.rebalance_timeout_ms < 0:
        return _invalid("RebalanceTimeoutMs must be provided in first request.")
    for name, tasks in (
        ("ActiveTasks", request.active_tasks),
        ("StandbyTasks", request.standby_tasks),
        ("WarmupTasks", request.warmup_tasks),
    ):
        if tasks is None or tasks:
            return _invalid(f"{name} must be empty when (re-)joining.")
    if request.topology is None:
        return _invalid("Topology must be non-null when (re-)joining.")
    return _check_topology(request.topology)


def _check_topology(topology: StreamsTopology) -> StreamsRefusal | None:
    subtopologies = topology.subtopologies
    if any(one.source_topic_regex for one in subtopologies):
        return _invalid("Regular expressions for source topics are not supported yet.")
    if topology.epoch < 0:
        return _invalid("The epoch of the topology can't be negative.")
    if len({one.subtopology_id for one in subtopologies}) < len(subtopologies):
        return _invalid("The ids of subtopologies must differ.")
    for info in (info for one in subtopologies for info in one.state_changelog_topics):
        if info.partitions:
            message = (
                f"Changelog topic {info.name} must have an undefined partition count,"
                f" but it is set to {info.partitions}."
            )
            return StreamsRefusal(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)
    return None


# -- for the group


def owned_tasks(request: StreamsGroupHeartbeatRequest) -> TaskSet | None:
    """The tasks that a member reports; None if it sends no report."""
    if request.active_tasks is None:
        return None
    return TaskSet(*map(read_tasks, (request.active_tasks, request.standby_tasks, request.warmup_tasks)))


def accept(group: StreamsGroup, request: StreamsGroupHeartbeatRequest, known: Known) -> Accepted | StreamsRefusal:
    """The member and the topology of a heartbeat, or why it is refused."""
    member = _member(group, request, known)
    if isinstance(member, StreamsRefusal):
        return member
    topology = _topology(group, request)
    if isinstance(topology, StreamsRefusal):
        return topology
    topics = existing_topics(topology, known)
    if topology is group.topology and topics == group.topics and group.configured is not None:
        configured = group.configured
    else:
        try:
            configured = configure(topology.subtopologies, lambda name: topics[name][1] if name in topics else None)
        except InvalidTopologyError as error:
            return StreamsRefusal(ErrorCode.STREAMS_INVALID_TOPOLOGY, str(error))
    if configured.is_ready:
        refusal = _check_tasks(configured, (request.active_tasks, request.standby_tasks, request.warmup_tasks))
        if refusal is not None:
            return refusal
    return Accepted(member, topology, topics, configured)


def existing_topics(topology: StreamsGroupTopologyValue, known: Known) -> dict[str, tuple[bytes, int]]:
    """Id and partition count of every existing topic of a topology."""
    found = ((name, known.topics.get(name)) for name in topics_of_topology(topology.subtopologies))
    return {name: (topic.id, topic.partition_count) for name, topic in found if topic is not None}


def _member(group: StreamsGroup, request: StreamsGroupHeartbeatRequest, known: Known) -> StreamsMember | StreamsRefusal:
    member = group.members.get(request.member_id)
    if member is not None:
        return _check_epoch(member, request) or member
    if request.member_epoch != JOIN_EPOCH:
        return unknown_member(group, request)
    limit = known.settings.group_streams_max_size
    if len(group.members) >= limit:
        message = f"The streams group has reached its maximum capacity of {limit} members."
        return StreamsRefusal(ErrorCode.GROUP_MAX_SIZE_REACHED, message)
    return StreamsMember(request.member_id)


def unknown_member(group: StreamsGroup, request: StreamsGroupHeartbeatRequest) -> StreamsRefusal:
    message = f"Member {request.member_id} is not a member of group {group.id}."
    return StreamsRefusal(ErrorCode.UNKNOWN_MEMBER_ID, message)


def _check_epoch(member: StreamsMember, request: StreamsGroupHeartbeatRequest) -> StreamsRefusal | None:
    """A member may send its epoch, 0 to rejoin, or the previous epoch if the response was lost."""
    epoch, current = request.member_epoch, member.current
    if epoch in {JOIN_EPOCH, current.epoch}:
        return None
    owned = owned_tasks(request)
    is_previous = current.previous_epoch == epoch < current.epoch
    if is_previous and owned is not None and (owned - current.assigned).is_empty:
        return None
    size = "greater" if epoch > current.epoch else "smaller"
    message = (
        f"The streams group member has a {size} member epoch ({epoch}) than the one known by the group coordinator"
        f" ({current.epoch}). The member must abandon all its partitions and rejoin."
    )
    return StreamsRefusal(ErrorCode.FENCED_MEMBER_EPOCH, message)


def _topology(group: StreamsGroup, request: StreamsGroupHeartbeatRequest) -> StreamsGroupTopologyValue | StreamsRefusal:
    """The group's topology, which the first member brings; one with an older epoch joins by it."""
    if request.topology is None:
        return group.topology or _invalid("Topology must be non-null when (re-)joining.")
    brought = StreamsGroupTopologyValue(epoch=request.topology.epoch, subtopologies=request.topology.subtopologies)
    if group.topology is None:
        return brought
    if brought.epoch < group.topology.epoch or brought == group.topology:
        return group.topology
    return _invalid("Topology updates are not supported yet.")


def _check_tasks(
    configured: ConfiguredTopology, reported: Iterable[list[StreamsTaskIds] | None]
) -> StreamsRefusal | None:
    subtopologies = configured.subtopologies or {}
    for name, index in (task for tasks in reported for task in each_task(read_tasks(tasks))):
        if name not in subtopologies:
            return _invalid(f"Subtopology {name} does not exist in the topology.")
        count = subtopologies[name].task_count
        if not 0 <= index < count:
            return _invalid(
                f"Task {index} for subtopology {name} is invalid. Number of tasks for this subtopology: {count}"
            )
    return None
