"""Facts are right where a broker tells them, and missing where it does not."""

from horolog import Client
from horolog.client.values.errors import KafkaError, PartialFailure
from horolog.client.values.types import Found, TopicPartition
from horolog.console import facts
from horolog.console.facts import (
    Order,
    PartitionFacts,
    TopicFacts,
    answered,
    facts_of,
    log_dirs_of,
    places_of_windows,
    sizes_in,
)
from horolog.protocol.errors import ErrorCode
from tests.support.console_browser import shown, topic_with

PLACES = [TopicPartition("t", 0), TopicPartition("t", 1)]
MINUTE = 60_000


async def test_facts_of_a_topic():
    async with shown() as (_, client, broker):
        now = broker.clock.wall_ms()
        await topic_with(
            client,
            "t",
            [(now - 90 * MINUTE, b"a"), (now - 80 * MINUTE, b"b"), (now - 5000, b"c"), (now - 4000, b"d")],
            2,
        )
        await client.topic("t")
        sizes = sizes_in(await log_dirs_of(client), dict.fromkeys(PLACES, 1))
        found = (await facts_of(client, PLACES, sizes, now))["t"]
        assert (found.records, found.first_ms, found.last_ms, found.late_ms) == (4, now - 90 * MINUTE, now - 4000, 0)
        assert found.per_second == 2 / 60
        assert found.size_bytes > 100
        assert not found.is_empty


async def test_disorder_is_told_by_the_record_at_the_end():
    async with shown() as (_, client, broker):
        now = broker.clock.wall_ms()
        await topic_with(client, "t", [(now, b"a"), (now - MINUTE, b"b")])
        await topic_with(client, "alike", [(now, b"a"), (now, b"b")])
        await topic_with(client, "none", [])
        places = [TopicPartition(name, 0) for name in ("t", "alike", "none")]
        found = await facts_of(client, places, None, now)
        assert (found["t"].late_ms, found["alike"].late_ms, found["none"].late_ms) == (MINUTE, 0, None)
        assert found["none"].is_empty
        assert (found["none"].first_ms, found["none"].last_ms, found["none"].per_second) == (None, None, 0)
        assert found["t"].size_bytes is None
        assert [found[name].order for name in ("t", "alike", "none")] == [
            Order(2, 1, MINUTE, is_all=True),
            Order(2, 0, 0, is_all=True),
            None,
        ]


async def test_disorder_in_the_middle_is_found_and_what_was_looked_at_is_said():
    """Two records of a hundred are up to an hour late, and none at the end."""
    async with shown() as (page, client, broker):
        now = broker.clock.wall_ms()
        count = 6000
        times = [now - (count - number) * 1000 for number in range(count)]
        for number in range(0, count - 300, 50):
            times[number] -= (number * 7919) % 3_600_000
        await topic_with(client, "t", [(at, b"x") for at in times])
        place = PLACES[:1]
        await client.topic("t")
        at_the_end = (await facts_of(client, place, None, now))["t"].order
        assert (at_the_end.looked_at, at_the_end.late, at_the_end.is_all) == (200, 0, False)
        spread = (await facts_of(client, place, None, now, 16))["t"].order
        assert spread.looked_at == 3200
        assert 30 <= spread.late <= 64
        assert spread.most_late_ms > 30 * MINUTE
        assert "200 checked" in (await page.get("/")).text
        topic_page = (await page.get("/topic?name=t")).text
        assert f"{spread.late} of 3,200 checked" in topic_page
        assert "in order" not in topic_page


async def test_records_that_cannot_be_read_leave_their_order_unknown(monkeypatch):
    async with shown() as (_, client, broker):
        await topic_with(client, "t", [(broker.clock.wall_ms(), b"x")])
        await client.topic("t")

        async def refused(*_, **__):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)

        monkeypatch.setattr(client, "fetch_raw", refused)
        found = (await facts_of(client, PLACES[:1], None, broker.clock.wall_ms()))["t"]
        assert (found.order, found.late_ms, found.records) == (None, None, 1)


def test_places_are_spread_over_all_there_is():
    assert places_of_windows(0, 100, 5) == [0]
    assert places_of_windows(50, 1250, 1) == [1050]
    assert places_of_windows(0, 1200, 5) == [0, 250, 500, 750, 1000]
    assert places_of_windows(0, 202, 16) == [0, 1, 2]


async def test_a_part_of_a_sum_is_not_the_sum():
    known = PartitionFacts(PLACES[0], 0, 5, 1, 2, 4, 1, 0, 100)
    both = TopicFacts("t", (known, PartitionFacts(PLACES[1])))
    assert (both.records, both.size_bytes, both.per_second) == (None, None, None)
    assert (both.first_ms, both.last_ms) == (1, 2)
    assert TopicFacts("t", ()).records is None


class Failing:
    def __init__(self, nodes=()):
        self.view = type("View", (), {"nodes": nodes})


async def test_what_is_not_answered_is_missing(monkeypatch):
    error = KafkaError(ErrorCode.LEADER_NOT_AVAILABLE)

    async def partly(client, times):
        raise PartialFailure({PLACES[0]: error}, {PLACES[1]: Found(1, 2)})

    monkeypatch.setattr(facts, "list_offsets", partly)
    assert await answered(Failing(), PLACES, 0) == {PLACES[1]: Found(1, 2)}
    assert await answered(Failing(), [], 0) == {}

    async def never(client, times):
        raise error

    monkeypatch.setattr(facts, "list_offsets", never)
    assert await answered(Failing([1]), PLACES, 0) == {}
    assert await answered(Failing(), PLACES[:1], 0) == {}


async def test_folders_that_are_not_shown():
    class Refusing(Client):
        async def metadata(self, topics=None, *, create=False):
            raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    assert await log_dirs_of(Refusing("127.0.0.1:1")) is None
    assert sizes_in(None, {}) is None
