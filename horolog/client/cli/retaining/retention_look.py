"""Asks a broker for the facts of retention: settings, ends, sizes, and lookups at the decisive times; no record is read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from horolog.client.segments.retention import (
    KEYS,
    NO_CLEANER,
    PartitionFacts,
    Rules,
    holds_of,
    left_by_lookup,
    next_by_bounds,
    unknown_of,
)
from horolog.client.values.errors import KafkaError
from horolog.client.values.types import EARLIEST, LATEST, Found, TopicPartition
from horolog.client.wire.offsets import LARGEST_TIMESTAMP, ends, list_offsets
from horolog.protocol.apis import ApiKey

if TYPE_CHECKING:
    from horolog.client.admin.admin import Admin
    from horolog.client.segments.segments import TopicSegments

_LARGEST_FROM = 7


@dataclass(frozen=True, slots=True)
class TopicFacts:
    topic: str
    source: str
    """A broker, or files."""
    rules: Rules
    other_rules: Rules | None
    """Those that were asked about."""
    settings: Mapping[str, str | None]
    partitions: tuple[PartitionFacts, ...]


async def look(
    admin: "Admin",
    partitions: Sequence[TopicPartition],
    now_ms: int,
    other: Mapping[str, str] | None = None,
    segments: "TopicSegments | None" = None,
) -> TopicFacts:
    """The facts of some partitions of one topic; with `other`, also what these settings would leave.

    They are bounds, and exact for partitions whose `segments` are given.
    """
    topic = partitions[0].topic
    serves = (await admin.client.versions()).serves
    settings: dict[str, str | None] = {}
    if serves(ApiKey.DESCRIBE_CONFIGS, 0):
        described = await admin.describe_configs("topic", topic, KEYS)
        settings = {key: config.value for key, config in described.items()}
    rules = Rules.of(settings)
    other_rules = Rules.of({**settings, **other}) if other else None
    facts = await measure(admin, partitions)
    edges = await _edges(admin, partitions, rules, now_ms)
    other_edges = await _edges(admin, partitions, other_rules, now_ms) if other_rules is not None else {}
    for place, each in facts.items():
        if segments is not None and place.partition in segments.partitions and settings:
            _exact(each, segments, rules, settings, other)
            continue
        edge = edges.get(place)
        each.next = next_by_bounds(rules, each, each.end_offset if edge is None else edge.offset, now_ms)
        each.held_by = holds_of(rules, each, now_ms)
        each.unknown = unknown_of(rules, each)
        if other_rules is not None:
            found = other_edges.get(place)
            each.left = left_by_lookup(
                other_rules,
                each,
                None if found is None else found.offset,
                None if found is None else found.timestamp_ms,
            )
    return TopicFacts(topic, "broker", rules, other_rules, settings, tuple(facts.values()))


def _exact(
    facts: PartitionFacts,
    segments: "TopicSegments",
    rules: Rules,
    settings: Mapping[str, str | None],
    other: Mapping[str, str] | None,
) -> None:
    from horolog.client.cli.retaining.segment_retention import config_of, take

    changed = config_of({**settings, **other}) if other else None
    take(facts, segments.partitions[facts.partition], config_of(settings), changed, segments.now_ms)
    facts.held_by = [*holds_of(rules, facts, segments.now_ms), *facts.held_by]
    if rules.compacts:
        facts.unknown = [NO_CLEANER]


async def measure(admin: "Admin", partitions: Sequence[TopicPartition]) -> dict[TopicPartition, PartitionFacts]:
    """Ends, sizes and times, as far as the broker shows them."""
    client = admin.client
    serves = (await client.versions()).serves
    first = await ends(client, dict.fromkeys(partitions, EARLIEST))
    last = await ends(client, dict.fromkeys(partitions, LATEST))
    oldest = await _found(admin, dict.fromkeys(partitions, 0)) if serves(ApiKey.LIST_OFFSETS, 1) else {}
    latest: dict[TopicPartition, Found | None] = {}
    if serves(ApiKey.LIST_OFFSETS, _LARGEST_FROM):
        latest = await _found(admin, dict.fromkeys(partitions, LARGEST_TIMESTAMP))
    sizes = await _sizes(admin) if serves(ApiKey.DESCRIBE_LOG_DIRS, 0) else {}
    return {
        place: PartitionFacts(
            place.partition,
            first[place],
            last[place],
            sizes.get(place),
            _time_of(oldest.get(place)),
            _time_of(latest.get(place)),
            _offset_of(latest.get(place)),
        )
        for place in partitions
    }


async def _found(admin: "Admin", times: Mapping[TopicPartition, int]) -> dict[TopicPartition, Found | None]:
    return await list_offsets(admin.client, times)


async def _sizes(admin: "Admin") -> dict[TopicPartition, int]:
    """Empty if the client may not see the sizes."""
    try:
        folders = await admin.log_dirs()
    except KafkaError:
        return {}
    return {place: size for folder in folders for place, size in folder.sizes.items()}


async def _edges(
    admin: "Admin", partitions: Sequence[TopicPartition], rules: Rules, now_ms: int
) -> dict[TopicPartition, Found | None]:
    """The first record of each partition that is too young for the rules to delete."""
    if not rules.deletes or rules.retention_ms < 0:
        return {}
    return await _found(admin, dict.fromkeys(partitions, max(0, now_ms - rules.retention_ms)))


def _time_of(found: Found | None) -> int | None:
    return found.timestamp_ms if found is not None and found.timestamp_ms >= 0 else None


def _offset_of(found: Found | None) -> int | None:
    return None if found is None or found.timestamp_ms < 0 else found.offset
