"""Asks a broker at every border of a timeline which offset is the first at or after it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from client.client import Client
    from client.types import TopicPartition

LATEST = -1


async def time_range(client: "Client", partitions: "Sequence[TopicPartition]") -> tuple[int, int] | None:
    """The time of the first record of any partition that has one, and the largest time of all; None without any."""
    from client.offsets import LARGEST_TIMESTAMP, list_offsets

    firsts = await list_offsets(client, dict.fromkeys(partitions, 0))
    times = [one.timestamp_ms for one in firsts.values() if one is not None and one.timestamp_ms >= 0]
    largest = await list_offsets(client, dict.fromkeys(partitions, LARGEST_TIMESTAMP))
    latest = [one.timestamp_ms for one in largest.values() if one is not None and one.timestamp_ms >= 0]
    return (min(times), max(*times, *latest)) if times and latest else None


async def offsets_at(
    client: "Client", partitions: "Sequence[TopicPartition]", borders: Sequence[int]
) -> "dict[TopicPartition, list[int]]":
    """For each partition the first offsets at or after the borders; the end of the partition where nothing is so late."""
    from client.offsets import ends, list_offsets

    end = await ends(client, dict.fromkeys(partitions, LATEST))
    found: dict[TopicPartition, list[int]] = {one: [] for one in partitions}
    for border in borders:
        answers = await list_offsets(client, dict.fromkeys(partitions, max(border, 0)))
        for partition in partitions:
            answer = answers.get(partition)
            found[partition].append(end[partition] if answer is None else answer.offset)
    return found
