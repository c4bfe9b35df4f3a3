"""A data folder tells the same days as the broker that runs on it, and is left as it was."""

from datetime import UTC

from horolog.client.admin.admin import Admin
from horolog.client.cli.examining.folder_days import DayQuery, describe
from horolog.client.cli.retaining.retention_look import measure
from horolog.client.producing.producer import Producer
from horolog.client.segments.day_sizes import days_of
from horolog.client.segments.segments_look import HttpAccess
from horolog.client.values.types import TopicPartition
from horolog.testing import horolog_broker

NOW_MS = 1_700_000_000_000
HOUR = 3_600_000
SETTINGS = {"segment_bytes": 4000, "index_interval_bytes": 200}


async def fill(broker, count=300):
    broker.create_topic("t", 2, **SETTINGS)
    async with Producer(broker.bootstrap) as producer:
        for number in range(count):
            at = NOW_MS - (count - number) * HOUR
            await producer.send("t", b"v" * (number % 200), timestamp_ms=at, partition=number % 2)
            if not number % 7:
                await producer.flush()


def contents(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


async def test_a_folder_tells_what_its_broker_tells(tmp_path):
    data = tmp_path / "data"
    settings = {"clock": NOW_MS, "storage": data, "horolog_http_listen": "127.0.0.1:0"}
    async with horolog_broker(**settings) as broker:
        await fill(broker)
        async with Admin(broker.bootstrap) as admin:
            await admin.delete_records({TopicPartition("t", 0): 5})
            topic = (await admin.client.metadata(["t"])).topics["t"]
            facts = await measure(admin, [TopicPartition("t", 0), TopicPartition("t", 1)])
            told = await days_of(admin, topic, facts, UTC, now_ms=NOW_MS, http=HttpAccess(), at_most=9)
    before = contents(data)
    found = describe(str(data), "t", DayQuery(UTC, NOW_MS, 9))
    assert contents(data) == before
    assert [(one.first_offset, one.end_offset, one.size_bytes) for one in found.facts] == [
        (one.first_offset, one.end_offset, one.size_bytes) for one in facts.values()
    ]
    assert found.days.why is None
    assert len(found.days.days) > 9
    assert [one[:3] for one in found.days.days] == [one[:3] for one in told.days]
    for one, other in zip(found.days.days, told.days, strict=True):
        assert abs(one.size_bytes - other.size_bytes) <= 1
    assert describe(str(data), "t", DayQuery(UTC, NOW_MS, 0)).days == ((), None)


async def test_an_empty_topic_and_one_that_is_not_there(tmp_path):
    async with horolog_broker(clock=NOW_MS, storage=tmp_path / "data") as broker:
        broker.create_topic("t", 1)
    found = describe(str(tmp_path / "data"), "t", DayQuery(UTC, NOW_MS, 7))
    assert ([one.records for one in found.facts], found.days) == ([0], ((), None))
    assert found.facts[0].first_ms is None
    assert describe(str(tmp_path / "data"), "nothing", DayQuery(UTC, NOW_MS, 7)).facts == []
