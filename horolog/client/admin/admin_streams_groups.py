"""Admin calls about streams groups: their members, and the partitions that their tasks read."""

from collections.abc import Iterator

from horolog.client.admin.admin_base import AdminBase
from horolog.client.values.errors import check, first
from horolog.client.values.types import TopicPartition
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.streams_groups import (
    DescribedStreamsGroup,
    DescribedStreamsMember,
    DescribedStreamsSubtopology,
    StreamsGroupDescribeRequest,
)

STREAMS_PROTOCOL = "streams"
STREAMS_ASSIGNOR = "sticky"
"""The only assignor of such groups; brokers do not name it."""


class StreamsGroupAdmin(AdminBase):
    async def streams_group_of(self, group: str) -> DescribedStreamsGroup | None:
        """A streams group as the broker describes it; None if there is none, or if the broker has no such groups."""
        if not (await self.client.versions()).serves(ApiKey.STREAMS_GROUP_DESCRIBE):
            return None
        response = await self._ask(
            StreamsGroupDescribeRequest(group_ids=[group]),
            coordinator_of=("group", group),
            code_of=lambda answer: first(answer.groups, "groups").error_code,
        )
        found: DescribedStreamsGroup = first(response.groups, "groups")
        if found.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
            return None
        check(found.error_code, found.error_message, group=group)
        return found


def topics_read(group: DescribedStreamsGroup) -> tuple[str, ...]:
    """All topics that the tasks of a group read."""
    return tuple(sorted({name for one in _subtopologies(group).values() for name in _inputs(one)}))


def source_topics(group: DescribedStreamsGroup) -> tuple[str, ...]:
    """The topics that the application reads and does not write itself."""
    return tuple(sorted({name for one in _subtopologies(group).values() for name in one.source_topics}))


def internal_topics(group: DescribedStreamsGroup) -> tuple[str, ...]:
    """The topics between subtopologies, and the changelogs of state stores."""
    found = _subtopologies(group).values()
    return tuple(
        sorted({info.name for one in found for info in (*one.repartition_source_topics, *one.state_changelog_topics)})
    )


def partitions_read(group: DescribedStreamsGroup, member: DescribedStreamsMember) -> Iterator[TopicPartition]:
    """The partitions that the active tasks of a member read: each task has the partition of its number in every topic."""
    subtopologies = _subtopologies(group)
    for tasks in member.assignment.active_tasks:
        inputs = _inputs(subtopologies[tasks.subtopology_id]) if tasks.subtopology_id in subtopologies else {}
        for topic, count in inputs.items():
            yield from (TopicPartition(topic, index) for index in tasks.partitions if not 0 < count <= index)


def _subtopologies(group: DescribedStreamsGroup) -> dict[str, DescribedStreamsSubtopology]:
    found = group.topology.subtopologies if group.topology is not None else None
    return {one.subtopology_id: one for one in found or ()}


def _inputs(subtopology: DescribedStreamsSubtopology) -> dict[str, int]:
    """The topics of a subtopology with their numbers of partitions, 0 if the broker does not say."""
    of_sources = dict.fromkeys(subtopology.source_topics, 0)
    return of_sources | {info.name: info.partitions for info in subtopology.repartition_source_topics}
