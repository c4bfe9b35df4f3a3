"""Records per time bucket, as far as their times are known; gaps, disorder and future times; pure.

Records between two points of a time index are spread evenly, unless that stretch is far longer than usual there: then
nothing was written for most of it, and the records go to its end.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import pairwise
from statistics import median
from typing import NamedTuple

PAUSE_FACTOR = 8
"""A stretch this many times as long as the median one is a pause."""
GAP_FACTOR = 2
GAP_BUCKETS = 2
"""A gap has at least this many empty buckets, and this many times as many as usual between filled ones."""
FEW_STEPS = 2
MAX_BUCKETS = 10_000
SECOND, MINUTE, HOUR, DAY = 1000, 60_000, 3_600_000, 86_400_000
LENGTHS_MS = (
    *(1, 2, 5, 10, 20, 50, 100, 200, 500),
    *(count * SECOND for count in (1, 2, 5, 10, 15, 30)),
    *(count * MINUTE for count in (1, 2, 5, 10, 15, 30)),
    *(count * HOUR for count in (1, 2, 3, 6, 12)),
    *(count * DAY for count in (1, 2, 7, 14, 28, 91, 182, 364)),
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Stretch(NamedTuple):
    """A number of records, later than `after_ms` (None: not known) and not later than `until_ms`."""

    after_ms: int | None
    until_ms: int
    records: int


class Disorder(NamedTuple):
    """A segment that begins earlier than records written before it."""

    partition: str
    offset: int
    timestamp: int
    behind_ms: int


@dataclass(slots=True)
class Timeline:
    """Counts per bucket: bucket n begins at `start_ms + n * bucket_ms`."""

    start_ms: int
    bucket_ms: int
    counts: list[float] = field(default_factory=list)

    def border(self, number: int) -> int:
        return self.start_ms + self.bucket_ms * number

    def rounded(self) -> list[int]:
        """Integers with the same sum as the counts."""
        borders, total = [0], 0.0
        for count in self.counts:
            total += count
            borders.append(round(total))
        return [after - before for before, after in pairwise(borders)]

    def gaps(self) -> list[tuple[int, int]]:
        """From and to: runs of empty buckets longer than usual between filled ones."""
        filled = [number for number, count in enumerate(self.rounded()) if count]
        steps = [other - one for one, other in pairwise(filled)]
        usual = max(GAP_BUCKETS, GAP_FACTOR * median(steps)) if len(steps) > FEW_STEPS else GAP_BUCKETS
        return [(self.border(one + 1), self.border(other)) for one, other in pairwise(filled) if other - one > usual]


def bucket_length(span_ms: int, wanted: int) -> int:
    """A round length with which at most `wanted` buckets cover the span."""
    for length in LENGTHS_MS:
        if span_ms <= length * wanted:
            return length
    longest = LENGTHS_MS[-1]
    return -(-span_ms // (longest * wanted)) * longest


def frame(first_ms: int, last_ms: int, bucket_ms: int, zone: tzinfo) -> Timeline:
    """An empty timeline from the bucket of the first time to that of the last; buckets begin at round local times."""
    try:
        offset = (_EPOCH + timedelta(milliseconds=first_ms)).astimezone(zone).utcoffset() or timedelta()
    except OverflowError:
        offset = timedelta()
    shift = offset // timedelta(milliseconds=1)
    start = (first_ms + shift) // bucket_ms * bucket_ms - shift
    count = (last_ms - start) // bucket_ms + 1
    if count > MAX_BUCKETS:
        raise ValueError(f"{count} bars are more than the maximum of {MAX_BUCKETS}")
    return Timeline(start, bucket_ms, [0.0] * count)


def with_starts(stretches: Sequence[Stretch]) -> list[Stretch]:
    """The stretches, those of unknown beginning given the usual length for their number of records."""
    rates = [
        (one.until_ms - one.after_ms) / one.records for one in stretches if one.after_ms is not None and one.records
    ]
    if not rates:
        return list(stretches)
    rate = median(rates)
    return [
        one._replace(after_ms=one.until_ms - round((one.records - 1) * rate) - 1) if one.after_ms is None else one
        for one in stretches
    ]


def span(stretches: Iterable[Stretch]) -> tuple[int, int] | None:
    """The first and the last known time."""
    known = list(stretches)
    times = [one.until_ms for one in known] + [one.after_ms + 1 for one in known if one.after_ms is not None]
    return (min(times), max(times)) if times else None


def last_until(stretches: Iterable[Stretch], now_ms: int) -> int | None:
    """The last time that is not in the future: one record from the future must not stretch the chart over years."""
    return max((one.until_ms for one in stretches if one.until_ms <= now_ms), default=None)


def future(stretches: Iterable[Stretch], now_ms: int) -> int:
    """How many records are in stretches that end in the future: one of each is from the future, the others may be."""
    return sum(one.records for one in stretches if one.until_ms > now_ms)


def pause_ms(stretches: Sequence[Stretch]) -> float:
    """How long a stretch has to be to count as a pause."""
    lengths = [
        one.until_ms - one.after_ms for one in stretches if one.after_ms is not None and one.until_ms > one.after_ms
    ]
    return PAUSE_FACTOR * median(lengths) if lengths else 0.0


def fill(timeline: Timeline, stretches: Sequence[Stretch]) -> None:
    """Add the records of one partition; those outside the timeline are left out."""
    pause = pause_ms(stretches)
    for one in stretches:
        start = one.after_ms
        if (
            start is None
            or start >= one.until_ms
            or (one.until_ms - start > pause and one.until_ms - start > timeline.bucket_ms)
        ):
            _add(timeline, one.until_ms, one.records)
        else:
            _spread(timeline, start, one.until_ms, one.records)


def _add(timeline: Timeline, timestamp: int, count: float) -> None:
    number = (timestamp - timeline.start_ms) // timeline.bucket_ms
    if 0 <= number < len(timeline.counts):
        timeline.counts[number] += count


def _spread(timeline: Timeline, start: int, end: int, count: int) -> None:
    """Spread records evenly over the time after `start` up to and including `end`."""
    number = (start + 1 - timeline.start_ms) // timeline.bucket_ms
    rate = count / (end - start)
    while start < end:
        stop = min(end, timeline.border(number + 1) - 1)
        if 0 <= number < len(timeline.counts):
            timeline.counts[number] += rate * (stop - start)
        if number >= len(timeline.counts):
            return
        start, number = stop, number + 1


def from_lookups(timeline: Timeline, offsets: Sequence[int]) -> None:
    """Add the records of one partition: `offsets` has one for every border of the timeline, including the last."""
    for number, (before, after) in enumerate(pairwise(offsets)):
        timeline.counts[number] += max(after - before, 0)
