"""Reads the records around a time within bounds: forward from it, and backward in stretches that look-ups keep small.

A stretch that reaches back from a time is halved until no more than `STRETCH_RECORDS` lie in it, so that the records right before a
time are found without reading all of an hour. Every reading ends at a number of rows, of records looked at, or of seconds, and
says so.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from horolog.client.offsets import list_offsets
from horolog.client.types import LATEST, ConsumerRecord, TopicPartition

if TYPE_CHECKING:
    from horolog.broker.clock import Clock
    from horolog.client.client import Client
    from horolog.client.decoding import Decoded
    from horolog.client.moment import Moment

STRETCH_RECORDS = 2000
LOOKED_AT_MOST = 50_000
SECONDS_AT_MOST = 4.0
HELD_RECORDS = 4000
HELD_BYTES = 8 << 20
FETCHED_BYTES = 256 << 10
"""At once, of all partitions: some hundred records are wanted."""
LATE_MS = 600_000
LATE_BYTES = 4 << 20


class Shown(NamedTuple):
    """A record that is wanted, decoded, and how late it came."""

    record: ConsumerRecord
    decoded: "Decoded"
    late_ms: int


Wanted = Callable[[ConsumerRecord], "Awaitable[Decoded | None]"]
"""A record decoded if it is wanted; None if it is not."""


@dataclass(slots=True)
class Reader:
    """Of one page: all its readings share the bounds."""

    client: "Client"
    places: Sequence[TopicPartition]
    wanted: Wanted
    clock: "Clock"
    looked_at: int = 0
    until: float = 0.0
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.until = self.clock.monotonic() + SECONDS_AT_MOST

    @property
    def is_spent(self) -> bool:
        return self.looked_at >= LOOKED_AT_MOST or self.clock.monotonic() > self.until

    async def after(self, since_ms: int, until_ms: int, most: int) -> tuple[list[Shown], int]:
        """The first records from a time on, and the time up to which all were looked at."""
        found, reached = await self._read(since_ms, until_ms, most)
        return found, reached

    async def before(self, since_ms: int, until_ms: int, most: int) -> tuple[list[Shown], int]:
        """The last records before a time, and the time from which on all were looked at."""
        found: deque[Shown] = deque()
        edge = until_ms
        while edge > since_ms and len(found) < most and not self.is_spent:
            low = await self._near(since_ms, edge)
            part, reached = await self._read(low, edge, LOOKED_AT_MOST)
            found.extendleft(reversed(part))
            if reached < edge:  # given up in the middle: what lies before it is not looked at
                break
            edge = low
        rows = list(found)[-most:]
        return rows, (max(edge, rows[0].record.timestamp_ms) if len(found) > most and rows else edge)

    async def _near(self, since_ms: int, until_ms: int) -> int:
        """A time before `until_ms`, so that few enough records lie between them."""
        end = await self._offsets(until_ms)
        span = until_ms - since_ms
        while span > 1:
            start = await self._offsets(until_ms - span)
            if sum(max(0, end[place] - start[place]) for place in self.places) <= STRETCH_RECORDS:
                break
            span = max(1, span // 4)
        return until_ms - span

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

    async def _read(self, since_ms: int, until_ms: int, most: int) -> tuple[list[Shown], int]:
        from horolog.client.look_ahead import LookAhead
        from horolog.client.moment import merge
        from horolog.client.sorting import Hold

        rows: list[Shown] = []
        reached = until_ms
        async with merge(
            self.client,
            self.places,
            max(0, since_ms),
            max(0, until_ms),
            look_ahead=LookAhead(LATE_MS, LATE_BYTES),
            hold=Hold(HELD_RECORDS, HELD_BYTES),
            fetched_bytes=FETCHED_BYTES,
        ) as moment:
            async for placed in moment:
                self.looked_at += 1
                decoded = await self.wanted(placed.record)
                if decoded is not None:
                    rows.append(Shown(placed.record, decoded, placed.late_ms))
                if len(rows) >= most or self.is_spent:
                    reached = placed.record.timestamp_ms
                    break
            else:
                self._note(moment)
        return rows, reached

    def _note(self, moment: "Moment") -> None:
        self.notes += [one for one in moment.report.sentences() if one not in self.notes]
