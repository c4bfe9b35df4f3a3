"""Reads records of partitions, or as a member of a group, writes them out, and decides when it is done."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from horolog.client.consuming.consumer import Consumer
from horolog.client.values.types import LATEST, ConsumerRecord, TopicPartition
from horolog.client.wire.offsets import ends as list_ends
from horolog.client.wire.offsets import list_offsets
from horolog.commands.console import Console
from horolog.protocol.records.entries import iter_records

if TYPE_CHECKING:
    from horolog.client.moments.live_order import Window
    from horolog.client.moments.moment import MergedRecords
    from horolog.client.wire.client import Client
    from horolog.commands.online.decoding import DecodedWriter, Lens
    from horolog.commands.online.record_text import Writer

POLL_MS = 500
RECORDS_AT_ONCE = 2000
HANDFUL = 200
LOOK_AHEAD_BYTES = 256 << 10
"""How much of the log after the end of a range is searched for late records."""
QUIET_POLLS = 2
"""A group member that does not follow ends after this many polls without a record at the end of its partitions."""


@dataclass(slots=True)
class Reading:
    """The ranges to read, and the progress in them."""

    since_ms: int | None
    until_ms: int | None
    follow: bool
    late: bool
    isolation: str
    most: int | None
    now_ms: Callable[[], int]
    output: Callable[[bytes], None]
    lens: "Lens | None" = None
    from_end: bool = False
    """Whether reading begins at the end of each partition."""
    write_decoded: "DecodedWriter | None" = None
    """The writer for decoded records; None: they are written undecoded."""
    written: int = 0
    outside: int = 0
    """Records between the range's offsets with a time outside of it."""
    late_ones: int = 0
    """Records of the range that were found after its end."""
    _passed: set[TopicPartition] = field(default_factory=set)
    _window: "Window | None" = None

    @property
    def has_enough(self) -> bool:
        return self.most is not None and self.written >= self.most

    async def write(self, records: Iterable[ConsumerRecord], write: "Writer") -> int:
        """Write the records in the range; returns how many were examined, fewer than given once there are enough."""
        lines = []
        looked_at = 0
        for record in records:
            if self.has_enough:
                break
            looked_at += 1
            if self._is_inside(record):
                line = write(record) if self.lens is None else await self.lens.line(record, write, self.write_decoded)
                if line is not None:
                    lines.append(line)
                    self.written += 1
        self.output(b"".join(lines))
        return looked_at

    def _is_inside(self, record: ConsumerRecord) -> bool:
        time_ms = record.timestamp_ms
        if self.until_ms is not None and time_ms >= self.until_ms:
            self._passed.add(TopicPartition(record.topic, record.partition))
            self.outside += not self.follow and not self.late
            return False
        if self.since_ms is not None and time_ms < self.since_ms:
            self.outside += 1
            return False
        return True

    def merge_within(self, window_ms: int) -> None:
        """Hold new records for this long to sort them by time, over all partitions."""
        from horolog.client.moments.live_order import Window

        self._window = Window(window_ms)

    def _in_order(self, records: Iterable[ConsumerRecord], now_ms: float) -> Iterable[ConsumerRecord]:
        if self._window is None:
            return records
        self._window.put(records, now_ms)
        return self._window.take(now_ms)

    async def of_moment(self, moment: "MergedRecords", write: "Writer") -> None:
        """Read what was merged."""
        handful: list[ConsumerRecord] = []
        async with moment:
            async for placed in moment:
                handful.append(placed.record)
                if len(handful) >= HANDFUL:
                    await self.write(handful, write)
                    handful.clear()
                    if self.has_enough:
                        return
        await self.write(handful, write)

    async def of_partitions(
        self,
        client: "Client",
        starts: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
        write: "Writer",
    ) -> None:
        """Read each partition from its start to its end; when following, beyond it."""
        left = {partition for partition, start in starts.items() if self.follow or start < ends[partition]}
        if not left:
            return
        async with Consumer(client, isolation=self.isolation, max_poll_records=RECORDS_AT_ONCE) as consumer:
            consumer.assign(left)
            for partition in left:
                consumer.seek(partition, starts[partition])
            while left and not self.has_enough:
                records = await consumer.poll(POLL_MS if self._window is None else self._window.poll_ms(POLL_MS))
                if self.follow:
                    await self.write(self._in_order(records, client.clock.monotonic() * 1000), write)
                    done = self._passed & left if not self.late else set()
                    if not records and self._is_over():
                        break
                else:
                    await self.write(_before(records, ends), write)
                    done = {partition for partition in left if await consumer.position(partition) >= ends[partition]}
                if done:
                    left -= done
                    consumer.assign(left)
        if self._window is not None:
            await self.write(self._window.rest(), write)

    async def look_for_late_ones(self, client: "Client", ends: Mapping[TopicPartition, int]) -> None:
        """If times are out of order, records of the range may follow the first one after it: look for any nearby."""
        after = await list_ends(client, dict.fromkeys(ends, LATEST))
        for partition, end in ends.items():
            if end < after[partition]:
                fetched = await client.fetch_raw(partition, end, LOOK_AHEAD_BYTES, self.isolation, max_wait_ms=0)
                self.late_ones += sum(
                    (self.since_ms or 0) <= record.timestamp < (self.until_ms or 0)
                    for record in iter_records(fetched.records)
                    if record.offset >= end
                )

    def _is_over(self) -> bool:
        """Whether nothing more can come: the clock has passed the end of the range."""
        return self.until_ms is not None and self.now_ms() >= self.until_ms

    async def with_group(self, client: "Client", topic: str, group: str, write: "Writer") -> None:
        """Read what the group has not read, and commit records once they are written out."""
        async with Consumer(
            client, group=group, isolation=self.isolation, start="earliest", max_poll_records=RECORDS_AT_ONCE
        ) as consumer:
            await consumer.subscribe([topic])
            quiet = 0
            while not self.has_enough and (self.follow or quiet < QUIET_POLLS):
                records = await consumer.poll(POLL_MS, None if self.most is None else self.most - self.written)
                await self.write(records, write)
                if records:
                    await consumer.commit()
                    quiet = 0
                elif self.follow and self._is_over():
                    return
                elif consumer.assignment and await _at_end(consumer):
                    quiet += 1


