"""OffsetCommit and OffsetFetch for a consumer: how far its group has read."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from horolog.client.admin.admin_groups import GroupAdmin, topics_of
from horolog.client.values.errors import error_of
from horolog.client.values.types import Committed, TopicPartition
from horolog.client.wire.group_state import NO_GENERATION, MemberState
from horolog.client.wire.versions import Versioned
from horolog.protocol.apis import ApiKey
from horolog.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitResponse,
)
from horolog.protocol.wire import Message

if TYPE_CHECKING:
    from horolog.client.wire.client import Client

_INSTANCES_FROM = 7


async def commit(
    client: "Client",
    group: str,
    offsets: Mapping[TopicPartition, Committed],
    member: MemberState | None = None,
    instance_id: str | None = None,
    *,
    timeout_ms: float | None = None,
) -> None:
    """Commit the offsets as this member of the group, or without a member from outside."""
    if not offsets:
        return

    async def once() -> None:
        response: OffsetCommitResponse = await client.attempt(
            Versioned(ApiKey.OFFSET_COMMIT, _builder(group, offsets, member, instance_id)),
            coordinator_of=("group", group),
        )
        for topic in response.topics:
            for each in topic.partitions:
                if each.error_code:
                    about = f"{topic.name}-{each.partition_index}: {error_of(each.error_code).message}"
                    raise error_of(each.error_code, about, group=group, topic=topic.name)

    await client.retry(once, timeout_ms=timeout_ms)


def _builder(
    group: str, offsets: Mapping[TopicPartition, Committed], member: MemberState | None, instance_id: str | None
) -> Callable[[int], Message]:
    topics = topics_of(offsets)

    def build(version: int) -> Message:
        return OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=member.generation if member is not None else NO_GENERATION,
            member_id=member.member_id if member is not None else "",
            group_instance_id=instance_id if version >= _INSTANCES_FROM else None,
            topics=topics,
        )

    return build


async def committed(
    client: "Client", group: str, partitions: Iterable[TopicPartition], *, stable: bool = False
) -> dict[TopicPartition, Committed | None]:
    return await GroupAdmin(client).group_offsets(group, partitions, stable=stable)
