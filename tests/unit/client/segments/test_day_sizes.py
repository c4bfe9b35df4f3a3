"""Days begin at midnights of the zone; records and bytes of all of them are those of the topic, exact where segments are told."""

from datetime import UTC, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from horolog.client.admin.admin import Admin
from horolog.client.cli.retaining.retention_look import measure
from horolog.client.producing.producer import Producer
from horolog.client.segments import day_sizes
from horolog.client.segments.day_sizes import days_of, midnights
from horolog.client.segments.segments_look import HttpAccess
from horolog.client.values.types import TopicPartition
from horolog.testing import horolog_broker

NOW_MS = 1_700_000_000_000
HOUR, DAY = 3_600_000, 86_400_000
PLACES = [TopicPartition("t", 0), TopicPartition("t", 1)]


def test_midnights_of_a_zone():
    berlin = ZoneInfo("Europe/Berlin")
    october = round(datetime(2023, 10, 28, 12, tzinfo=UTC).timestamp() * 1000)
    found = midnights(october, october + 2 * DAY, berlin, 7)
    assert [after - before for before, after in pairwise(found)] == [DAY, DAY + HOUR, DAY]
    assert datetime.fromtimestamp(found[0] / 1000, berlin).hour == 0
    assert midnights(october, october + 9 * DAY, UTC, 3) == midnights(october + 7 * DAY, october + 9 * DAY, UTC, 9)
    assert len(midnights(0, 2**62, UTC, 2)) == 3
    assert midnights(0, 0, UTC, 7) == [0, DAY]


async def filled(admin, broker):
    broker.create_topic("t", 2, message_timestamp_after_max_ms=2**62, segment_bytes=4000, index_interval_bytes=100)
    async with Producer(admin.client) as producer:
        for number in range(200):
            size = 10 if number < 100 else 200
            await producer.send("t", b"v" * size, timestamp_ms=NOW_MS - (199 - number) * HOUR, partition=number % 2)
            await producer.flush()
        await producer.send("t", b"v", timestamp_ms=NOW_MS + 40 * DAY, partition=0)
    return (await admin.client.metadata(["t"])).topics["t"], await measure(admin, PLACES)


@pytest.mark.parametrize("listen", ["127.0.0.1:0", None])
async def test_sums_are_those_of_the_topic(listen):
    settings = {"horolog_http_listen": listen} if listen else {}
    async with horolog_broker(clock=NOW_MS, **settings) as broker, Admin(broker.bootstrap) as admin:
        topic, facts = await filled(admin, broker)
        found = await days_of(admin, topic, facts, UTC, now_ms=NOW_MS, http=HttpAccess(), at_most=5)
        assert sum(one.records for one in found.days) == 201
        size = sum(one.size_bytes for one in facts.values())
        assert abs(sum(one.size_bytes for one in found.days) - size) <= len(found.days)
        assert (found.days[0].from_ms, found.days[-1].until_ms, found.days[-1].records) == (None, None, 1)
        assert len(found.days) == 7
        assert [one.records for one in found.days[1:-2]] == [24] * 4
        small, large = found.days[0], found.days[3]
        if listen:
            assert found.why is None
            assert large.size_bytes / large.records > 2 * small.size_bytes / small.records
            assert 24 * 200 < large.size_bytes < 24 * 400
        else:
            assert "no HTTP port" in found.why


async def test_an_empty_topic_and_one_without_sizes():
    async with horolog_broker(clock=NOW_MS) as broker, Admin(broker.bootstrap) as admin:
        broker.create_topic("t", 2)
        topic = (await admin.client.metadata(["t"])).topics["t"]
        facts = await measure(admin, PLACES)
        assert (await days_of(admin, topic, facts, UTC, now_ms=NOW_MS, http=HttpAccess(), at_most=5)) == ((), None)
        async with Producer(admin.client) as producer:
            await producer.send("t", b"v", timestamp_ms=NOW_MS, partition=0)
        facts = await measure(admin, PLACES)
        for one in facts.values():
            one.size_bytes = None
        (day,) = (await days_of(admin, topic, facts, UTC, now_ms=NOW_MS, http=HttpAccess(), at_most=5)).days
        assert (day.records, day.size_bytes) == (1, None)


async def test_a_partition_that_does_not_tell_has_all_estimated(monkeypatch):
    settings = {"clock": NOW_MS, "horolog_http_listen": "127.0.0.1:0"}
    async with horolog_broker(**settings) as broker, Admin(broker.bootstrap) as admin:
        topic, facts = await filled(admin, broker)
        look = day_sizes.look

        async def without_the_second(*words, **more):
            found = await look(*words, **more)
            del found.partitions[1]
            return found

        monkeypatch.setattr(day_sizes, "look", without_the_second)
        assert (
            "not every partition"
            in (await days_of(admin, topic, facts, UTC, now_ms=NOW_MS, http=HttpAccess(), at_most=5)).why
        )
