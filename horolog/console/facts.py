"""Facts about topics from any broker's lookups: records, first and last time, rate, disorder; None if the broker does not tell.

- The rate goes by the records' own times: those of the last minute, found by one lookup. No state is kept for it.
- Order: some records at the end of each partition, or at several places in it, are read, and late ones are counted. The number
of records read is part of the fact.
- Sizes come from DescribeLogDirs, which brokers may refuse.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from horolog.client.values.errors import KafkaError, PartialFailure
from horolog.client.values.types import EARLIEST, LATEST, Found, TopicPartition
from horolog.client.wire.offsets import LARGEST_TIMESTAMP, list_offsets
from horolog.console.recent import recent

if TYPE_CHECKING:
    from horolog.client.admin.admin_cluster import LogDir
    from horolog.client.wire.client import Client

RATE_MS = 60_000
SIZES_SECONDS = 15.0
ORDERS_AT_MOST = 64
"""How many partitions are examined for a page."""
ORDER_SECONDS = 30.0
WINDOWS = 16
"""How many places are read for a topic's page, over all partitions."""
WINDOWS_AT_ONCE = 8
WINDOW_RECORDS = 200
WINDOW_BYTES = 64 << 10


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
    """How late the latest of the records read is; 0: they are in order."""
    size_bytes: int | None = None
    order: "Order | None" = None

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
        """None unless known for every partition: a partial sum would look like the whole."""
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
    def order(self) -> "Order | None":
        """The order of all partitions together, as far as they were read."""
        known = [one.order for one in self.partitions if one.order is not None]
        if not known:
            return None
        return Order(
            sum(one.looked_at for one in known),
            sum(one.late for one in known),
            max(one.most_late_ms for one in known),
            is_all=all(one.is_empty or (one.order is not None and one.order.is_all) for one in self.partitions),
        )

    @property
    def is_empty(self) -> bool:
        return self.records == 0


async def answered(
    client: "Client", places: Sequence[TopicPartition], time_ms: int
) -> dict[TopicPartition, Found | None]:
    """The partitions that the broker answers for; others are missing, and so are all if it does not support the request."""
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
    windows: int = 1,
) -> dict[str, TopicFacts]:
    """By topic, for the partitions with a leader; order is checked at this many places of each."""
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
    orders = await _orders(client, known, windows)
    topics: dict[str, list[PartitionFacts]] = {}
    for one in known:
        order = orders.get(one.place)
        late_ms = None if order is None else order.most_late_ms
        topics.setdefault(one.place.topic, []).append(one._replace(late_ms=late_ms, order=order))
    return {name: TopicFacts(name, tuple(parts)) for name, parts in topics.items()}


def _offset(found: Found | None) -> int | None:
    return None if found is None or found.offset < 0 else found.offset


def _time(found: Found | None) -> int | None:
    return None if found is None or found.timestamp_ms < 0 else found.timestamp_ms


class Order(NamedTuple):
    """How far the records read are in order: a record is late if a larger time precedes it in its partition."""

    looked_at: int = 0
    late: int = 0
    most_late_ms: int = 0
    is_all: bool = False
    """Whether these are all records."""


async def _orders(client: "Client", partitions: Sequence[PartitionFacts], windows: int) -> dict[TopicPartition, Order]:
    """The order of readable partitions, at this many places of each; cached, since pages are reloaded often."""
    bound = asyncio.Semaphore(WINDOWS_AT_ONCE)
    chosen = [one for one in partitions if one.records and one.last_ms is not None][:ORDERS_AT_MOST]

    async def look(one: PartitionFacts) -> Order | None:
        async with bound:
            return await _order(client, one, windows)

    async def remembered(one: PartitionFacts) -> Order | None:
        key = ("order", one.place, one.start, windows)
        return await recent(client).get(key, ORDER_SECONDS, lambda: look(one))

    found = await asyncio.gather(*map(remembered, chosen))
    return {one.place: order for one, order in zip(chosen, found, strict=True) if order is not None}


async def _order(client: "Client", one: PartitionFacts, windows: int) -> Order | None:
    """None if nothing can be read."""
    start, end = one.start or 0, one.end or 0
    looked_at = late = most_late = 0
    largest, reached = -1, start
    for begin in places_of_windows(start, end, windows):
        read = await _window(client, one.place, max(begin, reached), end)
        if read is None:
            return None
        offsets, times = read
        if offsets and one.last_offset is not None and one.last_offset < offsets[0]:
            largest = max(largest, one.last_ms or -1)
        for time_ms in times:
            looked_at += 1
            if time_ms < largest:
                late += 1
                most_late = max(most_late, largest - time_ms)
            largest = max(largest, time_ms)
        reached = offsets[-1] + 1 if offsets else reached
    return Order(looked_at, late, most_late, is_all=end - start <= looked_at) if looked_at else None


def places_of_windows(start: int, end: int, windows: int) -> list[int]:
    """The offsets from which to read: near the end, and spread evenly before it."""
    last = max(start, end - WINDOW_RECORDS)
    if windows < 2 or last == start:
        return [last]
    return sorted({start + (last - start) * number // (windows - 1) for number in range(windows)})


async def _window(client: "Client", place: TopicPartition, offset: int, end: int) -> tuple[list[int], list[int]] | None:
    """Offsets and times of the records there. Of a large batch only a few records are decoded."""
    from horolog.client.wire.decode import Chunk

    try:
        fetched = await client.fetch_raw(place, offset, WINDOW_BYTES, max_wait_ms=0)
        records = Chunk(place, fetched, offset).take(WINDOW_RECORDS)
    except KafkaError:
        return None
    known = [one for one in records if one.timestamp_ms >= 0 and one.offset < end]
    return [one.offset for one in known], [one.timestamp_ms for one in known]


async def log_dirs_of(client: "Client") -> "list[LogDir] | None":
    """The data folders of all brokers; None if a broker does not show them."""

    async def ask() -> "list[LogDir] | None":
        from horolog.client.admin.admin_cluster import ClusterAdmin

        try:
            return await ClusterAdmin(client).log_dirs()
        except KafkaError:
            return None

    return await recent(client).get("folders", SIZES_SECONDS, ask)


def sizes_in(
    folders: "Sequence[LogDir] | None", leaders: Mapping[TopicPartition, int]
) -> dict[TopicPartition, int] | None:
    """The bytes of each partition at its leader: other replicas are not counted."""
    if folders is None:
        return None
    return {
        place: size
        for folder in folders
        for place, size in folder.sizes.items()
        if leaders.get(place) == folder.node_id
    }
