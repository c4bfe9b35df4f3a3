"""A group's lag in records and in seconds, and the offsets a reset would set: the requests to the broker, and the sums.

The lag in seconds is now minus the time of the first unread record, so a group that has read everything is 0 s
behind however old the last record is. A record without a time gives no seconds. A group without a commit begins where its clients say, at the
earliest record or at the latest: its exact lag is unknown, but not the largest possible one.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from horolog.base.readable import counted
from horolog.client.values.errors import KafkaError
from horolog.client.values.types import EARLIEST, LATEST, TopicPartition
from horolog.client.wire.offsets import ends, list_offsets
from horolog.protocol.records.entries import iter_records

if TYPE_CHECKING:
    from horolog.client.admin.admin import Admin
    from horolog.client.admin.admin_groups import GroupDescription
    from horolog.client.admin.admin_share_groups import GroupPosition
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
    most_records: int | None = None
    """Without a commit: the records that wait if the group begins at the earliest."""
    most_seconds: float | None = None
    """The age of the first of them."""

    @property
    def lacks_commit(self) -> bool:
        """Whether records wait that the group may have to read."""
        return self.committed is None and bool(self.most_records)


async def lag_of(admin: "Admin", group: str, now_ms: int, topics: Sequence[str] = ()) -> list[Lag]:
    """Every partition that the group has committed or currently reads, in order."""
    client = admin.client
    described = (await admin.describe_groups([group]))[group]
    member_of = _readers(described)
    positions_of = await admin.positions_of(described)
    committed = {place: found.offset for place, found in positions_of.items()}
    places = sorted({*committed, *member_of})
    places = [place for place in places if not topics or place.topic in topics]
    known = (await client.metadata(list({place.topic for place in places}))).topics if places else {}
    places = [place for place in places if place.topic in known and place.partition in known[place.topic].partitions]
    last = await ends(client, dict.fromkeys(places, LATEST)) if places else {}
    first = await ends(client, dict.fromkeys(places, EARLIEST)) if places else {}
    offsets = {place: found for place in places if (found := committed.get(place)) is not None}
    positions = {place: max(offsets.get(place, 0), first[place]) for place in places}
    times = await next_timestamps(client, positions, last)
    lags = []
    for place in places:
        lag = Lag(group, place, None, last[place], None, None, None, member_of.get(place))
        measured = _measured(lag, offsets.get(place), positions[place], times.get(place), now_ms)
        lags.append(_shared(measured, positions_of.get(place)))
    return lags


def _readers(described: "GroupDescription") -> dict[TopicPartition, str]:
    """The clients that read each partition; those of a share group may be several."""
    readers: dict[TopicPartition, list[str]] = {}
    for member in described.members:
        for partition in member.assignment:
            readers.setdefault(partition, []).append(member.client_id)
    return {partition: " ".join(sorted(set(clients))) for partition, clients in readers.items()}


def _shared(lag: Lag, position: "GroupPosition | None") -> Lag:
    """A share group has delivered some records after its first one: these are not behind."""
    if position is None or position.lag is None or lag.committed is None:
        return lag
    if position.lag > 0:
        return lag._replace(records=position.lag)
    return lag._replace(records=0, seconds=0.0, next_timestamp_ms=None)


def _measured(lag: Lag, committed: int | None, position: int, time_ms: int | None, now_ms: int) -> Lag:
    """The lag of a group at a position, the earliest where it has not committed; `time_ms` is the time of the record there."""
    behind = max(0, lag.end_offset - position)
    seconds = 0.0 if behind == 0 else None if time_ms is None else max(0, now_ms - time_ms) / 1000
    if committed is None and behind:
        return lag._replace(most_records=behind, most_seconds=seconds)
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


def of_unknown_length(lags: Iterable[Lag], limit_ms: int) -> list[str]:
    """A sentence for each lag that may be over the limit: nothing is committed, or the next record has no time or could not be read."""
    return [sentence for lag in lags if (sentence := _unknown_length(lag, limit_ms)) is not None]


def _unknown_length(lag: Lag, limit_ms: int) -> str | None:
    if lag.records and lag.seconds is None:
        return (
            f"group {lag.group} is {counted(lag.records, 'record')} behind on {lag.partition}, for an unknown time:"
            " the next one has no time"
        )
    if lag.lacks_commit and (lag.most_seconds is None or lag.most_seconds * 1000 > limit_ms):
        return (
            f"group {lag.group} has no commit yet on {lag.partition}: it is up to {counted(lag.most_records or 0, 'record')} behind,"
            f" {_since(lag.most_seconds)}, if it begins at the earliest"
        )
    return None


def _since(seconds: float | None) -> str:
    from horolog.client.values.times import format_duration

    return "for an unknown time" if seconds is None else f"for {format_duration(round(seconds) * 1000)}"


def as_json(lag: Lag) -> dict[str, Any]:
    return {
        "group": lag.group,
        "topic": lag.partition.topic,
        "partition": lag.partition.partition,
        "committed": lag.committed,
        "end_offset": lag.end_offset,
        "lag_records": lag.records,
        "lag_seconds": lag.seconds,
        "most_records": lag.most_records,
        "most_seconds": lag.most_seconds,
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
