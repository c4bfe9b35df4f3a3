"""Reads the records around a time: forward from it, and backward in stretches of offsets, each record once.

The records before a time are, in each partition, all those at offsets before its lookup, and late ones after it. The late ones are
looked for first, within `LATE_MS` and `LATE_BYTES`; then stretches follow, one before the other: lookups keep each small
enough, and the next is longer if nothing was found. Both directions are iterators of `FoundPiece`s, so that a page ends once it has
enough, and a search continues while its page is open.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from horolog.client.values.types import LATEST, ConsumerRecord, TopicPartition
from horolog.client.wire.offsets import list_offsets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from horolog.base.clock import Clock
    from horolog.client.decoding import Decoded
    from horolog.client.moments.moment import MergedRecords, Offsets
    from horolog.client.wire.client import Client

    Between = Mapping[TopicPartition, Offsets]

STRETCH_RECORDS = 2000
LONGEST_STRETCH_RECORDS = 16_000
PIECE_RECORDS = 1000
PIECE_ROWS = 20
LOOKED_AT_MOST = 50_000
SECONDS_AT_MOST = 6.0
FILTERED_SECONDS_AT_MOST = 2.0
"""For a page with a filter: its search continues while it is open."""
HELD_RECORDS = 4000
HELD_BYTES = 8 << 20
FETCHED_BYTES = 256 << 10
"""At once, of all partitions: some hundred records are wanted."""
RECORD_BYTES = 128
"""The bytes fetched at once for each record of a stretch."""
LATE_MS = 600_000
LATE_BYTES = 4 << 20


class ShownRecord(NamedTuple):
    """A wanted record, decoded, and how late it came."""

    record: ConsumerRecord
    decoded: "Decoded"
    late_ms: int


class FoundPiece(NamedTuple):
    """The results of one search step, in time order, and the time up to which everything was read."""

    rows: list[ShownRecord]
    edge_ms: int


Wanted = Callable[[ConsumerRecord], "Awaitable[Decoded | None]"]
"""A record decoded if it is wanted; None if it is not."""


@dataclass(slots=True)
class Reader:
    """The reader of one page: all its reads share the limits."""

    client: "Client"
    places: Sequence[TopicPartition]
    wanted: Wanted
    clock: "Clock"
    looked_at: int = 0
    records_at_most: float = field(default_factory=lambda: LOOKED_AT_MOST)
    until: float = 0.0
    _notes: dict[str, None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.until = self.until or self.clock.monotonic() + SECONDS_AT_MOST

    @property
    def is_spent(self) -> bool:
        return self.looked_at >= self.records_at_most or self.clock.monotonic() > self.until

    @property
    def notes(self) -> list[str]:
        """One sentence for each thing that may be missing, however many steps met it."""
        return list(self._notes)

    async def around(
        self, since_ms: int, at_ms: int, until_ms: int, most: int
    ) -> tuple[list[ShownRecord], int, list[ShownRecord], int]:
        """Both sides of a time, and how far each was read; the first uses at most half of the limits."""
        bounds = self.records_at_most, self.until
        now = self.clock.monotonic()
        self.records_at_most, self.until = bounds[0] / 2, now + (bounds[1] - now) / 2
        earlier, low = await self.before(since_ms, at_ms, most // 2) if since_ms < at_ms else ([], at_ms)
        self.records_at_most, self.until = bounds
        later, high = await self.after(at_ms, until_ms, most - len(earlier))
        return earlier, low, later, high

    # -- a page: until there is enough, or the limits are reached

    async def after(self, since_ms: int, until_ms: int, most: int) -> tuple[list[ShownRecord], int]:
        """The first records from a time on, and the time up to which all were read."""
        found: list[ShownRecord] = []
        edge = since_ms
        async with aclosing(self.forward(since_ms, until_ms)) as pieces:
            async for piece in pieces:
                found += piece.rows
                edge = piece.edge_ms
                if len(found) >= most or self.is_spent:
                    break
        if len(found) >= most:
            return found[:most], found[most - 1].record.timestamp_ms
        return [one for one in found if one.record.timestamp_ms < edge], edge  # the others are found again from there

    async def before(self, since_ms: int, until_ms: int, most: int) -> tuple[list[ShownRecord], int]:
        """The last records before a time, and the time from which on all were read."""
        found: list[ShownRecord] = []
        edge = until_ms
        async with aclosing(self.backward(since_ms, until_ms)) as pieces:
            async for piece in pieces:
                found = piece.rows + found
                edge = piece.edge_ms
                if len(found) >= most or self.is_spent:
                    break
        if len(found) <= most:
            return found, edge
        rows = found[-most:]
        return rows, max(edge, rows[0].record.timestamp_ms)

    # -- a search: as long as the caller asks for the next piece

    async def forward(self, since_ms: int, until_ms: int) -> AsyncGenerator[FoundPiece, None]:
        """From a time on. If the limits end it, the edge of the last piece says how far it came."""
        rows: list[ShownRecord] = []
        seen = 0
        async with self._merged(since_ms, until_ms, FETCHED_BYTES) as moment:
            async for placed in moment:
                decoded = await self._look(placed.record)
                seen += 1
                if decoded is not None:
                    rows.append(ShownRecord(placed.record, decoded, placed.late_ms))
                if seen % PIECE_RECORDS == 0 or len(rows) >= PIECE_ROWS or self.looked_at >= self.records_at_most:
                    yield FoundPiece(rows, placed.record.timestamp_ms)
                    rows = []
            self._note(moment)
        yield FoundPiece(rows, until_ms)

    async def backward(self, since_ms: int, until_ms: int) -> AsyncGenerator[FoundPiece, None]:
        """Back from a time: each piece's rows are earlier than those of the piece before."""
        ends = await self._offsets(until_ms)
        late = await self._late(since_ms, until_ms, ends)
        edge, length, span = until_ms, STRETCH_RECORDS, until_ms - since_ms
        while edge > since_ms and not self.is_spent:
            low, starts, count = await self._stretch(since_ms, edge, ends, length, span)
            found = late + await self._between(starts, ends, length)
            rows = sorted((one for one in found if one.record.timestamp_ms >= low), key=_order)
            late = [one for one in found if one.record.timestamp_ms < low]
            span = 2 * (edge - low) * length // max(count, 1)
            edge, ends = low, starts
            yield FoundPiece(rows, edge)
            length = min(2 * length, LONGEST_STRETCH_RECORDS)

    async def _look(self, record: ConsumerRecord) -> "Decoded | None":
        self.looked_at += 1
        return await self.wanted(record)

    async def _late(self, since_ms: int, until_ms: int, starts: dict[TopicPartition, int]) -> list[ShownRecord]:
        """Records before `until_ms` at offsets after its lookup."""
        from horolog.client.moments.moment import Offsets

        found: list[ShownRecord] = []
        between = {place: Offsets(start) for place, start in starts.items()}
        async with self._merged(since_ms, until_ms, FETCHED_BYTES, between) as moment:
            async for placed in moment:
                decoded = await self._look(placed.record)
                if decoded is not None:
                    found.append(ShownRecord(placed.record, decoded, placed.late_ms))
            self._note(moment)
        return found

    async def _between(
        self, starts: dict[TopicPartition, int], ends: dict[TopicPartition, int], length: int
    ) -> list[ShownRecord]:
        """All records between offsets, in log order."""
        from horolog.client.moments.moment import Offsets, merge

        found: list[ShownRecord] = []
        between = {place: Offsets(starts[place], ends[place]) for place in self.places}
        size = max(FETCHED_BYTES, length * RECORD_BYTES)
        async with merge(
            self.client, self.places, None, None, in_order=False, fetched_bytes=size, between=between
        ) as moment:
            async for placed in moment:
                decoded = await self._look(placed.record)
                if decoded is not None:
                    found.append(ShownRecord(placed.record, decoded, placed.late_ms))
            self._note(moment)
        return found

    async def _stretch(
        self, since_ms: int, until_ms: int, ends: dict[TopicPartition, int], length: int, span: int
    ) -> tuple[int, dict[TopicPartition, int], int]:
        """A time before `until_ms` with few enough records between the two, its offsets, and the number of records."""
        span = max(1, min(span, until_ms - since_ms))
        while True:
            starts = await self._offsets(until_ms - span)
            count = sum(max(0, ends[place] - starts[place]) for place in self.places)
            if count <= length or span == 1:
                return until_ms - span, starts, count
            span = max(1, min(span // 2, span * length // count))

    async def _offsets(self, time_ms: int) -> dict[TopicPartition, int]:
        found, ends = await asyncio.gather(
            list_offsets(self.client, dict.fromkeys(self.places, max(0, time_ms))),
            list_offsets(self.client, dict.fromkeys(self.places, LATEST)),
        )
        return {
            place: answer.offset
            if (answer := found[place]) is not None
            else (end.offset if (end := ends[place]) else 0)
            for place in self.places
        }

    def _merged(
        self, since_ms: int, until_ms: int, fetched_bytes: int, between: "Between | None" = None
    ) -> "MergedRecords":
        from horolog.client.moments.look_ahead import LookAhead
        from horolog.client.moments.moment import merge
        from horolog.client.moments.sorting import Hold

        return merge(
            self.client,
            self.places,
            max(0, since_ms),
            max(0, until_ms),
            look_ahead=LookAhead(LATE_MS, LATE_BYTES),
            hold=Hold(HELD_RECORDS, HELD_BYTES),
            fetched_bytes=fetched_bytes,
            between=between,
        )

    def _note(self, moment: "MergedRecords") -> None:
        """Note what may be missing; the same of several steps becomes one sentence."""
        from horolog.client.moments.look_ahead import Ended
        from horolog.client.values.times import format_duration

        report = moment.report
        ended = {one.ended for one in report.open}
        said = {
            f"records that came more than {format_duration(LATE_MS)} late may be missing": Ended.QUIET in ended,
            f"late records may be missing: {LATE_BYTES >> 20} MiB are read for them": Ended.BYTES in ended,
            "a record with a later time hides others from lookups: some of them were skipped": (
                Ended.PASSED_OVER in ended
            ),
            "records have no time and are left out": report.without_time > 0,
            "records came too late to be sorted": report.out_of_place > 0,
            "records were deleted while they were read": report.lost > 0,
        }
        self._notes |= dict.fromkeys(sentence for sentence, holds in said.items() if holds)


def _order(one: ShownRecord) -> tuple[int, int, int]:
    return one.record.timestamp_ms, one.record.partition, one.record.offset
