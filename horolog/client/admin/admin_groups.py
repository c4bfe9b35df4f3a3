"""Admin calls about consumer groups and their offsets."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from horolog.client.admin.admin_base import collect
from horolog.client.admin.admin_share_groups import SHARE_PROTOCOL, GroupPosition, ShareGroupAdmin
from horolog.client.admin.admin_streams_groups import (
    STREAMS_ASSIGNOR,
    STREAMS_PROTOCOL,
    StreamsGroupAdmin,
    partitions_read,
    topics_read,
)
from horolog.client.values.errors import check, first
from horolog.client.values.types import Committed, TopicPartition
from horolog.client.wire.group_wire import decode_assignment, decode_subscription
from horolog.client.wire.versions import Versioned
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import DecodeError, ErrorCode
from horolog.protocol.messages.consumer_groups import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponseAssignment,
)
from horolog.protocol.messages.groups import DeleteGroupsRequest, DescribeGroupsRequest, ListGroupsRequest
from horolog.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from horolog.protocol.messages.share_groups import ShareAssignmentByName
from horolog.protocol.topic_partition import by_topic
from horolog.protocol.wire import Message

CONSUMER_PROTOCOL = "consumer"
_GROUPS_FROM = 8  # the version of OffsetFetch that asks for several groups
_NULL_MEANS_ALL_FROM = 2
_NO_OFFSET = -1


@dataclass(frozen=True, slots=True)
class GroupListing:
    group: str
    protocol_type: str
    state: str  # empty: the broker is too old to say
    kind: str  # "classic", "consumer", "share", "streams"; empty: the broker is too old to say


@dataclass(frozen=True, slots=True)
class GroupMember:
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    topics: tuple[str, ...]
    assignment: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class GroupDescription:
    group: str
    state: str
    protocol_type: str
    assignor: str
    members: tuple[GroupMember, ...]
    kind: str = ""  # as in the list; empty: there is no such group


class GroupAdmin(ShareGroupAdmin, StreamsGroupAdmin):
    async def list_groups(self, states: Iterable[str] = ()) -> list[GroupListing]:
        """The groups of all brokers."""
        wanted = list(states)

        def build(version: int) -> Message:
            return ListGroupsRequest(states_filter=wanted if version >= 4 else [])

        found: dict[str, GroupListing] = {}
        for response in await self._ask_every_broker(Versioned(ApiKey.LIST_GROUPS, build)):
            check(response.error_code)
            for each in response.groups:
                found[each.group_id] = GroupListing(
                    each.group_id, each.protocol_type, each.group_state, each.group_type
                )
        chosen = [group for group in found.values() if not wanted or not group.state or group.state in wanted]
        return sorted(chosen, key=lambda group: group.group)

    async def describe_groups(self, groups: Iterable[str]) -> dict[str, GroupDescription]:
        """Groups by name; a group that does not exist has the state Dead."""
        wanted = list(groups)
        described = await asyncio.gather(*(self._describe(group) for group in wanted))
        return dict(zip(wanted, described, strict=True))

    async def _describe(self, group: str) -> GroupDescription:
        response = await self._ask(
            DescribeGroupsRequest(groups=[group]),
            coordinator_of=("group", group),
            code_of=lambda answer: first(answer.groups, "groups").error_code,
        )
        each = first(response.groups, "groups")
        if each.error_code == ErrorCode.GROUP_ID_NOT_FOUND or (not each.error_code and each.group_state == "Dead"):
            newer = (
                await self._describe_consumer_group(group)
                or await self._describe_share_group(group)
                or await self._describe_streams_group(group)
            )
            return newer or GroupDescription(group, "Dead", "", "", ())
        check(each.error_code, each.error_message, group=group)
        members = tuple(
            GroupMember(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                _topics(member.member_metadata, each.protocol_type),
                _assigned(member.member_assignment, each.protocol_type),
            )
            for member in each.members
        )
        return GroupDescription(group, each.group_state, each.protocol_type, each.protocol_data, members, "classic")

    async def _describe_consumer_group(self, group: str) -> GroupDescription | None:
        """A group of the newer protocol; None if there is none, or if the broker does not know that protocol."""
        if not (await self.client.versions()).serves(ApiKey.CONSUMER_GROUP_DESCRIBE):
            return None
        response = await self._ask(
            ConsumerGroupDescribeRequest(group_ids=[group]),
            coordinator_of=("group", group),
            code_of=lambda answer: first(answer.groups, "groups").error_code,
        )
        each = first(response.groups, "groups")
        if each.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
            return None
        check(each.error_code, each.error_message, group=group)
        members = tuple(
            GroupMember(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                tuple(member.subscribed_topic_names),
                _named_partitions(member.assignment),
            )
            for member in each.members
        )
        return GroupDescription(group, each.group_state, CONSUMER_PROTOCOL, each.assignor_name, members, "consumer")

    async def _describe_share_group(self, group: str) -> GroupDescription | None:
        each = await self.share_group_of(group)
        if each is None:
            return None
        members = tuple(
            GroupMember(
                member.member_id,
                None,
                member.client_id,
                member.client_host,
                tuple(member.subscribed_topic_names),
                _named_partitions(member.assignment),
            )
            for member in each.members
        )
        return GroupDescription(group, each.group_state, SHARE_PROTOCOL, each.assignor_name, members, SHARE_PROTOCOL)

    async def _describe_streams_group(self, group: str) -> GroupDescription | None:
        each = await self.streams_group_of(group)
        if each is None:
            return None
        topics = topics_read(each)
        members = tuple(
            GroupMember(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                topics,
                tuple(partitions_read(each, member)),
            )
            for member in each.members
        )
        return GroupDescription(group, each.group_state, STREAMS_PROTOCOL, STREAMS_ASSIGNOR, members, STREAMS_PROTOCOL)

    async def delete_groups(self, groups: Iterable[str]) -> None:
        results: list[tuple[str, int, str | None, None]] = []
        for group in groups:
            response = await self._ask(
                DeleteGroupsRequest(groups_names=[group]),
                coordinator_of=("group", group),
                code_of=lambda answer: first(answer.results, "results").error_code,
            )
            results += [(each.group_id, each.error_code, None, None) for each in response.results]
        collect(results)

    # Offsets

    async def positions_of(self, described: GroupDescription) -> dict[TopicPartition, GroupPosition]:
        """Where a group of any type continues, in all partitions that it has read."""
        if described.protocol_type == SHARE_PROTOCOL:
            return await self.share_group_offsets(described.group)
        return {
            place: GroupPosition(None if found is None else found.offset)
            for place, found in (await self.group_offsets(described.group)).items()
        }

    async def move_group(self, described: GroupDescription, offsets: Mapping[TopicPartition, int]) -> None:
        """Set where a group of any type continues; it must have no members."""
        if described.protocol_type == SHARE_PROTOCOL:
            await self.alter_share_group_offsets(described.group, offsets)
        else:
            await self.alter_group_offsets(described.group, offsets)

    async def group_offsets(
        self, group: str, partitions: Iterable[TopicPartition] | None = None, *, stable: bool = False
    ) -> dict[TopicPartition, Committed | None]:
        """The committed offsets of a group: for these partitions (None without one), or for all that have one.

        `stable` waits until open transactions on the offsets are settled.
        """
        wanted = None if partitions is None else by_topic(partitions)
        response = await self._ask(
            Versioned(ApiKey.OFFSET_FETCH, lambda version: _offset_fetch(group, wanted, stable, version)),
            coordinator_of=("group", group),
            at_least=0 if wanted is not None else _NULL_MEANS_ALL_FROM,
            code_of=_offset_fetch_code,
        )
        answer = response.groups[0] if response.groups else response
        check(answer.error_code, group=group)
        found: dict[TopicPartition, Committed | None] = {}
        for topic in answer.topics:
            for each in topic.partitions:
                if each.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    continue
                check(each.error_code, group=group, topic=topic.name)
                partition = TopicPartition(topic.name, each.partition_index)
                if each.committed_offset != _NO_OFFSET:
                    found[partition] = Committed(
                        each.committed_offset, each.metadata or "", each.committed_leader_epoch
                    )
                elif wanted is not None:
                    found[partition] = None
        return found

    async def alter_group_offsets(self, group: str, offsets: Mapping[TopicPartition, int | Committed]) -> None:
        """Set the committed offsets of a group that has no members."""
        committed = {
            partition: one if isinstance(one, Committed) else Committed(one) for partition, one in offsets.items()
        }
        request = OffsetCommitRequest(group_id=group, topics=topics_of(committed))
        response = await self._ask(
            request,
            coordinator_of=("group", group),
            code_of=_first_code,
        )
        collect(
            (TopicPartition(topic.name, each.partition_index), each.error_code, None, None)
            for topic in response.topics
            for each in topic.partitions
        )

    async def delete_group_offsets(self, group: str, partitions: Iterable[TopicPartition]) -> None:
        """Delete a group's committed offsets for partitions that it does not currently read."""
        request = OffsetDeleteRequest(
            group_id=group,
            topics=[
                OffsetDeleteRequestTopic(
                    name=topic,
                    partitions=[OffsetDeleteRequestPartition(partition_index=index) for index in indexes],
                )
                for topic, indexes in by_topic(partitions).items()
            ],
        )
        response = await self._ask(
            request, coordinator_of=("group", group), code_of=lambda answer: int(answer.error_code)
        )
        check(response.error_code, group=group)
        collect(
            (TopicPartition(topic.name, each.partition_index), each.error_code, None, None)
            for topic in response.topics
            for each in topic.partitions
        )


