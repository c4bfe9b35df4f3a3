"""The facts about topics that any broker tells by look-ups: records, first and last time, rate, disorder; what it does not tell is None.

- The rate is by the records' own times: those of the last minute, found by one look-up. No state is kept for it.
- Disorder: where records follow the latest one, the last of them is read; how far it lies behind the latest is the disorder.
- Sizes come with DescribeLogDirs, which brokers may refuse.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from horolog.client.errors import KafkaError, PartialFailure
from horolog.client.offsets import LARGEST_TIMESTAMP, list_offsets
from horolog.client.types import EARLIEST, LATEST, Found, TopicPartition
from horolog.console.recent import recent

if TYPE_CHECKING:
    from horolog.client.admin_cluster import LogDir
    from horolog.client.client import Client

RATE_MS = 60_000
SIZES_SECONDS = 15.0
TAILS_AT_MOST = 64
TAILS_AT_ONCE = 8
TAIL_BYTES = 32 << 10


class PartitionFacts(NamedTuple):
    place: TopicPartition
    start: int | None = None
    end: int | None = None
    first_ms: int | None = None
    last_ms: int | None = None
    """The largest time."""
    last_offset: int | None = None
    in_last_minute: int | None = None
    late_ms: int | None = None
    """How far the record at the end lies behind the largest time; 0: times are in order there."""
    size_bytes: int | None = None

    @property
    def records(self) -> int | None:
        return None if self.start is None or self.end is None else self.end - self.start

    @property
    def is_empty(self) -> bool:
        return self.records == 0


class TopicFacts(NamedTuple):
    name: str
    partitions: tuple[PartitionFacts, ...]

    def _sum(self, name: str) -> int | None:
        """None where it is not known of every partition: a part of a sum would look like the whole."""
        values = [getattr(one, name) for one in self.partitions]
        return None if not values or None in values else sum(values)

    @property
    def records(self) -> int | None:
        return self._sum("records")

    @property
    def size_bytes(self) -> int | None:
        return self._sum("size_bytes")

    @property
    def per_second(self) -> float | None:
        found = self._sum("in_last_minute")
        return None if found is None else found / (RATE_MS / 1000)

    @property
    def first_ms(self) -> int | None:
        return min((one.first_ms for one in self.partitions if one.first_ms is not None), default=None)

    @property
    def last_ms(self) -> int | None:
        return max((one.last_ms for one in self.partitions if one.last_ms is not None), default=None)

    @property
    def late_ms(self) -> int | None:
        return max((one.late_ms for one in self.partitions if one.late_ms is not None), default=None)

    @property
    def is_empty(self) -> bool:
        return self.records == 0


async def answered(
    client: "Client", places: Sequence[TopicPartition], time_ms: int
) -> dict[TopicPartition, Found | None]:
    """Those that a broker tells of; the others, and all where it cannot be asked so, are missing."""
    if not places:
        return {}
    try:
        return await list_offsets(client, dict.fromkeys(places, time_ms))
    except PartialFailure as error:
        return dict(error.results or {})
    except KafkaError as error:
        if error.retriable and len(places) > 1 and not client.view.nodes:
            raise
        return {}


async def facts_of(
    client: "Client",
    places: Sequence[TopicPartition],
    sizes: Mapping[TopicPartition, int] | None,
    now_ms: int,
) -> dict[str, TopicFacts]:
    """By topic, for the partitions that have a leader."""
    starts, ends, firsts, largest, before = await asyncio.gather(
        answered(client, places, EARLIEST),
        answered(client, places, LATEST),
        answered(client, places, 0),
        answered(client, places, LARGEST_TIMESTAMP),
        answered(client, places, max(0, now_ms - RATE_MS)),
    )
    known = []
    for place in places:
        start, end = _offset(starts.get(place)), _offset(ends.get(place))
        is_empty = start is not None and start == end
        later = before.get(place)
        recently = None if place not in before or end is None else 0 if later is None else end - later.offset
        found = largest.get(place)
        last = None if is_empty or found is None else found
        known.append(
            PartitionFacts(
                place,
                start,
                end,
                None if is_empty else _time(firsts.get(place)),
                _time(last),
                None if last is None else last.offset,
                recently,
                None,
                None if sizes is None else sizes.get(place),
            )
        )
    late = await _lateness(client, known)
    topics: dict[str, list[PartitionFacts]] = {}
    for one in known:
        topics.setdefault(one.place.topic, []).append(one._replace(late_ms=late.get(one.place)))
    return {name: TopicFacts(name, tuple(parts)) for name, parts in topics.items()}


def _offset(found: Found | None) -> int | None:
    return None if found is None or found.offset < 0 else found.offset


def _time(found: Found | None) -> int | None:
    return None if found is None or found.timestamp_ms < 0 else found.timestamp_ms


async def _lateness(client: "Client", partitions: Sequence[PartitionFacts]) -> dict[TopicPartition, int]:
    """Of those whose order is known: by the offset of the largest time, else by the record at the end."""
    found: dict[TopicPartition, int] = {}
    doubtful = []
    for one in partitions:
        if one.last_offset is None or one.end is None or one.last_ms is None:
            continue
        if one.last_offset >= one.end - 1:
            found[one.place] = 0
        else:
            doubtful.append(one)
    bound = asyncio.Semaphore(TAILS_AT_ONCE)

    async def look(one: PartitionFacts) -> int | None:
        async with bound:
            return await time_at(client, one.place, (one.end or 1) - 1)

    for one, last_ms in zip(doubtful, await asyncio.gather(*map(look, doubtful[:TAILS_AT_MOST])), strict=False):
        if last_ms is not None and one.last_ms is not None:
            found[one.place] = max(0, one.last_ms - last_ms)
    return found


async def time_at(client: "Client", place: TopicPartition, offset: int) -> int | None:
    """The time of the record at an offset, if it is there and has one."""
    from horolog.protocol.records.entries import iter_records

    try:
        fetched = await client.fetch_raw(place, offset, TAIL_BYTES, max_wait_ms=0)
    except KafkaError:
        return None
    found = next((record.timestamp for record in iter_records(fetched.records) if record.offset >= offset), -1)
    return found if found >= 0 else None


async def log_dirs_of(client: "Client") -> "list[LogDir] | None":
    """The data folders of all brokers; None where a broker does not tell."""

    async def ask() -> "list[LogDir] | None":
        from horolog.client.admin_cluster import ClusterAdmin

        try:
            return await ClusterAdmin(client).log_dirs()
        except KafkaError:
            return None

    return await recent(client).get("folders", SIZES_SECONDS, ask)


def sizes_in(
    folders: "Sequence[LogDir] | None", leaders: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int] | None:
    """The bytes of each partition where it is led: copies elsewhere are not counted again."""
    if folders is None:
        return None
    return {
        place: size
        for folder in folders
        for place, size in folder.sizes.items()
        if leaders.get(place) == folder.node_id
    }
