"""What the job `mirror` checks before it copies: whether the topic on B can hold the records, and where each partition continues.

A topic that B lacks is created as on A. An existing one must have enough partitions, keep CreateTime, and be no stricter than A on
age, size and time for the records to be copied.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from horolog.client.admin.admin import Admin
from horolog.client.values.errors import UnsupportedVersion
from horolog.client.values.types import EARLIEST, LATEST, TopicPartition
from horolog.client.wire.offsets import LARGEST_TIMESTAMP, ends, list_offsets
from horolog.commands.errors import CommandError
from horolog.commands.online.connecting import why_no_topic
from horolog.pipeline.base.topic_ids import show_topic_id
from horolog.pipeline.jobs.mirror_copy import Link, Progress
from horolog.pipeline.jobs.topic_rules import UNLIMITED, TopicRules, rules_of

if TYPE_CHECKING:
    from horolog.client.wire.client import Client

COMMITTED = 1
_OWN = 1  # the source of a setting that the topic itself has
_NOT_TAKEN = frozenset(
    {
        "message.format.version",  # of the brokers of A
        "leader.replication.throttled.replicas",
        "follower.replication.throttled.replicas",
    }
)
_TIME_TYPE = "message.timestamp.type"
_LONGEST = 2**63 - 1
_NO_RULES = TopicRules(UNLIMITED, UNLIMITED, _LONGEST, _LONGEST, log_append_time=False, deletes=False, partitions=0)


class MirrorRefused(CommandError):
    """The mirror would lose something, or send something twice; nothing was sent."""


@dataclass(frozen=True, slots=True)
class PartitionBounds:
    """Where a partition begins and ends on A, for readers of committed records, and whether B has had records in it."""

    first: int
    last: int
    begin: int
    """Where copying begins if nothing has been copied: the start, or the first record at or after --since."""
    has_records_on_target: bool
    topic_id: str | None = None
    """Of the topic on A, where it has one."""


async def cluster_of(client: "Client", address: str) -> str:
    """The cluster's id; the address where it has none (before 0.10.1)."""
    view = await client.metadata([])
    return view.cluster_id or address.replace(":", "-")


async def partitions_on(client: "Client", topic: str) -> list[int] | None:
    known = (await client.metadata()).topics.get(topic)
    return None if known is None or known.error_code else known.numbers


async def check_places(source: "Client", target: "Client", topic: str) -> bool:
    """Whether B has the topic; raises if A lacks it, if both are one cluster, or if B has fewer partitions."""
    on_source, on_target = await partitions_on(source, topic), await partitions_on(target, topic)
    if on_source is None:
        raise await why_no_topic(source, topic)
    if source.view.cluster_id is not None and source.view.cluster_id == target.view.cluster_id:
        raise MirrorRefused(
            f"both addresses belong to the cluster {source.view.cluster_id}", "a topic cannot be mirrored to itself"
        )
    if on_target is not None and len(on_target) < len(on_source):
        raise MirrorRefused(
            f"topic {topic} has {len(on_source)} partitions, and {len(on_target)} on cluster B",
            "a mirror keeps partitions: create as many on cluster B",
        )
    return on_target is not None


async def own_settings(source: Admin, topic: str) -> dict[str, str | None]:
    """The topic's own settings. Times that A has put on records are kept on B, which therefore must not put its own."""
    try:
        configs = await source.describe_configs("topic", topic)
    except UnsupportedVersion:  # before 0.11
        return {}
    own = {name: config.value for name, config in configs.items() if config.source == _OWN and not config.sensitive}
    return {
        name: value
        for name, value in own.items()
        if name not in _NOT_TAKEN and not (name == _TIME_TYPE and value == "LogAppendTime")
    }


async def rules_or_none(admin: Admin, topic: str) -> TopicRules:
    """No rules if the broker is too old to report them."""
    try:
        return await rules_of(admin, topic)
    except UnsupportedVersion:
        return _NO_RULES


def stricter(target: TopicRules, source: TopicRules) -> TopicRules:
    """B's rules, without those on age and size that A has, too: A drops the same records; pure."""
    age, size = target.retention_ms, target.retention_bytes
    if source.deletes and source.retention_ms != UNLIMITED and source.retention_ms <= age:
        age = UNLIMITED
    if source.deletes and source.retention_bytes != UNLIMITED and source.retention_bytes <= size:
        size = UNLIMITED
    return replace(target, retention_ms=age, retention_bytes=size)


