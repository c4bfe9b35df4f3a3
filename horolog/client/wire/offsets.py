"""ListOffsets: the offsets at times, at the start and at the end of partitions, each asked of the partition's leader."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from horolog.client.values.errors import KafkaError, PartialFailure, UnsupportedVersion, named_error
from horolog.client.values.types import Found, TopicPartition
from horolog.client.wire.cluster_view import Node
from horolog.client.wire.versions import Versioned
from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from horolog.protocol.wire import Message

if TYPE_CHECKING:
    from horolog.client.wire.client import Client

LARGEST_TIMESTAMP = -3
"""Asks for the record with the largest timestamp (ListOffsets v7 and later)."""

REFUSES = (
    "{} leads it and refuses: the broker cannot reach its object store (see its /ready), or the partition is moving"
)
"""NOT_LEADER_OR_FOLLOWER that lasts, of the broker that Metadata names."""

_TIMES_FROM = 1  # v0 finds segment starts, not times
_LARGEST_FROM = 7
_CONSUMER = -1


async def list_offsets(
    client: "Client", times: Mapping[TopicPartition, int], *, isolation: int = 0
) -> dict[TopicPartition, Found | None]:
    """The first record at or after each time in milliseconds; EARLIEST, LATEST and LARGEST_TIMESTAMP stand for themselves.

    None: the partition has no such record. Permanent errors are raised as PartialFailure if other partitions were answered.
    """
    found: dict[TopicPartition, Found | None] = {}
    failed: dict[TopicPartition, KafkaError] = {}

    async def ask() -> None:
        failed.clear()
        left = {partition: time for partition, time in times.items() if partition not in found}
        for answers in await asyncio.gather(
            *(_ask(client, node, part, isolation) for node, part in (await _by_leader(client, left, failed)).items())
        ):
            for partition, answer in answers.items():
                if isinstance(answer, KafkaError):
                    failed[partition] = answer
                else:
                    found[partition] = answer
        for error in failed.values():
            if error.retriable:
                raise error

    try:
        await client.retry(ask)
    except KafkaError:
        if not failed:
            raise
    if failed and len(times) == 1:
        raise next(iter(failed.values()))
    if failed:
        raise PartialFailure(failed, found)
    return found


async def _by_leader(
    client: "Client", times: Mapping[TopicPartition, int], failed: dict[TopicPartition, KafkaError]
) -> dict[Node, dict[TopicPartition, int]]:
    grouped: dict[Node, dict[TopicPartition, int]] = {}
    for partition, time in times.items():
        try:
            node = await client.leader_once(partition)
        except KafkaError as error:
            failed[partition] = error
        else:
            grouped.setdefault(node, {})[partition] = time
    return grouped


async def _ask(
    client: "Client", node: Node, times: Mapping[TopicPartition, int], isolation: int
) -> dict[TopicPartition, Found | KafkaError | None]:
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for (topic, index), time in times.items():
        topics.setdefault(topic, []).append(ListOffsetsPartition(partition_index=index, timestamp=time))

    def build(version: int) -> Message:
        return ListOffsetsRequest(
            replica_id=_CONSUMER,
            isolation_level=isolation if version >= 2 else 0,
            topics=[ListOffsetsTopic(name=topic, partitions=partitions) for topic, partitions in topics.items()],
        )

    needed = max(_needed_version(time) for time in times.values())
    response = await client.attempt_at(node, Versioned(ApiKey.LIST_OFFSETS, build), at_least=needed)
    answers: dict[TopicPartition, Found | KafkaError | None] = {
        partition: KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the broker's answer leaves {partition} out")
        for partition in times
    }
    for topic in response.topics:
        for each in topic.partitions:
            answers[TopicPartition(topic.name, each.partition_index)] = _answer(topic.name, each, node)
    return answers


def _needed_version(time: int) -> int:
    if time == LARGEST_TIMESTAMP:
        return _LARGEST_FROM
    return _TIMES_FROM if time >= 0 else 0


def _answer(topic: str, each: ListOffsetsPartitionResponse, node: Node) -> Found | KafkaError | None:
    if each.error_code == ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT:
        return UnsupportedVersion(f"{topic}-{each.partition_index}: the format of its records has no times")
    if each.error_code:
        reason = REFUSES.format(node) if each.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER else None
        return named_error(TopicPartition(topic, each.partition_index), each.error_code, reason)
    if each.old_style_offsets:
        return Found(each.old_style_offsets[0], -1)
    if each.offset < 0:
        return None
    return Found(each.offset, each.timestamp, each.leader_epoch)


async def ends(client: "Client", times: Mapping[TopicPartition, int], isolation: int = 0) -> dict[TopicPartition, int]:
    """Plain offsets, for lookups of EARLIEST or LATEST."""
    found = await list_offsets(client, times, isolation=isolation)
    return {partition: answer.offset if answer is not None else 0 for partition, answer in found.items()}
