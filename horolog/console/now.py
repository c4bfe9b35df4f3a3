"""The page Now: the cluster, its topics with their facts, and the current troubles.

10,000 topics are filtered and sorted by facts known of all of them (names, partitions, bytes); other facts are requested only
for the topics of one page.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.responses import Response

from horolog.client.values.types import TopicPartition
from horolog.console.blocked import blocked_of
from horolog.console.facts import TopicFacts, facts_of, log_dirs_of, sizes_in
from horolog.console.recent import view_of
from horolog.console.rendering import size, span
from horolog.console.visits import Visit

if TYPE_CHECKING:
    from horolog.client.admin.admin_cluster import LogDir
    from horolog.client.wire.cluster_view import ClusterView, TopicView

ROWS = 50
PLACES_AT_MOST = 1000
"""How many partitions are examined for one page."""
FREE_AT_LEAST = 0.1
NAMED = 5
SORTS = ("name", "size", "partitions")


class Trouble(NamedTuple):
    """A trouble: its severity ("bad", "warn"), what it is, and where to look."""

    kind: str
    sentence: str
    topic: str = ""


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
    troubles = [
        *of_partitions(view),
        *of_folders(folders),
        *of_certificates(visit.client.channels.certificates(), visit.now_ms / 1000),
        *(Trouble("warn", sentence, name) for name, sentence in blocked),
        *of_times([one for one in facts.values() if one.name not in dict(blocked)], visit.now_ms),
    ]
    return {
        "view": view,
        "listing": listing,
        "facts": facts,
        "left_out": max(0, len(places) - PLACES_AT_MOST),
        "troubles": troubles,
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


# -- troubles


def of_partitions(view: "ClusterView") -> list[Trouble]:
    from horolog.client.wire.troubles import offline_partitions

    found = []
    offline = offline_partitions(view)
    if offline:
        found.append(Trouble("bad", f"{len(offline)} partitions are offline: {_named(offline)}"))
    behind = [
        f"{name}-{index}"
        for name, topic in view.topics.items()
        for index, one in topic.partitions.items()
        if len(one.in_sync) < len(one.replicas) and not one.error_code
    ]
    if behind:
        found.append(Trouble("warn", f"{len(behind)} partitions have replicas that are not in sync: {_named(behind)}"))
    return found


def of_folders(folders: "Sequence[LogDir] | None") -> list[Trouble]:
    found = []
    for one in folders or ():
        where = f"{one.path} of broker {one.node_id}"
        if one.error_code:
            found.append(Trouble("bad", f"{where} is offline"))
        elif one.total_bytes > 0 and 0 <= one.usable_bytes < one.total_bytes * FREE_AT_LEAST:
            share = 100 * one.usable_bytes / one.total_bytes
            found.append(
                Trouble("warn", f"the disk of {where} is nearly full: {size(one.usable_bytes)} ({share:.0f} %) left")
            )
    return found


def of_certificates(certificates: dict[str, bytes], now_s: float) -> list[Trouble]:
    if not certificates:
        return []
    from horolog.client.wire.troubles import expiry_warnings

    return [Trouble("warn", warning) for warning in expiry_warnings(certificates, now_s)]


def of_times(topics: Sequence[TopicFacts], now_ms: int) -> list[Trouble]:
    """Troubles with times: a record from the future keeps its segment, and all after it, from expiring."""
    return [
        Trouble(
            "warn",
            f"{one.name} has a record {span(one.last_ms - now_ms)} ahead of now: retention by time waits for it",
            one.name,
        )
        for one in topics
        if one.last_ms is not None and one.last_ms > now_ms + 60_000
    ]


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
