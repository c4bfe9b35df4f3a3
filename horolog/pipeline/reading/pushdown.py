"""What a query's filters leave of a read: which topics and partitions, which offsets, which times. Pure except for lookups.

Spark applies every filter again, so a read may return more than passes, and never less. Records before the first one at or
after a time are all earlier: a lower bound on `timestamp` is exact however disordered times are. After the first record beyond an
upper bound earlier ones may follow, so that bound ends a read only if `maxLateness` says how late they are at most.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import reduce
from math import ceil, floor
from typing import TYPE_CHECKING, Any

from horolog.client.values.types import TopicPartition
from horolog.pipeline.base.positions import Log, OffsetRange

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

NO_END = 1 << 62


@dataclass(frozen=True, slots=True)
class Bounds:
    """Values from `low` up to but not including `high`."""

    low: int = 0
    high: int = NO_END

    def within(self, other: "Bounds") -> "Bounds":
        return Bounds(max(self.low, other.low), min(self.high, other.high))


@dataclass(frozen=True, slots=True)
class RecordBounds:
    """The bounds of records that may pass; None means any."""

    times: Bounds = field(default=Bounds())
    offsets: Bounds = field(default=Bounds())
    partitions: frozenset[int] | None = None
    topics: frozenset[str] | None = None

    def takes(self, partition: TopicPartition) -> bool:
        numbers, topics = self.partitions, self.topics
        return (numbers is None or partition.partition in numbers) and (topics is None or partition.topic in topics)

    def ranges(self, log: Log, whole: Iterable[OffsetRange], max_lateness_ms: int | None) -> list[OffsetRange]:
        """The parts of ranges that are left."""
        left = [self._by_offset(one) for one in whole if self.takes(one.partition)]
        asked = [one.partition for one in left if one.size > 0]
        starts = log.at_times(dict.fromkeys(asked, self.times.low)) if self.times.low > 0 and asked else {}
        until = NO_END if max_lateness_ms is None else self.times.high + max_lateness_ms
        ends = log.at_times(dict.fromkeys(asked, max(0, until))) if until < NO_END and asked else {}
        return [_between(one, starts, ends) for one in left]

    def _by_offset(self, one: OffsetRange) -> OffsetRange:
        start, end = max(one.start, self.offsets.low), min(one.end, self.offsets.high)
        return OffsetRange(one.partition, start, max(start, end))


def _between(
    one: OffsetRange, starts: dict[TopicPartition, int | None], ends: dict[TopicPartition, int | None]
) -> OffsetRange:
    name = one.partition
    start = starts.get(name, one.start)
    end = ends.get(name)
    first = one.end if start is None else min(max(one.start, start), one.end)
    return OffsetRange(name, first, max(first, one.end if end is None else min(one.end, end)))


EVERYTHING = RecordBounds()


def wanted_of(filters: Iterable["Filter"]) -> RecordBounds:
    """What passes all of the filters, as far as they compare columns of the log with values."""
    return reduce(_and, filters, EVERYTHING)


def _and(wanted: RecordBounds, one: "Filter") -> RecordBounds:
    (column, *inside) = getattr(one, "attribute", ("",))
    values = getattr(one, "value", None)
    kind = type(one).__name__
    if inside or values is None:
        return wanted
    if column in ("timestamp", "offset"):
        read: _Reader = _milliseconds if column == "timestamp" else _whole
        bounds = _bounds(kind, values, read)
        if bounds is None:
            return wanted
        if column == "timestamp":
            return replace(wanted, times=wanted.times.within(bounds))
        return replace(wanted, offsets=wanted.offsets.within(bounds))
    if column in ("partition", "topic") and kind in ("EqualTo", "EqualNullSafe", "In"):
        chosen: frozenset[Any] = frozenset(values if kind == "In" else [values])
        if column == "topic":
            return replace(wanted, topics=chosen if wanted.topics is None else wanted.topics & chosen)
        return replace(wanted, partitions=chosen if wanted.partitions is None else wanted.partitions & chosen)
    return wanted


def _bounds(kind: str, value: Any, read: "_Reader") -> Bounds | None:
    """The whole numbers that pass."""
    numbers = [read(each) for each in (value if kind == "In" else [value])]
    found = [each for each in numbers if each is not None]
    if not found or len(found) < len(numbers):
        return None
    low, high = min(found), max(found)
    match kind:
        case "GreaterThan":
            return Bounds(low=max(0, floor(low) + 1))
        case "GreaterThanOrEqual":
            return Bounds(low=max(0, ceil(low)))
        case "LessThan":
            return Bounds(high=ceil(high))
        case "LessThanOrEqual":
            return Bounds(high=floor(high) + 1)
        case "EqualTo" | "EqualNullSafe" | "In":
            return Bounds(max(0, ceil(low)), floor(high) + 1)
    return None


_Reader = Callable[[Any], Fraction | int | None]


def _milliseconds(value: Any) -> Fraction | None:
    if not isinstance(value, datetime):
        return None
    return Fraction((value.astimezone(UTC) - _EPOCH) // timedelta(microseconds=1), 1000)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) else None
