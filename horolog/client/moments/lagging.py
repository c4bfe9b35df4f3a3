"""A group's lag in records and in seconds, and the offsets a reset would set: the requests to the broker, and the sums.

The lag in seconds is now minus the time of the first unread record, so a group that has read everything is 0 s
behind however old the last record is. A record without a time gives no seconds.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from horolog.client.values.errors import KafkaError
from horolog.client.values.types import EARLIEST, LATEST, TopicPartition
from horolog.client.wire.offsets import ends, list_offsets
from horolog.protocol.records.entries import iter_records

if TYPE_CHECKING:
    from horolog.client.admin.admin import Admin
    from horolog.client.wire.client import Client

FIRST_LOOK_BYTES = 64 << 10
"""Enough for a batch of the usual size; a larger first batch still comes whole."""
LOOKS_AT_ONCE = 16


class Lag(NamedTuple):
    group: str
    partition: TopicPartition
    committed: int | None
    """None: nothing is committed; the group will begin where its clients say."""
    end_offset: int
    records: int | None
    next_timestamp_ms: int | None
    """The time of the first unread record."""
    seconds: float | None
    member: str | None
    """The client that currently reads it."""


async def lag_of(admin: "Admin", group: str, now_ms: int, topics: Sequence[str] = ()) -> list[Lag]:
    """Every partition that the group has committed or currently reads, in order."""
    client = admin.client
    described = (await admin.describe_groups([group]))[group]
    member_of = {partition: member.client_id for member in described.members for partition in member.assignment}
    committed = await admin.group_offsets(group)
    places = sorted({*committed, *member_of})
    places = [place for place in places if not topics or place.topic in topics]
    known = (await client.metadata(list({place.topic for place in places}))).topics if places else {}
    places = [place for place in places if place.topic in known and place.partition in known[place.topic].partitions]
    last = await ends(client, dict.fromkeys(places, LATEST)) if places else {}
    first = await ends(client, dict.fromkeys(places, EARLIEST)) if places else {}
    positions = {place: max(found.offset, first[place]) for place in places if (found := committed.get(place))}
    times = await next_timestamps(client, positions, last)
    lags = []
    for place in places:
        lag = Lag(group, place, None, last[place], None, None, None, member_of.get(place))
        found = committed.get(place)
        lags.append(lag if found is None else _measured(lag, found.offset, positions[place], times.get(place), now_ms))
    return lags


def _measured(lag: Lag, committed: int, position: int, time_ms: int | None, now_ms: int) -> Lag:
    """The lag of a group that has committed; `time_ms` is the time of the record at its position."""
    behind = max(0, lag.end_offset - position)
    seconds = 0.0 if behind == 0 else None if time_ms is None else max(0, now_ms - time_ms) / 1000
    return lag._replace(committed=committed, records=behind, next_timestamp_ms=time_ms, seconds=seconds)


async def next_timestamps(
    client: "Client", positions: Mapping[TopicPartition, int], last: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int | None]:
    """The time of the first record at or after each position, if there is one."""
    bound = asyncio.Semaphore(LOOKS_AT_ONCE)

    async def look(place: TopicPartition, offset: int) -> int | None:
        async with bound:
            try:
                fetched = await client.fetch_raw(place, offset, FIRST_LOOK_BYTES, max_wait_ms=0)
            except KafkaError:  # retention deleted it first: the next look will tell
                return None
        found = (record.timestamp for record in iter_records(fetched.records) if record.offset >= offset)
        time_ms = next(found, -1)
        return time_ms if time_ms >= 0 else None

    behind = {place: offset for place, offset in positions.items() if offset < last[place]}
    times = await asyncio.gather(*(look(place, offset) for place, offset in behind.items()))
    return dict(zip(behind, times, strict=True))


def longest(lags: Iterable[Lag]) -> float:
    """The lag of the slowest partition, in seconds; unknown lags count as 0."""
    return max((lag.seconds or 0.0 for lag in lags), default=0.0)


def of_unknown_length(lags: Iterable[Lag]) -> list[str]:
    """A sentence for each lag of unknown length in time: the next record has no time, or could not be read."""
    return [
        f"group {lag.group} is {lag.records} records behind on {lag.partition}, and nobody can tell for how long:"
        " the next one has no time"
        for lag in lags
        if lag.records and lag.seconds is None
    ]


def as_json(lag: Lag) -> dict[str, Any]:
    return {
        "group": lag.group,
        "topic": lag.partition.topic,
        "partition": lag.partition.partition,
        "committed": lag.committed,
        "end_offset": lag.end_offset,
        "lag_records": lag.records,
        "lag_seconds": lag.seconds,
        "next_timestamp": lag.next_timestamp_ms,
        "member": lag.member,
    }


async def targets(
    client: "Client", places: Sequence[TopicPartition], to_ms: int
) -> dict[TopicPartition, tuple[int, int | None]]:
    """Where a group would continue after a reset to a time, and the time of the record there, if there is one."""
    found = await list_offsets(client, dict.fromkeys(places, to_ms))
    last = await ends(client, dict.fromkeys(places, LATEST))
    return {
        place: (last[place], None)
        if answer is None
        else (answer.offset, answer.timestamp_ms if answer.timestamp_ms >= 0 else None)
        for place, answer in found.items()
    }
