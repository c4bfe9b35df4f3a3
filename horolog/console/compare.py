"""The page that compares two topics, or one topic of two clusters, at the same time: counts by bucket, and where they differ.

For use after mirroring or a failover: both sides are asked for the offsets at the same borders, and no record is read.
"""

import asyncio
from typing import Any, NamedTuple

from starlette.responses import Response

from horolog.client.charting.buckets import Timeline, bucket_length, frame
from horolog.client.charting.lookups import offsets_at, time_range
from horolog.client.values.types import TopicPartition
from horolog.console.now import leaders_of
from horolog.console.options import Cluster
from horolog.console.timelines import LAST_OF_CALENDAR_MS, PARTITIONS_AT_MOST
from horolog.console.visits import Refused, Visit, topic_of

MINUTE = 60_000
BUCKETS = 120
DIFFERENCES_SHOWN = 60


class Side(NamedTuple):
    cluster: Cluster
    topic: str
    places: list[TopicPartition]
    times: tuple[int, int] | None

    @property
    def name(self) -> str:
        return f"{self.topic} at {self.cluster.name}"


class Difference(NamedTuple):
    start_ms: int
    one: int
    other: int


async def page(visit: Visit) -> Response:
    first, second = visit.text("a"), visit.text("b") or visit.text("a")
    one_cluster = visit.cluster_named(visit.text("at"))
    other_cluster = visit.cluster_named(visit.text("bt") or visit.text("at"))
    given = {"a": visit.typed("a"), "b": visit.typed("b"), "at": one_cluster.name, "bt": other_cluster.name}
    given |= {"since": visit.typed("from"), "until": visit.typed("until")}
    if not first:
        return await _asking(visit, given)
    if (one_cluster, first) == (other_cluster, second):
        return await _asking(visit, given, "name another topic, or another cluster")
    with visit.reading("a", "b", "from", "until"):
        one, other = await asyncio.gather(
            side(visit, one_cluster, first, "a"), side(visit, other_cluster, second, "b" if visit.text("b") else "a")
        )
        timeline = framed(visit, [side.times for side in (one, other) if side.times])
    return await (_asking(visit, given) if visit.wrong else _compared(visit, given, one, other, timeline))


async def _asking(visit: Visit, given: dict[str, str], said: str = "") -> Response:
    """The page with only its form."""
    names = sorted((await visit.client_of(visit.cluster_named(given["at"])).metadata()).topics)
    return visit.page("compare.html", given=given, one=None, names=names[:2000], said=said)


async def _compared(visit: Visit, given: dict[str, str], one: "Side", other: "Side", timeline: Timeline) -> Response:
    counts = await asyncio.gather(counted(visit, one, timeline), counted(visit, other, timeline))
    differences = differences_of(timeline, *counts)
    return visit.page(
        "compare.html",
        given=given,
        one=one,
        other=other,
        timeline=timeline,
        until_ms=timeline.border(len(timeline.counts)),
        totals=[sum(found) for found in counts],
        differences=differences[:DIFFERENCES_SHOWN],
        left_out=max(0, len(differences) - DIFFERENCES_SHOWN),
        chart=chart_data(timeline, *counts),
        names=[],
        said="",
    )


async def side(visit: Visit, cluster: Cluster, name: str, field: str) -> Side:
    client = visit.client_of(cluster)
    topic = await topic_of(client, name, field)
    leaders = leaders_of(client.view)
    places = [place for index in topic.numbers if (place := TopicPartition(name, index)) in leaders]
    if len(places) > PARTITIONS_AT_MOST:
        raise Refused(
            f"{name} has {len(places)} partitions; the maximum for a comparison is {PARTITIONS_AT_MOST}", field=field
        )
    return Side(cluster, name, places, await time_range(client, places) if places else None)


def framed(visit: Visit, times: list[tuple[int, int]]) -> Timeline:
    """The timeline, by the minute if possible: the span of both sides, up to now, unless the address gives another."""
    since, until = visit.time("from"), visit.time("until")
    if not times and (since is None or until is None):
        raise Refused("neither side has a record with a time", 404, "a")
    low = since.ms if since else min(first for first, _ in times)
    high = until.ms if until else min(max(last for _, last in times), max(visit.now_ms, low)) + 1
    if high <= low:
        raise Refused("the end of the range is not later than its start", field="until")
    if not -LAST_OF_CALENDAR_MS <= low < high <= LAST_OF_CALENDAR_MS:
        raise Refused("the range is beyond the calendar", field="until")
    length = bucket_length(high - low, BUCKETS - 1)
    return frame(low, high - 1, MINUTE if MINUTE // 4 <= length < MINUTE else length, visit.zone)


async def counted(visit: Visit, side: Side, timeline: Timeline) -> list[int]:
    """Records of each bucket."""
    borders = [timeline.border(number) for number in range(len(timeline.counts) + 1)]
    found = await offsets_at(visit.client_of(side.cluster), side.places, borders) if side.places else {}
    return [
        sum(max(0, offsets[number + 1] - offsets[number]) for offsets in found.values())
        for number in range(len(timeline.counts))
    ]


def differences_of(timeline: Timeline, one: list[int], other: list[int]) -> list[Difference]:
    return [
        Difference(timeline.border(number), here, there)
        for number, (here, there) in enumerate(zip(one, other, strict=True))
        if here != there
    ]


def chart_data(timeline: Timeline, one: list[int], other: list[int]) -> dict[str, Any]:
    return {"start": timeline.start_ms, "bucket": timeline.bucket_ms, "one": one, "other": other}
