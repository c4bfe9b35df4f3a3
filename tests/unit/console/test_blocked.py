"""A topic whose retention waits for a record of the future is named with its partition, the record and the end of the wait."""

from horolog import Client
from horolog.client.segments.retention import DAY_MS, Rules
from horolog.client.values.errors import KafkaError
from horolog.client.values.types import TopicPartition
from horolog.console.blocked import TOPICS_AT_MOST, blocked_of, rules_of, sentences
from horolog.console.facts import PartitionFacts, TopicFacts
from horolog.protocol.errors import ErrorCode
from tests.support.console_browser import shown, topic_with


def topic(*lasts, name="t"):
    parts = [PartitionFacts(TopicPartition(name, n), 0, 9, 0, last, 4) for n, last in enumerate(lasts)]
    return TopicFacts(name, tuple(parts))


def test_which_partition_and_which_record():
    (said,) = sentences(topic(5, 9 * DAY_MS, None), Rules.of({"retention.ms": str(DAY_MS)}), 0)
    assert said.startswith("retention of t is blocked, partition 1: the record at offset 4 is 1w2d in the future")
    assert "stays until 1970-01-11" in said


def test_rules_that_do_not_wait():
    for settings in (
        {"retention.ms": "-1"},
        {"cleanup.policy": "compact"},
        {"horolog.future.timestamp.max.ms": "1000"},
    ):
        assert sentences(topic(9 * DAY_MS), Rules.of(settings), 0) == []


async def test_settings_are_asked_of_suspects_alone():
    async with shown() as (page, client, broker):
        now = broker.clock.wall_ms()
        await topic_with(client, "t", [(now + 9 * DAY_MS, b"x")], message_timestamp_after_max_ms="999999999999")
        await topic_with(
            client, "kept", [(now + DAY_MS, b"x")], message_timestamp_after_max_ms="999999999999", retention_ms="-1"
        )
        found = await blocked_of(client, [topic(now), topic(now + DAY_MS), topic(now + DAY_MS, name="kept")], now)
        assert [name for name, _ in found] == ["t"]
        assert await blocked_of(client, [topic(now + DAY_MS)] * (2 * TOPICS_AT_MOST), now) == found * TOPICS_AT_MOST
        text = (await page.get("/")).text
        assert "retention of t is blocked, partition 0" in text
        assert "kept has a record" in text


async def test_settings_that_are_not_told():
    class Refusing(Client):
        async def retry(self, operation, *, timeout_ms=None):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)

    client = Refusing("127.0.0.1:1")
    assert await rules_of(client, "t") is None
    assert await blocked_of(client, [topic(DAY_MS)], 0) == []
