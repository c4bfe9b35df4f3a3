"""The page of a topic: its timeline from indexes alone, its segments, its settings with their sources, its partitions."""

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from starlette.responses import Response

from horolog.client.values.errors import KafkaError
from horolog.client.values.types import TopicPartition
from horolog.console.facts import WINDOWS, PartitionFacts, TopicFacts, facts_of, log_dirs_of, sizes_in
from horolog.console.now import leaders_of
from horolog.console.strips import strip_of
from horolog.console.timelines import Chart, chart_of, steps
from horolog.console.told import segments_of
from horolog.console.visits import Refused, Visit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from horolog.client.admin.admin_configs import Config
    from horolog.client.wire.client import Client
    from horolog.client.wire.cluster_view import TopicView

PARTITIONS_SHOWN = 200
GAPS_SHOWN = 3
RETENTION, POLICY = "retention.ms", "cleanup.policy"


async def page(visit: Visit) -> Response:
    from horolog.client.admin.admin_configs import SOURCES

    name = visit.text("name")
    topic = await visit.topic(name)
    leaders = leaders_of(visit.client.view)
    places = [place for index in topic.numbers if (place := TopicPartition(name, index)) in leaders]
    sizes = sizes_in(await log_dirs_of(visit.client), leaders)
    settings, facts = await asyncio.gather(
        settings_of(visit.client, name),
        facts_of(visit.client, places[:PARTITIONS_SHOWN], sizes, visit.now_ms, max(2, WINDOWS // max(len(places), 1))),
    )
    found = facts.get(name, TopicFacts(name, ()))
    picked = _picked(visit, topic)
    drawn = [one for one in places if picked is None or one.partition == picked]
    chart, understood = await _chart(visit, topic, drawn, mean_bytes(found))
    edge = retention_edge(settings, visit.now_ms)
    if chart is not None and edge is not None:
        chart.marks["retention"] = edge
    strip = None
    if chart is not None and chart.segments is not None:
        strip = strip_of(chart.segments, chart.timeline.start_ms, chart.until_ms, edge)
    return visit.page(
        "topic.html",
        topic=topic,
        picked=picked,
        strip=strip,
        facts=found,
        chart=chart,
        steps=None if chart is None else steps(chart),
        since=visit.typed("from"),
        until=visit.typed("until"),
        understood=understood,
        edge=edge,
        settings=settings,
        sources=SOURCES,
        without_leader=len(topic.partitions) - len(places),
        not_shown=max(0, len(topic.partitions) - PARTITIONS_SHOWN),
        gaps=[] if chart is None else chart.gaps()[:GAPS_SHOWN],
    )


async def _chart(
    visit: Visit, topic: "TopicView", places: "Sequence[TopicPartition]", bytes_of: dict[TopicPartition, float]
) -> tuple[Chart | None, list[str]]:
    """The timeline of the requested times, and how they were understood; of all times if they are invalid."""

    async def drawn(bounds: tuple[int | None, int | None]) -> Chart | None:
        ask = partial(segments_of, visit.client, visit.cluster, topic)
        return await chart_of(visit.client, places, bytes_of, bounds, visit.zone, visit.now_ms, ask=ask)

    chart, understood = None, []
    with visit.reading("from", "until"):
        since, until = visit.time("from"), visit.time("until")
        understood = [one.understood for one in (since, until) if one]
        chart = await drawn((since.ms if since else None, until.ms if until else None))
    return await drawn((None, None)) if visit.wrong else chart, understood


def _picked(visit: Visit, topic: "TopicView") -> int | None:
    """The chosen partition of the timeline; None for all."""
    if not visit.text("partition"):
        return None
    picked = visit.number("partition", 0)
    if picked not in topic.partitions:
        raise Refused(f"{topic.name} has no partition {picked}", 404)
    return picked


async def settings_of(client: "Client", name: str) -> "list[Config] | None":
    """The settings that were set, then the defaults; None if the broker does not show them to this user."""
    from horolog.client.admin.admin_configs import ConfigAdmin

    try:
        found = await ConfigAdmin(client).describe_configs("topic", name)
    except KafkaError:
        return None
    return sorted(found.values(), key=lambda one: (one.source, one.name))


def retention_edge(settings: "list[Config] | None", now_ms: int) -> int | None:
    """The time before which records may be deleted at any moment; None if nothing expires by age, or if unknown."""
    values = {one.name: one.value for one in settings or ()}
    try:
        kept_ms = int(values.get(RETENTION) or -1)
    except ValueError:
        return None
    return now_ms - kept_ms if kept_ms >= 0 and "delete" in (values.get(POLICY) or "") else None


def mean_bytes(facts: TopicFacts) -> dict[TopicPartition, float]:
    """The mean size of a partition's records, if known."""
    return {one.place: mean for one in facts.partitions if (mean := _mean(one)) is not None}


def _mean(one: PartitionFacts) -> float | None:
    if one.size_bytes is None or one.records is None:
        return None
    return one.size_bytes / one.records if one.records else 0.0
