"""Sample data arrives in its topics, and the sample group is behind."""

from horolog.client.admin.admin import Admin
from horolog.client.cli.starting import sample_data
from horolog.client.cli.starting.filling import fill, offsets_read
from horolog.client.cli.starting.sample_data import DAY_MS, GROUP, HOUR_MS, ORDERS, PAYMENTS, SampleRecord
from horolog.client.values.types import Sent, TopicPartition
from horolog.testing import horolog_broker

MIDNIGHT_MS = 1_795_824_000_000
NOW_MS = MIDNIGHT_MS + 9 * HOUR_MS


async def test_topics_that_are_new_are_filled():
    async with horolog_broker(clock=NOW_MS) as broker:
        written = await fill(broker.bootstrap, NOW_MS, MIDNIGHT_MS)
        expected = sample_data.records(NOW_MS, MIDNIGHT_MS)
        assert written == {topic: sum(each.topic == topic for each in expected) for topic in (ORDERS, PAYMENTS)}
        assert len(broker.records(ORDERS)) == written[ORDERS]
        first = broker.records(PAYMENTS)[0]
        assert NOW_MS - 3 * DAY_MS <= first.timestamp_ms < NOW_MS - 2 * DAY_MS
        assert await fill(broker.bootstrap, NOW_MS, MIDNIGHT_MS) == {}
        async with Admin(broker.bootstrap) as admin:
            read = await admin.group_offsets(GROUP)
        ends = {place: broker.offsets(ORDERS, place.partition).end for place in read}
        assert len(ends) == sample_data.PARTITIONS[ORDERS]
        assert all(0 < found.offset < ends[place] for place, found in read.items())


async def test_a_topic_that_exists_is_left_alone():
    async with horolog_broker(clock=NOW_MS) as broker:
        broker.create_topic(ORDERS)
        assert list(await fill(broker.bootstrap, NOW_MS, MIDNIGHT_MS)) == [PAYMENTS]
        assert broker.records(ORDERS) == []


def test_the_group_has_read_what_arrived_until_then():
    def record(topic, arrives_ms):
        return SampleRecord(topic, "k", "v", 0, arrives_ms, "web")

    sent = [
        (record(ORDERS, 1), Sent(ORDERS, 0, 0, 0)),
        (record(ORDERS, 2), Sent(ORDERS, 0, 1, 0)),
        (record(ORDERS, 3), Sent(ORDERS, 0, 2, 0)),
        (record(PAYMENTS, 1), Sent(PAYMENTS, 0, 0, 0)),
        (record(ORDERS, 9), Sent(ORDERS, 1, 0, 0)),
    ]
    assert offsets_read(sent, 2) == {TopicPartition(ORDERS, 0): 2}
