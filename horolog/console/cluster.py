"""The page Cluster: its brokers, who leads what, and the object store that they share, with its bill."""

from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.responses import Response

from horolog.base.readable import ranges
from horolog.client.values.errors import KafkaError
from horolog.console.brokers import SHOWN_AT_MOST, Hour, hour_of
from horolog.console.now import choose
from horolog.console.pulse import BrokerAnswer
from horolog.console.recent import recent, view_of
from horolog.console.sparklines import STORE_FIGURES, lines_of
from horolog.console.store_scrapes import StoreScrape, month_of, together
from horolog.console.visits import Visit

if TYPE_CHECKING:
    from horolog.client.wire.client import Client
    from horolog.client.wire.cluster_view import ClusterView, PartitionView, TopicView

STORE = "horolog.store"
SETTING_SECONDS = 30.0
NO_LEADER = -1


class BrokerState(NamedTuple):
    number: int
    address: str
    rack: str
    is_controller: bool
    leads: int
    replicas: int
    answer: BrokerAnswer | None
    """None: its HTTP port is not known."""

    @property
    def started_s(self) -> float | None:
        return None if self.answer is None or self.answer.scrape is None else self.answer.scrape.started_s

    @property
    def store(self) -> StoreScrape | None:
        return None if self.answer is None or self.answer.scrape is None else self.answer.scrape.store


class LedPartitions(NamedTuple):
    """The partitions of a topic that one broker leads."""

    broker: int
    partitions: str


class TopicLeaders(NamedTuple):
    name: str
    partitions: int
    led: tuple[LedPartitions, ...]
    without: str
    """The partitions that have no leader."""


async def page(visit: Visit) -> Response:
    template = "cluster_part.html" if "hx-request" in visit.request.headers else "cluster.html"
    return visit.page(template, **await data_of(visit))


async def data_of(visit: Visit) -> dict[str, Any]:
    """The values of the page."""
    view = await view_of(visit.client)
    hour = await hour_of(visit)
    brokers = brokers_in(view, hour)
    listing = choose(
        [one for one in view.topics.values() if visit.text("internal") or not one.internal],
        visit.text("filter"),
        "name",
        visit.number("page", 1, 1),
        {},
    )
    answers = [one for one in hour.answers if one.scrape is not None]
    stores = [one.scrape.store for one in answers if one.scrape is not None and one.scrape.store is not None]
    store = together(stores) if len(stores) == len(hour.answers) else None
    return {
        "view": view,
        "brokers": brokers[:SHOWN_AT_MOST],
        "left_out": max(0, len(brokers) - SHOWN_AT_MOST),
        "racks": len({one.rack for one in brokers if one.rack}),
        "answers": answers,
        "why": hour.why,
        "listing": listing,
        "leaders": [leaders_of_topic(topic, view) for topic in listing.topics],
        "leaderless": sum(
            _has_no_leader(one, view) for topic in view.topics.values() for one in topic.partitions.values()
        ),
        "store": store,
        "url": await store_url_of(visit.client),
        "month": month_of(one.totals.store_dollars for one in hour.samples),
        "lines": lines_of(hour.samples, visit.now_ms, STORE_FIGURES) if store is not None else [],
        "filter": visit.text("filter"),
        "internal": visit.text("internal"),
    }


def brokers_in(view: "ClusterView", hour: Hour) -> list[BrokerState]:
    """All brokers, in the order of their numbers."""
    places = [one for topic in view.topics.values() for one in topic.partitions.values()]
    leads: dict[int, int] = {}
    replicas: dict[int, int] = {}
    for one in places:
        leads[one.leader] = leads.get(one.leader, 0) + 1
        for number in one.replicas:
            replicas[number] = replicas.get(number, 0) + 1
    return [
        BrokerState(
            number,
            f"{node.host}:{node.port}",
            node.rack or "",
            number == view.controller_id,
            leads.get(number, 0),
            replicas.get(number, 0),
            hour.answer_of(number),
        )
        for number, node in sorted(view.nodes.items())
    ]


def leaders_of_topic(topic: "TopicView", view: "ClusterView") -> TopicLeaders:
    """Who leads which partitions of a topic."""
    led: dict[int, list[int]] = {}
    for number in topic.numbers:
        leader = topic.partitions[number].leader
        led.setdefault(leader if leader in view.nodes else NO_LEADER, []).append(number)
    without = led.pop(NO_LEADER, [])
    found = tuple(LedPartitions(broker, ranges(numbers)) for broker, numbers in sorted(led.items()))
    return TopicLeaders(topic.name, len(topic.numbers), found, ranges(without))


def _has_no_leader(partition: "PartitionView", view: "ClusterView") -> bool:
    return partition.leader not in view.nodes


async def store_url_of(client: "Client") -> str | None:
    """The store as the broker's setting names it; None without one, on Kafka, and for users who may not see settings."""

    async def ask() -> str | None:
        from horolog.client.admin.admin_configs import ConfigAdmin

        try:
            found = await ConfigAdmin(client).describe_configs("broker", str(min(client.view.nodes)), (STORE,))
        except (KafkaError, ValueError):
            return None
        return found[STORE].value or None if STORE in found else None

    return await recent(client).get("store", SETTING_SECONDS, ask)
