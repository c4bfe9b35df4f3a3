"""What a consumer finds at times and between them."""

import pytest

from horolog.client.consuming.consumer import Consumer
from horolog.client.consuming.lookups import Lookups
from horolog.client.moments.look_ahead import TO_THE_END
from horolog.client.moments.sorting import Hold
from horolog.client.producing.producer import Producer
from horolog.client.values.types import TopicPartition
from horolog.testing import horolog_broker

NOW_MS = 1_700_000_000_000
PARTITIONS = [TopicPartition("t", 0), TopicPartition("t", 1)]


@pytest.fixture
async def consumer():
    async with horolog_broker(clock=NOW_MS, log_retention_ms=-1) as broker:
        broker.create_topic("t", 2)
        async with Producer(broker.bootstrap) as producer:
            for place, late_by in enumerate([0, 30, 10, 20]):
                await producer.send("t", b"%d" % late_by, timestamp_ms=NOW_MS - late_by, partition=place % 2)
        async with Consumer(broker.bootstrap) as consumer:
            yield consumer


async def values(between):
    return [record.value async for record in between]


async def test_what_lies_between_two_times_comes_in_their_order(consumer):
    consumer.assign(PARTITIONS)
    found = consumer.between(NOW_MS - 20, NOW_MS + 1)
    assert await values(found) == [b"20", b"10", b"0"]
    assert (found.report.late, found.report.most_late_ms, found.report.complete) == (1, 10, True)
    assert "3 records" in repr(found)
    assert [await consumer.position(each) for each in PARTITIONS] == [0, 0]


async def test_partitions_may_be_named_and_need_not_be_merged(consumer):
    options = {"partitions": PARTITIONS, "look_ahead": TO_THE_END, "hold": Hold(10)}
    assert await values(consumer.between(None, NOW_MS, **options)) == [b"30", b"20", b"10"]
    assert await values(consumer.between(None, None, merge=False, **options)) == [b"0", b"10", b"30", b"20"]
    assert await values(consumer.between(None, None)) == []


async def test_offsets_at_times_and_ends(consumer):
    found = await consumer.offsets_for_times({PARTITIONS[0]: NOW_MS, PARTITIONS[1]: NOW_MS})
    assert [each and each.offset for each in found.values()] == [0, None]
    with pytest.raises(ValueError, match="not negative"):
        await consumer.offsets_for_times({PARTITIONS[0]: -1})
    assert await consumer.beginning_offsets(PARTITIONS) == dict.fromkeys(PARTITIONS, 0)
    assert await consumer.end_offsets(PARTITIONS) == dict.fromkeys(PARTITIONS, 2)


def test_a_base_alone_is_assigned_nothing():
    with pytest.raises(NotImplementedError):
        Lookups(None, "read_committed").between(1, 2)