def _before(records: Iterable[ConsumerRecord], ends: Mapping[TopicPartition, int]) -> Iterable[ConsumerRecord]:
    return (each for each in records if each.offset < ends[TopicPartition(each.topic, each.partition)])


async def _at_end(consumer: Consumer) -> bool:
    ends = await consumer.end_offsets(consumer.assignment)
    return all([await consumer.position(partition) >= end for partition, end in ends.items()])


async def at_times(
    client: "Client",
    partitions: Iterable[TopicPartition],
    time_ms: int,
    last: Mapping[TopicPartition, int],
    isolation: int,
) -> dict[TopicPartition, int]:
    """The first offset at or after a time in each partition, or its end."""
    found = await list_offsets(client, dict.fromkeys(partitions, time_ms), isolation=isolation)
    return {partition: last[partition] if answer is None else answer.offset for partition, answer in found.items()}


def within(
    first: Mapping[TopicPartition, int],
    last: Mapping[TopicPartition, int],
    wanted: Mapping[TopicPartition, int],
    console: Console,
) -> dict[TopicPartition, int]:
    """Offsets given by the user, clamped to the bounds of their partitions; notes each change."""
    found = {}
    for partition, offset in wanted.items():
        found[partition] = min(max(offset, first[partition]), last[partition])
        if offset > last[partition]:
            console.warn(f"{partition} ends at {last[partition]}: offset {offset} is beyond its end")
        elif offset < first[partition]:
            console.warn(f"{partition} begins at {first[partition]}: offset {offset} lies before it")
    return found
