"""Lookups give the offsets at borders, and the times between which the records of a topic lie, of old brokers, too."""

from horolog.client.charting import lookups
from horolog.client.charting.lookups import offsets_at, time_range
from horolog.client.values.types import TopicPartition
from tests.support.console_browser import shown, topic_with

PLACES = [TopicPartition("t", 0), TopicPartition("t", 1)]
T = 1_700_000_000_000


async def test_offsets_at_borders():
    async with shown() as (_, client, _):
        await topic_with(client, "t", [(T + at, b"x") for at in range(10)], 2, retention_ms="-1")
        borders = [-5, T, T + 4, T + 5, T + 99]
        assert await offsets_at(client, PLACES, borders) == {PLACES[0]: [0, 0, 2, 3, 5], PLACES[1]: [0, 0, 2, 2, 5]}
        many = [T + number % 10 for number in range(50)]
        assert len((await offsets_at(client, PLACES, many))[PLACES[0]]) == 50


async def test_the_range_of_times(monkeypatch):
    async with shown() as (_, client, _):
        await topic_with(client, "t", [(T + 7, b"x"), (T, b"x"), (T + 9, b"x"), (T + 3, b"x")], 2, retention_ms="-1")
        await topic_with(client, "none", [])
        assert await time_range(client, PLACES) == (T, T + 9)
        assert await time_range(client, [TopicPartition("none", 0)]) is None
        monkeypatch.setattr(lookups, "LARGEST_TIMESTAMP_VERSION", 99)
        assert await time_range(client, PLACES) == (T, T + 9), "found by search where it cannot be asked for"
