"""The timeline of a topic from lookups alone: records and bytes by time, the retention edge, future times; no record is read.

Bytes by time are exact if the broker lists its segments: see `horolog.client.segments.segments`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import TYPE_CHECKING, Any

from horolog.client.charting.buckets import Timeline, bucket_length, frame, from_lookups
from horolog.client.charting.lookups import offsets_at, time_range
from horolog.client.segments.segments import bytes_between
from horolog.client.values.types import TopicPartition
from horolog.console.visits import Refused

if TYPE_CHECKING:
    from horolog.client.segments.segments import TopicSegments
    from horolog.client.wire.client import Client

    Ask = Callable[[Sequence[int], Sequence[int]], Awaitable[tuple[TopicSegments | None, str]]]
    """For partitions and times: their segments, or the reason why there is no list."""

BUCKETS = 120
PARTITIONS_AT_MOST = 64
LATEST_MS = 2**62
SHORTEST_MS = 10
LAST_OF_CALENDAR_MS = 253_402_300_800_000
"""The end of the year 9999."""


@dataclass(slots=True)
class Chart:
    """A timeline with its marks."""

    timeline: Timeline
    bytes: list[float] | None
    """From the files if there are `segments`; else estimated: each record has its partition's mean size."""
    first_ms: int
    last_ms: int
    """The largest time of all."""
    future_records: int
    left_out: int = 0
    """Partitions not counted, because there are too many."""
    marks: dict[str, int] = field(default_factory=dict)
    """Times drawn as lines, by their meaning."""
    segments: "TopicSegments | None" = None
    why_estimated: str = ""
    shown: tuple[int, int] | None = None
    """The times of the records below the chart: they are shaded."""

    @property
    def until_ms(self) -> int:
        return self.timeline.border(len(self.timeline.counts))

    @property
    def records(self) -> int:
        return sum(self.timeline.rounded())

    def rows(self) -> list[tuple[int, int, float | None]]:
        """(start, records, bytes) of each bucket with records, for readers who do not see the chart."""
        counts = self.timeline.rounded()
        return [
            (self.timeline.border(number), count, None if self.bytes is None else self.bytes[number])
            for number, count in enumerate(counts)
            if count
        ]

    def gaps(self) -> list[tuple[int, int]]:
        return sorted(self.timeline.gaps(), key=lambda gap: gap[0] - gap[1])

    def data(self, now_ms: int) -> dict[str, Any]:
        """The data for the script that draws it."""
        return {
            "start": self.timeline.start_ms,
            "bucket": self.timeline.bucket_ms,
            "counts": self.timeline.rounded(),
            "bytes": None if self.bytes is None else [round(one) for one in self.bytes],
            "now": now_ms,
            "marks": self.marks,
            "exact": self.segments is not None,
            "shown": self.shown,
        }


async def chart_of(
    client: "Client",
    places: Sequence[TopicPartition],
    bytes_of: Mapping[TopicPartition, float],
    bounds: tuple[int | None, int | None],
    zone: tzinfo,
    now_ms: int,
    *,
    ask: "Ask | None" = None,
) -> Chart | None:
    """None for a topic without records with times. `bytes_of` is the mean size of a record, if known."""
    chosen, left_out = list(places[:PARTITIONS_AT_MOST]), max(0, len(places) - PARTITIONS_AT_MOST)
    times = await time_range(client, chosen) if chosen else None
    if times is None:
        return None
    timeline = _framed(bounds, times, now_ms, zone)
    borders = [timeline.border(number) for number in range(len(timeline.counts) + 1)]
    found, (segments, why) = await asyncio.gather(
        offsets_at(client, chosen, [*borders, now_ms + 1, LATEST_MS]),
        _nobody() if ask is None else ask([one.partition for one in chosen], borders),
    )
    is_known = segments is not None or all(one in bytes_of for one in chosen)
    sizes = [0.0] * len(timeline.counts) if is_known else None
    future = 0
    for place, offsets in found.items():
        from_lookups(timeline, offsets[:-2])
        future += max(0, offsets[-1] - offsets[-2])
        if sizes is not None:
            if segments is not None:
                alone = bytes_between(segments.partitions[place.partition].at, offsets[:-2])
            else:
                counted = Timeline(timeline.start_ms, timeline.bucket_ms, [0.0] * len(timeline.counts))
                from_lookups(counted, offsets[:-2])
                alone = [count * bytes_of[place] for count in counted.counts]
            sizes = [one + more for one, more in zip(sizes, alone, strict=True)]
    return Chart(timeline, sizes, *times, future, left_out, segments=segments, why_estimated=why)


async def _nobody() -> "tuple[None, str]":
    return None, ""


def _framed(bounds: tuple[int | None, int | None], times: tuple[int, int], now_ms: int, zone: tzinfo) -> Timeline:
    """The empty timeline: of all records, up to now, unless bounds are given."""
    first, last = times
    if first <= now_ms < last:  # one record from the future must not stretch the chart over years
        last = now_ms
    since = min(first, LAST_OF_CALENDAR_MS - SHORTEST_MS) if bounds[0] is None else bounds[0]
    until = min(max(last, since) + 1, LAST_OF_CALENDAR_MS) if bounds[1] is None else bounds[1]
    if until <= since:
        raise Refused("the end of the range is not later than its start", field="until")
    if not -LAST_OF_CALENDAR_MS <= since < until <= LAST_OF_CALENDAR_MS:
        raise Refused("the range is beyond the calendar", field="until")
    until = max(until, since + SHORTEST_MS)
    return frame(since, until - 1, bucket_length(until - since, BUCKETS - 1), zone)


def steps(chart: Chart) -> dict[str, tuple[int, int]]:
    """The ranges of the buttons: earlier, later, nearer, wider."""
    start, end = chart.timeline.start_ms, chart.until_ms
    length = end - start
    half, quarter = length // 2, length // 4
    return {
        "earlier": (start - half, end - half),
        "later": (start + half, end + half),
        "nearer": (start + quarter, end - quarter) if length > 4 * SHORTEST_MS else (start, end),
        "wider": (start - half, end + half),
    }
