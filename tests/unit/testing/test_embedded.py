"""A broker inside a test: quick to start, apart from others, with a clock that moves append times and retention."""

import asyncio
import ssl
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from horolog.broker.config.setting_types import SettingsError
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.testing import BrokerClock, horolog_broker
from tests.support.certificates import Certificates

T0 = 1_700_000_000_000
START_SECONDS = 0.1
"""On an idle machine a start takes a few milliseconds."""


async def produce(broker, topic, *values):
    producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap, acks="all")
    await producer.start()
    try:
        return [await producer.send_and_wait(topic, value) for value in values]
    finally:
        await producer.stop()


async def consume(broker, topic, count):
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest", group_id="g")
    await consumer.start()
    try:
        async with asyncio.timeout(20):
            return [await consumer.getone() for _ in range(count)]
    finally:
        await consumer.stop()


async def first_offset(broker, topic):
    consumer = AIOKafkaConsumer(bootstrap_servers=broker.bootstrap)
    await consumer.start()
    try:
        partition = TopicPartition(topic, 0)
        return (await consumer.beginning_offsets([partition]))[partition]
    finally:
        await consumer.stop()


async def test_starts_quickly():
    async with horolog_broker():
        pass  # imports and codecs, once
    took = []
    while len(took) < 5 or (min(took) >= START_SECONDS and len(took) < 50):
        began = time.perf_counter()
        async with horolog_broker() as broker:
            took.append(time.perf_counter() - began)
            assert broker.port
    assert min(took) < START_SECONDS, "a busy machine makes some slow, a fault all"


async def test_a_client_produces_and_consumes_on_the_same_loop():
    async with horolog_broker() as broker:
        await produce(broker, "t", b"one", b"two")
        assert [record.value for record in await consume(broker, "t", 2)] == [b"one", b"two"]


async def test_two_brokers_know_nothing_of_each_other():
    async with horolog_broker() as one, horolog_broker() as other:
        assert one.port != other.port
        await produce(one, "t", b"here")
        await produce(other, "t", b"there")
        assert [record.value for record in await consume(one, "t", 1)] == [b"here"]
        assert [record.value for record in await consume(other, "t", 1)] == [b"there"]
        assert one.broker.cluster.cluster_id != other.broker.cluster.cluster_id


async def test_the_clock_gives_append_times():
    async with horolog_broker(clock=T0, log_message_timestamp_type="LogAppendTime") as broker:
        broker.create_topic("t")
        (first,) = await produce(broker, "t", b"a")
        broker.clock.advance(minutes=1)
        (second,) = await produce(broker, "t", b"b")
        broker.clock.set(datetime(2030, 1, 1, tzinfo=UTC))
        (third,) = await produce(broker, "t", b"c")
        assert [one.timestamp for one in (first, second, third)] == [T0, T0 + 60_000, 1_893_456_000_000]


async def test_the_clock_moves_retention():
    async with horolog_broker(clock=T0) as broker:
        broker.create_topic("t", retention_ms=60_000, message_timestamp_type="LogAppendTime")
        await produce(broker, "t", b"a", b"b")
        broker.clock.advance(seconds=59)
        assert await first_offset(broker, "t") == 0
        broker.clock.advance(seconds=2)
        assert await first_offset(broker, "t") == 2


async def test_the_offsets_of_a_partition_are_asked_without_a_client():
    async with horolog_broker(clock=T0) as broker:
        broker.create_topic("t", 2, retention_ms=60_000, message_timestamp_type="LogAppendTime")
        assert broker.offsets("t") == (0, 0)
        await produce(broker, "t", b"a", b"b", b"c")
        first, second = broker.offsets("t"), broker.offsets("t", 1)
        assert (first.first, second.first, first.end + second.end) == (0, 0, 3)
        broker.clock.advance(minutes=2)
        assert broker.offsets("t") == (first.end, first.end)
        with pytest.raises(ClusterError, match="there is no t-2"):
            broker.offsets("t", 2)
        with pytest.raises(ClusterError, match="there is no other-0"):
            broker.offsets("other")


async def test_a_clock_that_is_set_far_ahead_is_believed():
    async with horolog_broker(clock=T0) as broker:
        broker.create_topic("t", retention_ms=60_000, message_timestamp_type="LogAppendTime")
        await produce(broker, "t", b"a")
        broker.clock.set(T0 + 365 * 86_400_000)
        assert await first_offset(broker, "t") == 1


async def test_a_folder_keeps_its_data(tmp_path):
    async with horolog_broker(storage=tmp_path / "data") as broker:
        await produce(broker, "t", b"kept")
    async with horolog_broker(storage=tmp_path / "data") as broker:
        assert [record.value for record in await consume(broker, "t", 1)] == [b"kept"]


