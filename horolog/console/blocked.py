"""Finds topics whose retention waits for a record from the future: which partition, which record, and until when."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from horolog.client.segments.retention import KEYS, PartitionFacts, Rules, waits_for_future
from horolog.client.values.errors import KafkaError
from horolog.console.facts import TopicFacts
from horolog.console.recent import recent
from horolog.protocol.records.timestamps import FUTURE_TOLERANCE_MS

if TYPE_CHECKING:
    from horolog.client.wire.client import Client

TOPICS_AT_MOST = 10
SETTINGS_SECONDS = 30.0


async def rules_of(client: "Client", name: str) -> Rules | None:
    """The settings of a topic that delete its records; None if the broker does not show them."""

    async def ask() -> Rules | None:
        from horolog.client.admin.admin_configs import ConfigAdmin

        try:
            found = await ConfigAdmin(client).describe_configs("topic", name, KEYS)
            return Rules.of({key: config.value for key, config in found.items()})
        except (KafkaError, ValueError):
            return None

    return await recent(client).get(("rules", name), SETTINGS_SECONDS, ask)


async def blocked_of(client: "Client", topics: Sequence[TopicFacts], now_ms: int) -> list[tuple[str, str]]:
    """(topic, sentence) for each partition that waits."""
    found = []
    suspects = [one for one in topics if one.last_ms is not None and one.last_ms > now_ms + FUTURE_TOLERANCE_MS]
    for topic in suspects[:TOPICS_AT_MOST]:
        rules = await rules_of(client, topic.name)
        if rules is not None:
            found += [(topic.name, sentence) for sentence in sentences(topic, rules, now_ms)]
    return found


def sentences(topic: TopicFacts, rules: Rules, now_ms: int) -> list[str]:
    found = []
    for one in topic.partitions:
        facts = PartitionFacts(
            one.place.partition,
            one.start or 0,
            one.end or 0,
            one.size_bytes,
            one.first_ms,
            one.last_ms,
            one.last_offset,
        )
        waits = waits_for_future(rules, facts, now_ms)
        if waits is not None:
            found.append(f"retention of {topic.name} is blocked, partition {one.place.partition}: {waits}")
    return found
