"""The page Now: the cluster, its topics with their facts, and the current troubles.

10,000 topics are filtered and sorted by facts known of all of them (names, partitions, bytes); other facts are requested only
for the topics of one page.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from horolog.client.values.types import TopicPartition
from horolog.console.blocked import blocked_of
from horolog.console.brokers import brokers_of, hour_of
from horolog.console.facts import facts_of, log_dirs_of, sizes_in
from horolog.console.recent import view_of
from horolog.console.sparklines import lines_of
from horolog.console.troubles import (
    BAD,
    of_blocked,
    of_brokers,
    of_certificates,
    of_folders,
    of_partitions,
    of_times,
    unchecked,
    worst_first,
)
from horolog.console.visits import Visit

if TYPE_CHECKING:
    from horolog.client.wire.cluster_view import ClusterView, TopicView

ROWS = 50
PLACES_AT_MOST = 1000
"""How many partitions are examined for one page."""
SORTS = ("name", "size", "partitions")


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of the filtered topics."""

    topics: "tuple[TopicView, ...]"
    number: int
    pages: int
    found: int
    all: int


async def page(visit: Visit) -> Response:
    template = "now_part.html" if "hx-request" in visit.request.headers else "now.html"
    return visit.page(template, **await data_of(visit))


async def data_of(visit: Visit) -> dict[str, Any]:
    """The values of the page."""
    view = await view_of(visit.client)
    folders = await log_dirs_of(visit.client)
    leaders = leaders_of(view)
    sizes = sizes_in(folders, leaders)
    sort = visit.text("sort", "name")
    listing = choose(
        [one for one in view.topics.values() if visit.text("internal") or not one.internal],
        visit.text("filter"),
        sort if sort in SORTS else "name",
        visit.number("page", 1, 1),
        by_topic(sizes),
    )
    places = [
        place
        for topic in listing.topics
        for index in topic.numbers
        if (place := TopicPartition(topic.name, index)) in leaders
    ]
    facts = await facts_of(visit.client, places[:PLACES_AT_MOST], sizes, visit.now_ms)
    blocked = await blocked_of(visit.client, list(facts.values()), visit.now_ms)
    hour = await hour_of(visit)
    is_heard = bool(hour.answers) and all(one.ready is not None for one in hour.answers)
    # Brokers that report their readiness warn about disks and certificates themselves.
    seen_by_client = of_folders(folders) + of_certificates(visit.client.channels.certificates(), visit.now_ms / 1000)
    troubles = [
        *of_brokers(hour.answers),
        *of_partitions(view),
        *(one for one in seen_by_client if one.kind == BAD or not is_heard),
        *of_blocked(blocked),
        *of_times([one for one in facts.values() if one.name not in dict(blocked)], visit.now_ms),
    ]
    left_out = max(0, len(places) - PLACES_AT_MOST)
    return {
        "view": view,
        "listing": listing,
        "facts": facts,
        "left_out": left_out,
        "troubles": worst_first(troubles),
        "unchecked": unchecked(
            folders, hour.answers, hour.why, left_out=left_out > 0 or len(listing.topics) < listing.all
        ),
        "lines": lines_of(hour.samples, visit.now_ms),
        "brokers": brokers_of(view, leaders, hour.answers),
        "folders": folders,
        "total_bytes": None if sizes is None else sum(sizes.values()),
        "partitions": len(leaders),
        "filter": visit.text("filter"),
        "sort": sort,
        "internal": visit.text("internal"),
    }


def leaders_of(view: "ClusterView") -> dict[TopicPartition, int]:
    """The leader of each partition that has one."""
    return {
        TopicPartition(name, index): partition.leader
        for name, topic in view.topics.items()
        for index, partition in topic.partitions.items()
        if partition.leader in view.nodes and not partition.error_code
    }


async def served_places(visit: Visit, name: str) -> list[TopicPartition]:
    """The partitions of a topic that have a leader."""
    topic = await visit.topic(name)
    leaders = leaders_of(visit.client.view)
    return [place for index in topic.numbers if (place := TopicPartition(name, index)) in leaders]


def by_topic(sizes: dict[TopicPartition, int] | None) -> dict[str, int]:
    found: dict[str, int] = {}
    for place, bytes_there in (sizes or {}).items():
        found[place.topic] = found.get(place.topic, 0) + bytes_there
    return found


def choose(topics: "Sequence[TopicView]", text: str, sort: str, number: int, sizes: dict[str, int]) -> Listing:
    """The page of this number, or the last one."""
    wanted = text.lower()
    found = [one for one in topics if wanted in one.name.lower()]
    found.sort(key=lambda one: one.name)
    if sort == "size":
        found.sort(key=lambda one: -sizes.get(one.name, 0))
    elif sort == "partitions":
        found.sort(key=lambda one: -len(one.partitions))
    pages = max(1, -(-len(found) // ROWS))
    number = min(number, pages)
    return Listing(tuple(found[(number - 1) * ROWS : number * ROWS]), number, pages, len(found), len(topics))
