"""A broker as the source of a moment: offsets at times, records, and what its topics say of their times."""

import pytest

from horolog.client.moments.moment_source import TIME_SETTINGS, BrokerSource
from horolog.client.producing.producer import Producer
from horolog.client.values.types import EARLIEST, LATEST, TopicPartition
from horolog.client.wire.client import Client
from horolog.protocol.records.entries import iter_records
from horolog.testing import horolog_broker

NOW_MS = 1_700_000_000_000
HERE = TopicPartition("t", 0)


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
async def test_it_answers_as_the_broker_does(isolation):
    async with horolog_broker(clock=NOW_MS) as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t", 1, message_timestamp_type="LogAppendTime")
        async with Producer(client) as producer:
            await producer.send("t", b"v", partition=0)
        source = BrokerSource(client)
        for time_ms, offset in ((EARLIEST, 0), (LATEST, 1), (NOW_MS, 0), (NOW_MS + 1, None)):
            assert await source.offsets_at(time_ms, [HERE], isolation) == {HERE: offset}
        raw = await source.fetch_raw(HERE, 0, 1000, isolation, max_wait_ms=0)
        assert [record.value for record in iter_records(raw.records)] == [b"v"]
        told = await source.time_settings(["t", "gone"])
        assert told["gone"] == {}
        assert set(told["t"]) == set(TIME_SETTINGS)
        assert told["t"]["message.timestamp.type"] == "LogAppendTime"
        assert (source.clock, source.request_timeout_ms) == (client.clock, client.request_timeout_ms)
        assert repr(source) == f"<BrokerSource of {client!r}>"
