"""Admin calls about share groups: their members, and the offsets from which they are delivered."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from horolog.client.admin.admin_base import AdminBase, collect
from horolog.client.values.errors import check, first
from horolog.client.values.types import TopicPartition
from horolog.client.wire.versions import Versioned
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.share_groups import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequestTopic,
    DescribedShareGroup,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
    ShareGroupDescribeRequest,
)
from horolog.protocol.topic_partition import by_topic
from horolog.protocol.wire import Message

SHARE_PROTOCOL = "share"
_NOT_KNOWN = -1


@dataclass(frozen=True, slots=True)
class GroupPosition:
    """Where a group continues in a partition."""

    offset: int | None
    """The first record that it has not read, or for share groups, that may still be delivered. None: as it is set to begin."""
    lag: int | None = None
    """Of share groups: the records that wait or are being delivered. Kafka returns it from 4.2 on."""


class ShareGroupAdmin(AdminBase):
    async def share_group_of(self, group: str) -> DescribedShareGroup | None:
        """A share group as the broker describes it; None if there is none, or if the broker has no such groups."""
        if not (await self.client.versions()).serves(ApiKey.SHARE_GROUP_DESCRIBE):
            return None
        response = await self._ask(
            ShareGroupDescribeRequest(group_ids=[group]),
            coordinator_of=("group", group),
            code_of=lambda answer: first(answer.groups, "groups").error_code,
        )
        found: DescribedShareGroup = first(response.groups, "groups")
        if found.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
            return None
        check(found.error_code, found.error_message, group=group)
        return found

    async def share_group_offsets(
        self, group: str, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, GroupPosition]:
        """The positions of a share group: in these partitions, or in all that it has read or that were set."""
        wanted = None if partitions is None else by_topic(partitions)
        response = await self._ask(
            Versioned(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, lambda _: _offsets(group, wanted)),
            coordinator_of=("group", group),
            code_of=lambda answer: first(answer.groups, "groups").error_code,
        )
        answer = first(response.groups, "groups")
        check(answer.error_code, answer.error_message, group=group)
        found = {}
        for topic in answer.topics:
            for each in topic.partitions:
                check(each.error_code, each.error_message, group=group, topic=topic.topic_name)
                found[TopicPartition(topic.topic_name, each.partition_index)] = GroupPosition(
                    _known(each.start_offset), _known(each.lag)
                )
        return found

    async def alter_share_group_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Set the offsets from which a share group without members is delivered; it is made if there is none."""
        topics = by_topic(
            (topic, AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offset))
            for (topic, index), offset in offsets.items()
        )
        request = AlterShareGroupOffsetsRequest(
            group_id=group,
            topics=[
                AlterShareGroupOffsetsRequestTopic(topic_name=name, partitions=each) for name, each in topics.items()
            ],
        )
        response = await self._ask(
            request, coordinator_of=("group", group), code_of=lambda answer: int(answer.error_code)
        )
        check(response.error_code, response.error_message, group=group)
        collect(
            (TopicPartition(topic.topic_name, each.partition_index), each.error_code, each.error_message, None)
            for topic in response.responses
            for each in topic.partitions
        )

    async def delete_share_group_offsets(self, group: str, topics: Iterable[str]) -> None:
        """Forget where a share group without members is in topics: it begins anew as its settings say."""
        request = DeleteShareGroupOffsetsRequest(
            group_id=group, topics=[DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics]
        )
        response = await self._ask(
            request, coordinator_of=("group", group), code_of=lambda answer: int(answer.error_code)
        )
        check(response.error_code, response.error_message, group=group)
        collect((each.topic_name, each.error_code, each.error_message, None) for each in response.responses)


def _offsets(group: str, wanted: Mapping[str, list[int]] | None) -> Message:
    topics = None
    if wanted is not None:
        topics = [
            DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=each) for name, each in wanted.items()
        ]
    return DescribeShareGroupOffsetsRequest(
        groups=[DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=topics)]
    )


def _known(number: int) -> int | None:
    return None if number == _NOT_KNOWN else number
