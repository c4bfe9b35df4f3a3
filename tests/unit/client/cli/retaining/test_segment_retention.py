"""The facts of retention by segments that a broker tells are those that it goes by."""

import pytest

from horolog.broker.log.partition import log_start
from horolog.client.admin.admin import Admin
from horolog.client.cli.retaining.retention_look import look
from horolog.client.cli.retaining.segment_retention import ACTIVE_ALONE, config_of
from horolog.client.producing.producer import Producer
from horolog.client.segments.retention import DAY_MS, Cause
from horolog.client.segments.segments_look import look as look_at_segments
from horolog.client.values.types import TopicPartition
from horolog.testing import horolog_broker

NOW_MS = 1_700_000_000_000
PLACE = TopicPartition("t", 0)


@pytest.fixture
async def broker():
    async with horolog_broker(
        clock=NOW_MS, horolog_http_listen="127.0.0.1:0", log_retention_check_interval_ms=10**9
    ) as broker:
        yield broker


async def fill(broker, days, **configs):
    broker.create_topic("t", 1, segment_ms=DAY_MS // 2, message_timestamp_after_max_ms=2**62, **configs)
    async with Producer(broker.bootstrap) as producer:
        for day in days:
            await producer.send("t", b"v" * 1000, key=b"k%d" % day, timestamp_ms=NOW_MS - day * DAY_MS)
            await producer.flush()


async def facts_of(broker, other=None):
    async with Admin(broker.bootstrap) as admin:
        topic = (await admin.client.metadata(["t"])).topics["t"]
        told = await look_at_segments(admin, topic)
        facts = await look(admin, [PLACE], broker.clock.wall_ms(), other, told)
    return facts.partitions[0]


async def test_the_next_to_go_is_what_the_broker_deletes(broker):
    await fill(broker, (4, 3, 2, 1), retention_ms=5 * DAY_MS)
    found = await facts_of(broker)
    assert (found.next.from_ms, found.next.until_ms, found.next.up_to_offset) == (NOW_MS + DAY_MS + 1,) * 2 + (1,)
    assert found.unknown == []
    broker.clock.set(found.next.from_ms - 1)
    log_start.apply_retention(broker.broker.cluster.topics["t"].find(0), found.next.from_ms - 1)
    assert broker.offsets("t").first == 0
    log_start.apply_retention(broker.broker.cluster.topics["t"].find(0), found.next.from_ms)
    assert broker.offsets("t").first == 1


async def test_other_settings_leave_whole_segments(broker):
    await fill(broker, (4, 3, 2, 1), retention_ms=-1)
    found = await facts_of(broker, {"retention.ms": str(2 * DAY_MS + 1)})
    assert found.next is None
    assert (found.left.first_offset, found.left.records, found.left.exact) == (2, 2, True)
    everything = (await facts_of(broker, {"retention.ms": "1"})).left
    assert (everything.records, everything.size_bytes) == (0, 0)


async def test_size_and_compaction(broker):
    await fill(broker, (4, 3, 2, 1), retention_ms=-1, retention_bytes=2500, cleanup_policy="compact,delete")
    found = await facts_of(broker)
    assert (found.next.cause, found.next.up_to_offset) == (Cause.SIZE, 1)
    assert any("cleaner" in one for one in found.unknown)


async def test_a_record_of_the_future_is_named(broker):
    await fill(broker, (-3,))
    found = await facts_of(broker)
    assert (found.largest_ms, found.largest_offset) == (NOW_MS + 3 * DAY_MS, 0)
    assert found.held_by[-1] == ACTIVE_ALONE
    assert "in the future" in found.held_by[0]
    assert found.next.from_ms == NOW_MS + 10 * DAY_MS + 1


def test_settings_that_no_broker_takes():
    assert config_of({"retention.ms": "5", "no.such": "x", "retention.bytes": None}).retention_ms == 5
    with pytest.raises(ValueError, match=r"retention\.ms"):
        config_of({"retention.ms": "soon"})


async def test_a_partition_without_records_has_nothing_to_go(broker):
    await fill(broker, ())
    found = await facts_of(broker)
    assert (found.next, found.largest_ms, found.size_bytes) == (None, None, 0)
