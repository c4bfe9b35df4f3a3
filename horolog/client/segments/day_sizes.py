"""Records and bytes of a topic by day, in a given time zone: from lookups at midnights, and from segments if the broker lists them.

Without segments each record counts with its partition's mean size: an estimate, and `Days.why` says so.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from horolog.client.charting.lookups import offsets_at
from horolog.client.segments.segments import bytes_before
from horolog.client.segments.segments_look import TIMES_AT_ONCE, HttpAccess, NoSegments, look

if TYPE_CHECKING:
    from horolog.client.admin.admin import Admin
    from horolog.client.segments.retention import PartitionFacts
    from horolog.client.segments.segments import PartitionSegments
    from horolog.client.values.types import TopicPartition
    from horolog.client.wire.cluster_view import TopicView

DAYS_AT_MOST = TIMES_AT_ONCE - 1
_MS = timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_MS, _LAST_MS = -62_000_000_000_000, 253_000_000_000_000


class Day(NamedTuple):
    """From one midnight to the next; before the first shown day, and after the last, one end is None."""

    from_ms: int | None
    until_ms: int | None
    records: int
    size_bytes: int | None


class Days(NamedTuple):
    days: tuple[Day, ...]
    why: str | None
    """The reason why bytes are estimated; None: they are exact, from the files."""


def midnights(first_ms: int, last_ms: int, zone: tzinfo, at_most: int) -> list[int]:
    """The borders of the days from one time to another; only the last days if there are too many."""
    first_ms, last_ms = (min(max(one, _FIRST_MS), _LAST_MS) for one in (first_ms, last_ms))
    day = _local_day(last_ms, zone)
    borders = [_ms(day + timedelta(days=1), zone)]
    while len(borders) <= at_most:
        borders.append(_ms(day, zone))
        if borders[-1] <= first_ms:
            break
        day -= timedelta(days=1)
    return borders[::-1]


def _local_day(time_ms: int, zone: tzinfo) -> datetime:
    return (_EPOCH + time_ms * _MS).astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)


def _ms(local: datetime, zone: tzinfo) -> int:
    return (local.replace(tzinfo=zone) - _EPOCH) // _MS


async def days_of(
    admin: "Admin",
    topic: "TopicView",
    facts: "Mapping[TopicPartition, PartitionFacts]",
    zone: tzinfo,
    *,
    now_ms: int,
    http: HttpAccess,
    at_most: int,
) -> Days:
    """The last `at_most` days up to the largest time, or up to now if that lies in the future."""
    span = span_of(facts.values(), now_ms)
    if span is None:
        return Days((), None)
    borders = midnights(*span, zone, min(at_most, DAYS_AT_MOST))
    offsets = await offsets_at(admin.client, list(facts), borders)
    segments, why = None, None
    try:
        segments = await look(admin, topic, http, partitions=sorted(one.partition for one in facts), times=borders)
        if not segments.covers(one.partition for one in facts):
            segments, why = None, "not every partition reports its segments"
    except NoSegments as error:
        why = str(error)
    told = {} if segments is None else segments.partitions
    parts = [parts_of(facts[one], offsets[one], told.get(one.partition)) for one in facts]
    return Days(tuple(days_in(borders, parts)), why)


def span_of(facts: "Iterable[PartitionFacts]", now_ms: int) -> tuple[int, int] | None:
    """The first time and the largest, or now if that lies in the future; None if no record has a time."""
    known = list(facts)
    firsts = [one.first_ms for one in known if one.first_ms is not None]
    lasts = [one.largest_ms for one in known if one.largest_ms is not None]
    if not firsts:
        return None
    first, last = min(firsts), max(lasts, default=now_ms)
    return first, now_ms if first <= now_ms < last else last


def parts_of(
    facts: "PartitionFacts", offsets: Sequence[int], told: "PartitionSegments | None"
) -> list[tuple[int, float | None]]:
    """(records, bytes) before the first border, between each two, and after the last."""
    places = [facts.first_offset, *(max(one, facts.first_offset) for one in offsets), facts.end_offset]
    counts = [max(0, after - before) for before, after in pairwise(places)]
    if told is None:
        mean = None if facts.size_bytes is None else facts.size_bytes / facts.records if facts.records else 0.0
        return [(one, None if mean is None else one * mean) for one in counts]
    at = [0.0, *bytes_before(told.at, offsets), float(told.size_bytes)]
    return [(count, after - before) for count, (before, after) in zip(counts, pairwise(at), strict=True)]


def days_in(borders: Sequence[int], partitions: Sequence[Sequence[tuple[int, float | None]]]) -> list[Day]:
    """Of all partitions together."""
    found = []
    for number, (since, until) in enumerate(pairwise([None, *borders, None])):
        parts = [one[number] for one in partitions]
        sizes = [size for _, size in parts if size is not None]
        records = sum(count for count, _ in parts)
        if records or (since is not None and until is not None):
            found.append(Day(since, until, records, round(sum(sizes)) if len(sizes) == len(parts) else None))
    return found
