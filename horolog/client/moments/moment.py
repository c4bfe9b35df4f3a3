"""The records of several partitions from one time to another, merged by time: what happened at that moment.

    async with merge(client, partitions, since_ms, until_ms) as moment:
        async for placed in moment:
            print(placed.record, placed.late_ms)
    print(moment.report.sentences())

Each partition is read by a `Strand`, the strand furthest behind in time first. Records are held until all strands have
ended or there is no more room; then the earliest goes. So the order is that of a full sort unless a record is late by more
than fits into memory; such a record is returned and counted. `look_ahead` decides how far a strand reads past the end
of the range; the report says where that left something open.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self

from horolog.base.readable import counted, format_duration
from horolog.client.moments.look_ahead import BEYOND_ALL_MS, DEFAULT, Ended, LookAhead, Search, most_late_ms
from horolog.client.moments.sorting import Hold, Placed, Sorter
from horolog.client.moments.strand import Strand
from horolog.client.values.types import EARLIEST, LATEST, TopicPartition

if TYPE_CHECKING:
    from horolog.client.moments.moment_source import Source
    from horolog.client.wire.client import Client

STEP_RECORDS = 500
FETCHED_BYTES = 32 << 20
"""Of all partitions together, at once."""
LARGEST_FETCH_BYTES = 1 << 20
SMALLEST_FETCH_BYTES = 64 << 10


class Open(NamedTuple):
    """A partition not read to its end, where records of the range might follow."""

    partition: TopicPartition
    offset: int
    end_offset: int
    ended: Ended
    had_late: bool
    """Whether times were out of order in the part that was read."""


class Offsets(NamedTuple):
    """Offsets of one partition, `end` excluded; None: to the end."""

    start: int
    end: int | None = None


@dataclass(slots=True)
class Report:
    """What was seen while reading; complete once the iteration has ended."""

    look_ahead: LookAhead
    hold: Hold
    records: int = 0
    late: int = 0
    """Records returned whose time is below a larger one before them in their partition."""
    most_late_ms: int = 0
    without_time: int = 0
    """Records that have no time, and so are in no range."""
    out_of_place: int = 0
    """Records returned after a later one, because no more could be held."""
    lost: int = 0
    """Offsets that were deleted before they could be read."""
    open: list[Open] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether no record of the range can be missing or out of order."""
        return not (self.open or self.out_of_place or self.lost)

    def sentences(self) -> list[str]:
        """What a reader of the records should know."""
        return [*self.notes(), *self.warnings()]

    def notes(self) -> list[str]:
        """Where reading ended normally although late records give reason to read on, and what a time range leaves out."""
        found = []
        quiet = [one for one in self.open if one.ended == Ended.QUIET and one.had_late]
        if quiet:
            late = format_duration(self.look_ahead.late_ms or 0)
            found.append(
                f"{counted(_unread(quiet), 'unread offset')} after the range may hold records of the range that came more than {late} late"
            )
        if self.without_time:
            found.append(f"left out {counted(self.without_time, 'record')} without a time")
        return found

    def warnings(self) -> list[str]:
        """Bounds that were reached, and records that were lost."""
        found = []
        used_up = [one for one in self.open if one.ended == Ended.BYTES]
        passed_over = [one for one in self.open if one.ended == Ended.PASSED_OVER]
        if passed_over:
            found.append(
                f"skipped {counted(_unread(passed_over), 'offset')} of {_names(passed_over)} without a look-ahead: a record"
                " with a later time hides them from lookups, and their times seem to be before the range"
            )
        if used_up:
            unread, names = _unread(used_up), _names(used_up)
            size = (self.look_ahead.most_bytes or 0) >> 10
            found.append(
                f"the look-ahead of {size} KiB was used up in {names}: late records of the range may be among"
                f" {counted(unread, 'unread offset')}"
            )
        if self.out_of_place:
            found.append(
                f"{counted(self.out_of_place, 'record')} came too late to be sorted: at most {counted(self.hold.records, 'record')}"
                f" or {self.hold.size_bytes >> 20} MiB are held for sorting"
            )
        if self.lost:
            found.append(f"offsets deleted while they were read: {self.lost:,}")
        return found


def _unread(some: Sequence[Open]) -> int:
    return sum(one.end_offset - one.offset for one in some)


