"""StreamsGroupHeartbeat 0 and StreamsGroupDescribe 0: groups whose members run the tasks of a topology (KIP-1071).

- The topology comes with the first heartbeat of each member. Internal topics that it lacks are created for it, and each response says
  what keeps the group from running.
- Describe of a group of another type, or of none: GROUP_ID_NOT_FOUND.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from horolog.base.acl_types import CLUSTER_NAME, Operation, ResourceType
from horolog.broker.base.topic_names import INTERNAL_TOPICS, wrong_with
from horolog.broker.groups.streams.streams_group import StreamsGroup, StreamsMember
from horolog.broker.groups.streams.tasks import TaskSet, written_tasks
from horolog.broker.handlers.context import BrokerView, RequestContext
from horolog.broker.handlers.groups import client_of
from horolog.broker.handlers.operations import GROUP_OPERATIONS, NOT_ASKED
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.streams_groups import (
    DescribedStreamsGroup,
    DescribedStreamsMember,
    DescribedStreamsSubtopology,
    DescribedStreamsTopology,
    StreamsEndpoint,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
    StreamsKeyValue,
    StreamsTasks,
    StreamsTopicInfo,
    StreamsTopology,
)


def heartbeat(
    broker: BrokerView, request: StreamsGroupHeartbeatRequest, context: RequestContext
) -> StreamsGroupHeartbeatResponse | None:
    """Not done: static members, source topics by regular expression, and warm-up tasks, as in Kafka 4.3."""
    fault = None if request.topology is None else _wrong_names(request.topology)
    if fault is not None:
        return StreamsGroupHeartbeatResponse(error_code=ErrorCode.STREAMS_INVALID_TOPOLOGY, error_message=fault)
    broker.groups.streams.heartbeat(request, client_of(context), context.reply, _may_create(broker, context))
    return None


def _wrong_names(topology: StreamsTopology) -> str | None:
    names = sorted(set(topic_names(topology)))
    internal = [name for name in names if name in INTERNAL_TOPICS]
    if internal:
        return f"Use of Kafka internal topics {', '.join(internal)} in a Kafka Streams topology is prohibited."
    wrong = [name for name in names if wrong_with(name) is not None]
    return f"Topic names {', '.join(wrong)} are not valid topic names." if wrong else None


def topic_names(topology: StreamsTopology | DescribedStreamsTopology) -> list[str]:
    """All topics that a topology names."""
    return [
        name
        for one in topology.subtopologies or ()
        for name in (
            *one.source_topics,
            *one.repartition_sink_topics,
            *(info.name for info in one.repartition_source_topics),
            *(info.name for info in one.state_changelog_topics),
        )
    ]


def _may_create(broker: BrokerView, context: RequestContext) -> Callable[[str], bool] | None:
    if broker.authorizer is None:
        return None
    rights = broker.authorizer.rights(context.principal, context.connection.peer_host)
    if rights.may(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME):
        return None
    return lambda name: rights.may(Operation.CREATE, ResourceType.TOPIC, name)


# -- describing


def describe(
    broker: BrokerView,
    request: StreamsGroupDescribeRequest,
    context: RequestContext,  # noqa: ARG001
) -> StreamsGroupDescribeResponse:
    operations = GROUP_OPERATIONS if request.include_authorized_operations else NOT_ASKED
    return StreamsGroupDescribeResponse(
        groups=[_describe(broker, group_id, operations) for group_id in request.group_ids]
    )


def _describe(broker: BrokerView, group_id: str, operations: int) -> DescribedStreamsGroup:
    if not group_id:
        return DescribedStreamsGroup(error_code=ErrorCode.INVALID_GROUP_ID, group_id=group_id)
    group = broker.groups.streams.find(group_id)
    if not isinstance(group, StreamsGroup):
        return DescribedStreamsGroup(error_code=group.code, error_message=group.message, group_id=group_id)
    return DescribedStreamsGroup(
        group_id=group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        topology=_topology(group),
        members=[_member(member) for member in group.members.values()],
        authorized_operations=operations,
    )


def _topology(group: StreamsGroup) -> DescribedStreamsTopology | None:
    if group.topology is None:
        return None
    counts = {} if group.configured is None else group.configured.counts
    return DescribedStreamsTopology(
        epoch=group.topology.epoch,
        subtopologies=[
            DescribedStreamsSubtopology(
                subtopology_id=one.subtopology_id,
                source_topics=list(one.source_topics),
                repartition_sink_topics=list(one.repartition_sink_topics),
                state_changelog_topics=[_with_count(info, counts) for info in one.state_changelog_topics],
                repartition_source_topics=[_with_count(info, counts) for info in one.repartition_source_topics],
            )
            for one in group.topology.subtopologies
        ],
    )


def _with_count(info: StreamsTopicInfo, counts: Mapping[str, int]) -> StreamsTopicInfo:
    return StreamsTopicInfo(
        name=info.name,
        partitions=counts.get(info.name, info.partitions),
        replication_factor=info.replication_factor,
        topic_configs=list(info.topic_configs),
    )


def _member(member: StreamsMember) -> DescribedStreamsMember:
    endpoint = member.endpoint
    return DescribedStreamsMember(
        member_id=member.id,
        member_epoch=member.current.epoch,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else StreamsEndpoint(host=endpoint.host, port=endpoint.port),
        client_tags=[StreamsKeyValue(key=key, value=value) for key, value in member.tags],
        assignment=_tasks(member.current.assigned),
        target_assignment=_tasks(member.target),
    )


def _tasks(tasks: TaskSet) -> StreamsTasks:
    active, standby, warmup = map(written_tasks, tasks)
    return StreamsTasks(active_tasks=active, standby_tasks=standby, warmup_tasks=warmup)