async def test_the_environment_plays_no_part(monkeypatch):
    monkeypatch.setenv("KAFKA_NUM_PARTITIONS", "7")
    async with horolog_broker() as broker:
        assert broker.broker.settings.num_partitions == 1


async def test_settings_by_either_name_and_bad_ones_are_refused():
    async with horolog_broker(settings={"num.partitions": 3}, auto_create_topics_enable=False) as broker:
        assert broker.broker.settings.num_partitions == 3
        assert not broker.broker.settings.auto_create_topics_enable
        with pytest.raises(ClusterError, match="segment"):
            broker.create_topic("t", segment_bytes="many")
    with pytest.raises(SettingsError, match="did you mean"):
        async with horolog_broker(num_partition=3):
            pass


async def test_metrics_are_there_when_asked_for():
    async with horolog_broker(horolog_http_listen="127.0.0.1:0") as broker:
        assert broker.http is not None
    async with horolog_broker() as broker:
        assert broker.http is None


async def test_what_falls_due_needs_turns_of_the_loop():
    """Without the `await` it follows in the next ones."""
    async with horolog_broker() as broker:
        broker.create_topic("t", retention_ms=60_000)
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap, enable_idempotence=True) as producer:
            await producer.send_and_wait("t", b"x")
        await broker.clock.advance("2 minutes")
        assert broker.offsets("t") == (1, 1)
        assert broker.bootstrap in repr(broker)
        assert broker.addresses == {"PLAINTEXT": broker.bootstrap}


async def test_two_brokers_go_by_one_clock():
    clock = BrokerClock(T0)
    async with horolog_broker(clock=clock) as one, horolog_broker(clock=clock) as other:
        for broker in (one, other):
            broker.create_topic("t", retention_ms=60_000, message_timestamp_type="LogAppendTime")
            await produce(broker, "t", b"x")
        await clock.advance("2m")
        assert one.offsets("t") == other.offsets("t") == (1, 1)
    assert clock.watchers == []


async def test_it_tells_of_its_log(tmp_path):
    async with horolog_broker(clock=T0) as broker:
        broker.create_topic("t", 2)
        await produce(broker, "t", b"one", b"two")
        assert broker.topics() == {"t": 2}
        assert len(broker.records("t")) == len(await broker.expect("t", count=2)) == 2
        await broker.expect_none("t", value="three")
        await consume(broker, "t", 2)
        with pytest.raises(AssertionError):
            await broker.expect_committed("g", "t", 9, within=0)
        file = tmp_path / "t.txt"
        broker.expect_snapshot("t", file, update=True)
        assert await broker.restore(file, "copy") == 2
        broker.expect_snapshot("t", file)


async def test_metrics_are_scraped_over_tls_with_a_token(tmp_path):
    """As Prometheus does it; strangers learn nothing."""
    certificates = Certificates(tmp_path)
    settings = {
        "horolog.http.listen": "127.0.0.1:0",
        "horolog.http.protocol": "HTTPS",
        "horolog.http.token": "the token",
        "listener.name.http.ssl.keystore.type": "PEM",
        "listener.name.http.ssl.keystore.location": str(certificates.server),
    }

    def scrape(address, token, trust):
        headers = {"Accept": "application/openmetrics-text;version=1.0.0"}
        headers |= {} if token is None else {"Authorization": f"Bearer {token}"}
        asked = urllib.request.Request(f"{address}/metrics", headers=headers)
        with urllib.request.urlopen(asked, timeout=10, context=trust) as answer:
            return answer.read().decode()

    async with horolog_broker(settings=settings) as broker:
        assert broker.http.startswith("https://")
        found = await asyncio.to_thread(scrape, broker.http, "the token", certificates.client())
        assert 'horolog_certificate_expires_seconds{listener="HTTP"}' in found
        for token in ("another", None):
            with pytest.raises(urllib.error.HTTPError) as refused:
                await asyncio.to_thread(scrape, broker.http, token, certificates.client())
            with refused.value as answer:
                assert (answer.code, answer.read()) == (401, b"401 Unauthorized\n")
        with pytest.raises(urllib.error.URLError, match="certificate verify failed"):
            await asyncio.to_thread(scrape, broker.http, "the token", ssl.create_default_context())


async def test_it_is_killed_and_started_and_its_clock_moves_meanwhile():
    async with horolog_broker(clock=T0) as broker:
        port = broker.port
        assert broker.client_settings == {"bootstrap.servers": broker.bootstrap}
        await broker.kill()
        await broker.clock.advance(seconds=5)
        await broker.start()
        await broker.clock.advance(seconds=5)
        await broker.restart()
        assert (broker.port, broker.clock.wall_ms()) == (port, T0 + 10_000)