def _names(some: Sequence[Open]) -> str:
    return ", ".join(str(one.partition) for one in some[:3]) + (", ..." if len(some) > 3 else "")


class MergedRecords:
    """A one-time asynchronous iterator; made by `merge`."""

    def __init__(
        self,
        source: "Source",
        partitions: Sequence[TopicPartition],
        since_ms: int | None,
        until_ms: int | None,
        *,
        isolation: str,
        in_order: bool,
        fetched_bytes: int,
        report: Report,
        between: Mapping[TopicPartition, Offsets] | None = None,
    ) -> None:
        if since_ms is not None and until_ms is not None and until_ms < since_ms:
            raise ValueError(f"until {until_ms} is before since {since_ms}")
        self._source = source
        self._partitions = list(dict.fromkeys(partitions))
        self._since_ms = max(0, since_ms or 0)
        self._from_start = since_ms is None
        self._until_ms = until_ms
        self._isolation = isolation
        self._in_order = in_order
        self._fetched_bytes = fetched_bytes
        self._between = between
        self._strands: list[Strand] = []
        self.report = report

    def __repr__(self) -> str:
        return f"<MergedRecords of {len(self._partitions)} partitions, {self.report.records} records so far>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Cancel the fetches in flight."""
        for strand in self._strands:
            await strand.close()

    async def __aiter__(self) -> AsyncIterator[Placed]:
        self._strands = await self._find_strands()
        step = max(1, min(STEP_RECORDS, self.report.hold.records // max(2 * len(self._strands), 1)))
        try:
            async for placed in self._merged(step) if self._in_order else self._as_they_lie():
                self.report.records += 1
                if placed.late_ms:
                    self.report.late += 1
                    self.report.most_late_ms = max(self.report.most_late_ms, placed.late_ms)
                yield placed
        finally:
            await self.close()

    async def _merged(self, step: int) -> AsyncIterator[Placed]:
        sorter = Sorter(self.report.hold)
        running = list(self._strands)
        for each in running:
            each.start()
        strand: Strand | None
        while running or sorter:
            strand = min(running, key=lambda one: one.reached_ms) if running else None
            if strand is not None and (strand.reached_ms < 0 or not sorter.is_full):
                sorter.put_all(await strand.read(step))
                running = self._without_ended(running)
                continue
            for _ in range(min(step, len(sorter))):
                placed = sorter.take()
                self.report.out_of_place = sorter.out_of_place
                yield placed

    def _without_ended(self, strands: list[Strand]) -> list[Strand]:
        """The strands that continue; the report notes the others."""
        for strand in strands:
            if strand.ended is not None:
                self._note(strand)
        return [strand for strand in strands if strand.ended is None]

    async def _as_they_lie(self) -> AsyncIterator[Placed]:
        """Partition by partition, each in the order of its offsets."""
        for strand in self._strands:
            while strand.ended is None:
                for placed in await strand.read(STEP_RECORDS):
                    yield placed
            self._note(strand)

    def _note(self, strand: Strand) -> None:
        self.report.without_time += strand.without_time
        self.report.lost += strand.lost
        if strand.passed_over is not None:
            self.report.open.append(Open(strand.partition, *strand.passed_over, Ended.PASSED_OVER, strand.saw_late))
        if strand.ended in {Ended.QUIET, Ended.BYTES}:
            self.report.open.append(Open(strand.partition, strand.position, strand.end, strand.ended, strand.saw_late))

    # Where to begin and where to end

    async def _find_strands(self) -> list[Strand]:
        if self._until_ms is not None and self._until_ms <= self._since_ms:
            return []
        first, last = await self._bounds()
        wanted = [
            each for each in self._partitions if (first[each] or 0) < (last[each] or 0) and first[each] is not None
        ]
        if not wanted:
            return []
        until_ms = BEYOND_ALL_MS if self._until_ms is None else self._until_ms
        provable = await self._most_late_by_topic({each.topic for each in wanted}) if self._until_ms is not None else {}
        range_ends = await self._look_up(until_ms, wanted)
        late_ends = await self._late_ends(wanted, provable, until_ms)
        fetch_bytes = max(SMALLEST_FETCH_BYTES, min(LARGEST_FETCH_BYTES, self._fetched_bytes // len(wanted)))
        share = self.report.look_ahead.share(len(wanted))
        found = []
        for partition in wanted:
            end = last[partition] or 0
            late_ms = self._late_ms(provable.get(partition.topic))
            search = Search(
                range_end=_or_end(range_ends[partition], end),
                late_end=_or_end(late_ends[partition], end),
                end=end,
                quiet_from_ms=until_ms + (late_ms or 0),
                most_bytes=share,
                proven=_is_proven(provable.get(partition.topic), late_ms),
            )
            found.append(
                Strand(
                    self._source,
                    partition,
                    first[partition] or 0,
                    end,
                    (self._since_ms, until_ms),
                    search,
                    isolation=self._isolation,
                    fetch_bytes=fetch_bytes,
                )
            )
        return found

    async def _bounds(self) -> tuple[dict[TopicPartition, int | None], dict[TopicPartition, int | None]]:
        """The offsets to begin at, and those of the ends."""
        last = await self._look_up(LATEST)
        if self._between is None:
            return await self._look_up(EARLIEST if self._from_start else self._since_ms), last
        first: dict[TopicPartition, int | None] = {each: self._between[each].start for each in self._partitions}
        for each, end in last.items():
            bound = self._between[each].end
            last[each] = end if bound is None or end is None else min(end, bound)
        return first, last

    async def _look_up(
        self, time_ms: int, partitions: Sequence[TopicPartition] | None = None
    ) -> dict[TopicPartition, int | None]:
        """The first offset at or after a time in each partition, as far as there is one."""
        wanted = self._partitions if partitions is None else partitions
        if time_ms >= BEYOND_ALL_MS:
            return dict.fromkeys(wanted)
        return await self._source.offsets_at(time_ms, wanted, self._isolation)

    async def _late_ends(
        self, partitions: Sequence[TopicPartition], provable: dict[str, int | None], until_ms: int
    ) -> dict[TopicPartition, int | None]:
        """The offsets from which no record of the range can follow, by how late it may be."""
        by_time: dict[int, list[TopicPartition]] = {}
        for partition in partitions:
            late_ms = self._late_ms(provable.get(partition.topic))
            by_time.setdefault(BEYOND_ALL_MS if late_ms is None else until_ms + late_ms, []).append(partition)
        found: dict[TopicPartition, int | None] = {}
        for time_ms, some in by_time.items():
            found |= await self._look_up(time_ms, some)
        return found

    def _late_ms(self, provable: int | None) -> int | None:
        """How late a record may be and still be looked for; no later than the topic accepts."""
        bound = self.report.look_ahead.late_ms
        return bound if bound is None or provable is None else min(bound, provable)

    async def _most_late_by_topic(self, topics: set[str]) -> dict[str, int | None]:
        """How late a record of each topic can be by its settings; unknown if the client may not read them."""
        settings = await self._source.time_settings(topics)
        return {topic: most_late_ms(settings[topic]) for topic in topics}


def merge(
    client: "Client | Source",
    partitions: Sequence[TopicPartition],
    since_ms: int | None,
    until_ms: int | None,
    *,
    isolation: str = "read_uncommitted",
    in_order: bool = True,
    look_ahead: LookAhead = DEFAULT,
    hold: Hold | None = None,
    fetched_bytes: int = FETCHED_BYTES,
    between: Mapping[TopicPartition, Offsets] | None = None,
) -> MergedRecords:
    """The records of these partitions with a time from `since_ms` on and before `until_ms`; None: from the beginning, to the end.

    They come in the order of time, partition and offset, or with `in_order=False` partition by partition in log order. One fetch
    of all partitions brings about `fetched_bytes`: few if few records are wanted. Partitions are a broker's, or those of a
    `moment_source.Source`. `between` gives the offsets to read of each, in place of those found by the times.
    """
    from horolog.client.moments.moment_source import BrokerSource
    from horolog.client.wire.client import Client

    source = BrokerSource(client) if isinstance(client, Client) else client
    report = Report(look_ahead, hold or Hold())
    return MergedRecords(
        source,
        partitions,
        since_ms,
        until_ms,
        isolation=isolation,
        in_order=in_order,
        fetched_bytes=fetched_bytes,
        report=report,
        between=between,
    )


def _or_end(offset: int | None, end: int) -> int:
    return end if offset is None else min(offset, end)


def _is_proven(provable: int | None, late_ms: int | None) -> bool:
    return provable is not None and late_ms is not None and provable <= late_ms
