"""The facts of retention as a broker tells them."""

import pytest

from horolog.client.admin.admin import Admin
from horolog.client.cli.retaining.retention_look import look, measure
from horolog.client.producing.producer import Producer
from horolog.client.segments.retention import DAY_MS, NO_CLEANER, Cause
from horolog.client.segments.segments_look import look as look_at_segments
from horolog.client.values.errors import KafkaError
from horolog.client.values.types import TopicPartition
from horolog.protocol.errors import ErrorCode
from horolog.testing import horolog_broker

NOW_MS = 1_700_000_000_000
PLACES = [TopicPartition("t", 0), TopicPartition("t", 1)]


@pytest.fixture
async def admin():
    async with horolog_broker(clock=NOW_MS) as broker, Admin(broker.bootstrap) as admin:
        broker.create_topic("t", 2, retention_ms=10 * DAY_MS)
        async with Producer(admin.client) as producer:
            for day in range(8):
                await producer.send("t", b"v" * 100, timestamp_ms=NOW_MS - day * DAY_MS, partition=0)
        yield admin


async def test_what_goes_next_and_when(admin):
    facts = await look(admin, PLACES, NOW_MS)
    first, empty = facts.partitions
    assert (first.records, first.first_ms, first.largest_ms, first.largest_offset) == (8, NOW_MS, NOW_MS, 0)
    assert first.size_bytes > 800
    assert (first.next.cause, first.next.from_ms) == (Cause.TIME, NOW_MS + 10 * DAY_MS)
    assert (empty.records, empty.next, empty.first_ms, first.left) == (0, None, None, None)
    assert facts.rules.retention_ms == 10 * DAY_MS
    assert facts.source == "broker"


async def test_what_other_settings_would_leave(admin):
    facts = await look(admin, PLACES, NOW_MS + 2 * DAY_MS, {"retention.ms": str(DAY_MS)})
    assert [each.left.records for each in facts.partitions] == [0, 0]
    kept = await look(admin, PLACES, NOW_MS + 2 * DAY_MS, {"retention.ms": "-1"})
    assert [each.left.records for each in kept.partitions] == [8, 0]
    with pytest.raises(ValueError, match="a whole number"):
        await look(admin, PLACES, NOW_MS, {"retention.ms": "soon"})


async def test_where_segments_are_told_it_is_exact():
    async with (
        horolog_broker(clock=NOW_MS, horolog_http_listen="127.0.0.1:0") as broker,
        Admin(broker.bootstrap) as admin,
    ):
        broker.create_topic("t", 2, cleanup_policy="compact,delete", retention_ms=10 * DAY_MS)
        async with Producer(admin.client) as producer:
            await producer.send("t", b"v", key=b"k", timestamp_ms=NOW_MS - DAY_MS, partition=0)
        segments = await look_at_segments(admin, (await admin.client.metadata(["t"])).topics["t"])
        del segments.partitions[1]
        exact, bounds = (await look(admin, PLACES, NOW_MS, {"retention.ms": "1"}, segments)).partitions
        assert exact.next.from_ms == exact.next.until_ms == NOW_MS + 9 * DAY_MS + 1
        assert (exact.left.records, exact.left.exact, exact.unknown) == (0, True, [NO_CLEANER])
        assert "compaction keeps" in exact.held_by[0]
        assert (bounds.next, bounds.left.records) == (None, 0)


async def test_what_a_broker_does_not_tell_is_left_open(admin, monkeypatch):
    async def refused(self):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    monkeypatch.setattr(Admin, "log_dirs", refused)
    assert (await measure(admin, PLACES))[PLACES[0]].size_bytes is None
    versions = await admin.client.versions()
    monkeypatch.setattr(type(versions), "serves", lambda self, key, version=0: False)
    facts = await look(admin, PLACES, NOW_MS)
    assert facts.partitions[0].largest_ms is None
    assert facts.settings == {}
    assert len(facts.partitions[0].unknown) >= 2
