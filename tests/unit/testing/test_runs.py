"""A broker that is killed, stopped and started again, on the same data and ports."""

import os

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Producer

from horolog.testing import broker_in_thread, horolog_broker
from horolog.testing.runs import AlreadyRunning, NotRunning, copy_folder


async def produce(broker, *values, acks="all"):
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap, acks=acks) as producer:
        for value in values:
            await producer.send_and_wait("orders", value)


def values(broker):
    return [one.value for one in broker.records("orders")]


@pytest.fixture(params=["memory", "folder"])
def storage(request, tmp_path):
    return "memory" if request.param == "memory" else tmp_path / "data"


async def test_a_restart_keeps_data_and_ports(storage):
    async with horolog_broker(storage=storage, horolog_http_listen="127.0.0.1:0") as broker:
        addresses, first = (broker.bootstrap, broker.http), broker.broker
        broker.create_topic("orders")
        await produce(broker, b"one")
        await broker.restart()
        assert (broker.bootstrap, broker.http) == addresses
        assert broker.broker is not first
        await produce(broker, b"two")
        assert values(broker) == [b"one", b"two"]


async def test_a_killed_broker_has_not_stopped_cleanly_and_keeps_what_it_has_acknowledged(storage):
    async with horolog_broker(storage=storage) as broker:
        broker.create_topic("orders")
        epochs = {await epoch(broker)}
        await produce(broker, b"one")
        await broker.kill()
        with pytest.raises(NotRunning, match="the broker is down"):
            broker.records("orders")
        with pytest.raises(NotRunning):
            await broker.kill()
        await broker.clock.advance(seconds=1)
        await broker.start()
        assert values(broker) == [b"one"]
        assert await epoch(broker) not in epochs, "a leader's epoch goes up after a kill"


async def epoch(broker):
    topic = broker.broker.cluster.topics["orders"]
    return topic.find(0).leader_epoch


async def test_a_power_cut_loses_what_was_not_synced():
    async with horolog_broker() as broker:
        broker.create_topic("orders", flush_messages=1_000_000)
        await produce(broker, b"synced")
        await produce(broker, b"written", acks=1)
        await broker.kill(power_cut=True)
        await broker.start()
        assert values(broker) == [b"synced"]


async def test_a_power_cut_needs_storage_that_knows_it(tmp_path):
    async with horolog_broker(storage=tmp_path / "data") as broker:
        with pytest.raises(ValueError, match="power_cut=True needs storage in memory"):
            await broker.kill(power_cut=True)
        assert broker.topics() == {}, "it still runs"


async def test_a_broker_that_runs_is_not_started():
    async with horolog_broker() as broker:
        with pytest.raises(AlreadyRunning, match="the broker is running"):
            await broker.start()


async def test_a_client_goes_on_after_the_kill():
    async with horolog_broker() as broker:
        broker.create_topic("orders")
        async with AIOKafkaConsumer(
            "orders", bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest"
        ) as consumer:
            await produce(broker, b"one")
            assert (await consumer.getone()).value == b"one"
            await broker.kill()
            await broker.start()
            await produce(broker, b"two")
            assert (await consumer.getone()).value == b"two"


async def test_faults_end_with_their_run():
    async with horolog_broker() as broker:
        fault = broker.faults.refuse("NOT_ENOUGH_REPLICAS", "produce")
        await broker.restart()
        assert (fault.is_armed, broker.faults.armed) == (False, [])
        broker.create_topic("orders")
        await produce(broker, b"one")
        with broker.faults.refuse("NOT_ENOUGH_REPLICAS", "produce", times=1) as later:
            await produce(broker, b"two")
        assert later.hits == 1


def test_a_broker_in_a_thread_is_killed_and_started():
    with broker_in_thread() as broker:
        broker.create_topic("orders")
        producer = Producer(
            {"bootstrap.servers": broker.bootstrap, "enable.idempotence": True, "reconnect.backoff.max.ms": 100}
        )
        producer.produce("orders", b"one")
        assert producer.flush(20) == 0
        broker.kill()
        producer.produce("orders", b"two")
        broker.start()
        assert producer.flush(30) == 0
        assert values(broker) == [b"one", b"two"]
        broker.restart()
        assert values(broker) == [b"one", b"two"]


def test_a_copy_has_the_content_and_the_times_and_no_empty_pieces(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    with (source / "sparse").open("wb") as file:
        file.write(b"head")
        file.truncate(3 << 20)
    (source / "small").write_bytes(b"\0" * 10)
    os.utime(source / "small", (100, 100))
    for _ in range(2):
        copy_folder(source, tmp_path / "target")
    copies = tmp_path / "target"
    assert (copies / "sparse").read_bytes() == (source / "sparse").read_bytes()
    assert (copies / "small").read_bytes() == b"\0" * 10
    assert (copies / "small").stat().st_mtime == 100
    assert (copies / "sparse").stat().st_blocks * 512 < 3 << 20