async def binding(
    rules: TopicRules, source: "Client", places: Mapping[TopicPartition, tuple[int, int]], now_ms: int
) -> TopicRules:
    """The rules without the bound on future times, if the largest time of the whole topic is below it: A knows that at once."""
    if rules.after_max_ms == _LONGEST or not places:
        return rules
    try:
        largest = await list_offsets(source, dict.fromkeys(places, LARGEST_TIMESTAMP))
    except UnsupportedVersion:
        return rules
    most_ms = max((found.timestamp_ms for found in largest.values() if found is not None), default=-1)
    return replace(rules, after_max_ms=_LONGEST) if most_ms - now_ms <= rules.after_max_ms else rules


def can_lose(rules: TopicRules) -> bool:
    """Whether only a look at the records shows if something would be lost; pure."""
    limited = rules.deletes and (rules.retention_ms != UNLIMITED or rules.retention_bytes != UNLIMITED)
    return limited or rules.log_append_time or min(rules.before_max_ms, rules.after_max_ms) != _LONGEST


# -- where to continue


async def bounds_of(
    source: "Client", target: "Client", topic: str, since_ms: int | None
) -> dict[TopicPartition, PartitionBounds]:
    """Of every partition that A has; B need not have the topic."""
    places = [TopicPartition(topic, index) for index in await partitions_on(source, topic) or ()]
    first = await ends(source, dict.fromkeys(places, EARLIEST), COMMITTED)
    last = await ends(source, dict.fromkeys(places, LATEST), COMMITTED)
    begin = dict(first)
    if since_ms is not None:
        found = await list_offsets(source, dict.fromkeys(places, since_ms), isolation=COMMITTED)
        begin = {place: last[place] if answer is None else answer.offset for place, answer in found.items()}
    topic_id = show_topic_id(source.view.topics[topic].id) if places else None
    there = set(await partitions_on(target, topic) or ())
    on_target = [place for place in places if place.partition in there]
    low = await ends(target, dict.fromkeys(on_target, EARLIEST))
    high = await ends(target, dict.fromkeys(on_target, LATEST))
    return {
        place: PartitionBounds(
            first[place],
            last[place],
            min(begin[place], last[place]),
            high.get(place, 0) > low.get(place, 0),
            topic_id,
        )
        for place in places
    }


def from_first(
    bounds: Mapping[TopicPartition, PartitionBounds], known: Collection[TopicPartition]
) -> dict[TopicPartition, PartitionBounds]:
    """If a part of the topic is mirrored already, partitions added on A since then are copied from their start; pure.

    `--since` may be "an hour ago", another time at each run: records between two runs would be left out.
    """
    return {
        place: replace(each, begin=each.first) if known and place not in known else each
        for place, each in bounds.items()
    }


async def noted(
    target: Admin, link: Link, places: "Mapping[TopicPartition, PartitionBounds]"
) -> dict[TopicPartition, Progress]:
    """How far the copy has come according to B, without open transactions."""
    found = await target.group_offsets(link.group, places)
    return {place: Progress.of(committed) for place, committed in found.items() if committed is not None}


def go_on(place: TopicPartition, have: Progress | None, bounds: PartitionBounds, *, force: bool) -> Progress:
    """Where the partition continues, or MirrorRefused; pure."""
    if have is None:
        if bounds.has_records_on_target and not force:
            raise MirrorRefused(
                f"{place} has records on cluster B that no mirror has noted as its own",
                "use --force to copy after them; records that are there already would be duplicated",
            )
        return Progress(bounds.begin, bounds.begin, bounds.topic_id)
    if have.topic_id != bounds.topic_id and None not in {have.topic_id, bounds.topic_id}:
        if not force:
            raise MirrorRefused(
                f"{place} is mirrored up to {have.offset} of a topic that was deleted and recreated since:"
                f" its id was {have.topic_id}, and is {bounds.topic_id} now",
                "use --force to copy the new one from its start, after the records of the old one",
            )
        return Progress(bounds.first, bounds.first, bounds.topic_id)
    have = have._replace(topic_id=bounds.topic_id or have.topic_id)
    if have.offset > bounds.last:
        raise MirrorRefused(
            f"{place} is mirrored up to {have.offset}, but ends at {bounds.last}", "was the topic recreated?"
        )
    if have.offset < bounds.first:
        if not force:
            raise MirrorRefused(
                f"{place} is mirrored up to {have.offset}, but begins at {bounds.first} now:"
                f" {bounds.first - have.offset} offsets are gone",
                "use --force to continue with the rest",
            )
        return have._replace(offset=bounds.first)
    return have
