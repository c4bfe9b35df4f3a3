"""The records right before and after a time are found, within bounds that are kept and told."""

import pytest

from horolog.base.clock import SystemClock
from horolog.client.decoding import Decoder
from horolog.client.values.types import TopicPartition
from horolog.console import reading
from horolog.console.reading import Reader
from tests.support.console_browser import shown, topic_with

PLACES = [TopicPartition("t", 0), TopicPartition("t", 1)]
SECOND, HOUR = 1000, 3_600_000


async def everything(record):
    return await Decoder().decode(record)


def reader(client, wanted=everything, places=PLACES):
    return Reader(client, places, wanted, SystemClock())


def offsets(rows, now):
    return [(row.record.timestamp_ms - now) // SECOND for row in rows]


@pytest.mark.parametrize("stretch", [2, 5, 2000])
async def test_the_nearest_are_found_on_both_sides(stretch, monkeypatch):
    monkeypatch.setattr(reading, "STRETCH_RECORDS", stretch)
    async with shown() as (_, client, broker):
        now = broker.clock.wall_ms() // SECOND * SECOND - HOUR
        await topic_with(client, "t", [(now + at * SECOND, b"x") for at in range(-20, 20)], 2)
        await client.topic("t")
        found = reader(client)
        rows, reached = await found.before(now - HOUR, now, 6)
        assert offsets(rows, now) == [-6, -5, -4, -3, -2, -1]
        assert reached == rows[0].record.timestamp_ms or reached < rows[0].record.timestamp_ms
        rows, reached = await found.after(now, now + HOUR, 3)
        assert (offsets(rows, now), reached) == ([0, 1, 2], now + 2 * SECOND)
        rows, reached = await found.after(now + 18 * SECOND, now + HOUR, 9)
        assert (offsets(rows, now), reached) == ([18, 19], now + HOUR)
        rows, reached = await found.before(now - HOUR, now - 18 * SECOND, 9)
        assert (offsets(rows, now), reached) == ([-20, -19], now - HOUR)
        assert not found.is_spent


async def test_only_those_that_are_wanted_count():
    async def even(record):
        return await everything(record) if record.offset % 2 == 0 else None

    async with shown() as (_, client, broker):
        now = broker.clock.wall_ms() - HOUR
        await topic_with(client, "t", [(now + at, b"x") for at in range(40)])
        await client.topic("t")
        rows, _ = await reader(client, even, PLACES[:1]).before(now - HOUR, now + 40, 5)
        assert [row.record.offset for row in rows] == [30, 32, 34, 36, 38]


async def test_a_bound_ends_the_search(monkeypatch):
    monkeypatch.setattr(reading, "LOOKED_AT_MOST", 10)
    async with shown() as (_, client, broker):
        now = broker.clock.wall_ms() - HOUR
        await topic_with(client, "t", [(now + at, b"x") for at in range(40)])
        await client.topic("t")

        async def nothing(record):
            return None

        found = reader(client, nothing, PLACES[:1])
        rows, reached = await found.after(now, now + HOUR, 5)
        assert (rows, reached, found.is_spent) == ([], now + 9, True)
        assert (await found.before(now, now + 40, 5))[0] == []
        again = reader(client, everything, PLACES[:1])
        rows, reached = await again.before(now, now + 40, 50)
        assert again.is_spent


async def test_what_may_be_missing_is_noted():
    async with shown() as (_, client, broker):
        now = broker.clock.wall_ms() - 9 * HOUR
        times = [now, *(now + 5 * HOUR + at for at in range(3000))]
        await topic_with(client, "t", [(at, b"x") for at in times])
        await client.topic("t")
        found = reader(client, everything, PLACES[:1])
        rows, _ = await found.after(now, now + 1, 9)
        assert len(rows) == 1
        assert all(isinstance(note, str) for note in found.notes)


async def test_a_search_says_each_thing_once_and_looks_at_each_record_once(monkeypatch):
    """However many steps it takes."""
    monkeypatch.setattr(reading, "STRETCH_RECORDS", 200)
    monkeypatch.setattr(reading, "LONGEST_STRETCH_RECORDS", 200)
    monkeypatch.setattr(reading, "SECONDS_AT_MOST", 600.0)

    async def nothing(record):
        return None

    async with shown() as (_, client, broker):
        now = broker.clock.wall_ms() - 9 * HOUR
        await topic_with(client, "t", [(now + at * SECOND, b"x") for at in range(4000)])
        await client.topic("t")
        found = reader(client, nothing, PLACES[:1])
        await found.before(now - HOUR, now + 1200 * SECOND, 5)
        assert found.looked_at == 1200
        assert found.notes == ["records that came more than 10m late may be missing"]


async def test_a_record_of_the_future_hides_nothing():
    """A lookup of any time before its own leads to it."""
    async with shown() as (_, client, broker):
        now = broker.clock.wall_ms() - HOUR
        times = [now + 9 * HOUR, *(now + at * SECOND for at in range(-20, 20))]
        await topic_with(client, "t", [(at, b"x") for at in times])
        await client.topic("t")
        earlier, _, later, _ = await reader(client, everything, PLACES[:1]).around(now - HOUR, now, now + HOUR, 10)
        assert offsets(earlier, now) == [-5, -4, -3, -2, -1]
        assert offsets(later, now) == [0, 1, 2, 3, 4]