def topics_of(offsets: Mapping[TopicPartition, Committed]) -> list[OffsetCommitRequestTopic]:
    """The offsets in the form of the request."""
    topics = by_topic(
        (
            topic,
            OffsetCommitRequestPartition(
                partition_index=index,
                committed_offset=committed.offset,
                committed_leader_epoch=committed.leader_epoch,
                committed_metadata=committed.metadata,
            ),
        )
        for (topic, index), committed in offsets.items()
    )
    return [OffsetCommitRequestTopic(name=name, partitions=each) for name, each in topics.items()]


def _first_code(response: Any) -> int:
    return next((each.error_code for topic in response.topics for each in topic.partitions if each.error_code), 0)


def _offset_fetch_code(response: Any) -> int:
    answer = response.groups[0] if response.groups else response
    return answer.error_code or next(
        (
            each.error_code
            for topic in answer.topics
            for each in topic.partitions
            if each.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and each.error_code
        ),
        0,
    )


def _offset_fetch(group: str, wanted: Mapping[str, list[int]] | None, stable: bool, version: int) -> Message:
    require_stable = stable and version >= 7
    if version >= _GROUPS_FROM:
        topics = None
        if wanted is not None:
            topics = [OffsetFetchRequestTopics(name=name, partition_indexes=each) for name, each in wanted.items()]
        return OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=group, topics=topics)], require_stable=require_stable
        )
    return OffsetFetchRequest(
        group_id=group,
        topics=None
        if wanted is None
        else [OffsetFetchRequestTopic(name=name, partition_indexes=each) for name, each in wanted.items()],
        require_stable=require_stable,
    )


def _topics(metadata: bytes, protocol_type: str) -> tuple[str, ...]:
    """A member's subscription; empty if it is not a consumer, or if the subscription cannot be decoded."""
    if protocol_type != CONSUMER_PROTOCOL or not metadata:
        return ()
    try:
        return tuple(decode_subscription(metadata).topics)
    except DecodeError:
        return ()


def _named_partitions(
    assignment: ConsumerGroupDescribeResponseAssignment | ShareAssignmentByName,
) -> tuple[TopicPartition, ...]:
    """The partitions of a member of a group whose assignments the broker makes."""
    return tuple(
        TopicPartition(topic.topic_name, index) for topic in assignment.topic_partitions for index in topic.partitions
    )


def _assigned(assignment: bytes, protocol_type: str) -> tuple[TopicPartition, ...]:
    if protocol_type != CONSUMER_PROTOCOL or not assignment:
        return ()
    try:
        return tuple(decode_assignment(assignment))
    except DecodeError:
        return ()
