"""Which partitions each application of a streams group has, for clients that query their state (interactive queries)."""

from __future__ import annotations

from collections.abc import Mapping

from horolog.broker.groups.streams.configured_topology import ConfiguredSubtopology
from horolog.broker.groups.streams.streams_group import StreamsGroup, StreamsMember
from horolog.broker.groups.streams.tasks import Tasks
from horolog.protocol.messages.streams_groups import (
    StreamsEndpoint,
    StreamsEndpointPartitions,
    StreamsTopicPartitions,
)


def partitions_by_endpoint(group: StreamsGroup) -> list[StreamsEndpointPartitions]:
    """The partitions of every member that has an endpoint."""
    subtopologies = group.configured and group.configured.subtopologies
    return [_of_member(member, subtopologies or {}) for member in group.members.values() if member.endpoint is not None]


def _of_member(member: StreamsMember, subtopologies: Mapping[str, ConfiguredSubtopology]) -> StreamsEndpointPartitions:
    assert member.endpoint is not None
    assigned = member.current.assigned
    return StreamsEndpointPartitions(
        user_endpoint=StreamsEndpoint(host=member.endpoint.host, port=member.endpoint.port),
        active_partitions=partitions_of_tasks(assigned.active, subtopologies),
        standby_partitions=partitions_of_tasks(assigned.standby, subtopologies),
    )


def partitions_of_tasks(
    tasks: Tasks, subtopologies: Mapping[str, ConfiguredSubtopology]
) -> list[StreamsTopicPartitions]:
    """The partitions that tasks read: a topic may have fewer partitions than its subtopology has tasks."""
    found = []
    for name, indexes in tasks.items():
        inputs = subtopologies[name].inputs if name in subtopologies else {}
        for topic, count in inputs.items():
            partitions = sorted(index for index in indexes if index < count)
            found.append(StreamsTopicPartitions(topic=topic, partitions=partitions))
    return found
