"""Asks a broker for the first offset at or after every border of a timeline."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from horolog.client.values.types import TopicPartition
    from horolog.client.wire.client import Client

LATEST = -1
BEYOND_ALL_MS = 1 << 62
LARGEST_TIMESTAMP_VERSION = 7
BORDERS_AT_ONCE = 8


async def time_range(client: "Client", partitions: "Sequence[TopicPartition]") -> tuple[int, int] | None:
    """The time of the first record of any partition that has one, and the largest time of all; None without any."""
    from horolog.client.wire.offsets import LARGEST_TIMESTAMP
    from horolog.protocol.apis import ApiKey

    times = await _times_found(client, partitions, 0)
    if not times:
        return None
    if (await client.versions()).serves(ApiKey.LIST_OFFSETS, LARGEST_TIMESTAMP_VERSION):
        latest = await _times_found(client, partitions, LARGEST_TIMESTAMP)
    else:
        latest = [await _largest_by_search(client, partitions, max(times))]
    return min(times), max(*times, *latest)


async def _times_found(client: "Client", partitions: "Sequence[TopicPartition]", time_ms: int) -> list[int]:
    from horolog.client.wire.offsets import list_offsets

    found = await list_offsets(client, dict.fromkeys(partitions, time_ms))
    return [one.timestamp_ms for one in found.values() if one is not None and one.timestamp_ms >= 0]


async def _largest_by_search(client: "Client", partitions: "Sequence[TopicPartition]", known_ms: int) -> int:
    """For brokers without LARGEST_TIMESTAMP, Kafka before 3.0: the latest time for which a lookup finds a record."""
    low, high = known_ms, BEYOND_ALL_MS
    while low < high:
        middle = (low + high + 1) // 2
        later = await _times_found(client, partitions, middle)
        if later:
            low = max(middle, *later)
        else:
            high = middle - 1
    return low


async def offsets_at(
    client: "Client", partitions: "Sequence[TopicPartition]", borders: Sequence[int]
) -> "dict[TopicPartition, list[int]]":
    """For each partition the first offsets at or after the borders; the end of the partition if no record is that late."""
    from horolog.client.wire.offsets import ends, list_offsets

    end = await ends(client, dict.fromkeys(partitions, LATEST))
    bound = asyncio.Semaphore(BORDERS_AT_ONCE)

    async def look(border: int) -> list[int]:
        async with bound:
            answers = await list_offsets(client, dict.fromkeys(partitions, max(border, 0)))
        return [end[one] if (answer := answers.get(one)) is None else answer.offset for one in partitions]

    rows = await asyncio.gather(*map(look, borders))
    return {one: [row[number] for row in rows] for number, one in enumerate(partitions)}
