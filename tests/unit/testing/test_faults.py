"""Faults on demand as real clients meet them: librdkafka, aiokafka and ours."""

import asyncio
import time

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError as AioKafkaError
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from horolog import Producer as OurProducer
from horolog import errors
from horolog.protocol.errors import ErrorCode
from horolog.testing import broker_in_thread, horolog_broker
from horolog.testing.faults import FaultKinds, code_named
from tests.support.waiting import until


class Librdkafka:
    """A producer that tells of the first failure."""

    def __init__(self, broker, **settings):
        given = {"bootstrap.servers": broker.bootstrap, "linger.ms": 0, "retries": 0, "message.timeout.ms": 3000}
        self.producer = Producer(given | settings)

    def send(self, value=b"x", topic="t", partition=0):
        """The error's name, and how long it took."""
        outcome = []
        began = time.perf_counter()
        self.producer.produce(
            topic, value, partition=partition, on_delivery=lambda error, _: outcome.append(error and error.name())
        )
        assert self.producer.flush(60) == 0
        return outcome[0], time.perf_counter() - began


@pytest.fixture
def broker():
    with broker_in_thread() as running:
        running.create_topic("t", 2)
        yield running


@pytest.fixture
def rdkafka(broker):
    client = Librdkafka(broker)
    assert client.send()[0] is None
    return client


def test_a_refusal_reaches_the_application_and_ends(broker, rdkafka):
    with broker.faults.refuse("NOT_ENOUGH_REPLICAS", "produce", topic="t", partition=0, times=1) as fault:
        assert rdkafka.send(partition=1)[0] is None
        assert rdkafka.send()[0] == "NOT_ENOUGH_REPLICAS"
        assert rdkafka.send()[0] is None
        assert fault.hits == 1
    assert [one.hits for one in broker.faults.armed] == []


def test_a_client_that_tries_again_gets_over_it(broker):
    client = Librdkafka(broker, **{"retries": 5, "retry.backoff.ms": 10, "enable.idempotence": True})
    with broker.faults.refuse("NOT_LEADER_OR_FOLLOWER", "produce", times=2) as fault:
        assert client.send(b"once")[0] is None
        assert fault.hits == 2
    broker.expect("t", count=1, value="once")


def test_a_lost_answer_is_no_lost_record_for_an_idempotent_producer(broker):
    client = Librdkafka(broker, **{"retries": 5, "enable.idempotence": True, "retry.backoff.ms": 10})
    assert client.send(b"first")[0] is None
    with broker.faults.drop("produce", after_work=True, times=1) as fault:
        assert client.send(b"once")[0] is None
        assert fault.hits == 1
    broker.expect("t", count=1, value="once")


def test_a_lost_answer_is_two_records_for_a_plain_one(broker):
    client = Librdkafka(broker, **{"retries": 5, "retry.backoff.ms": 10})
    assert client.send(b"first")[0] is None
    with broker.faults.drop("produce", after_work=True, times=1):
        assert client.send(b"twice")[0] is None
    broker.expect("t", count=2, value="twice")


def test_a_request_that_is_dropped_before_the_work_leaves_nothing(broker, rdkafka):
    with broker.faults.drop("produce", times=1):
        assert rdkafka.send(b"never")[0] == "_TRANSPORT"
    broker.expect_none("t", value="never", within="50ms")


def test_delays_before_and_after_the_work(broker, rdkafka):
    for after_work in (False, True):
        with broker.faults.delay("200ms", "produce", after_work=after_work):
            error, took_s = rdkafka.send()
            assert error is None
            assert took_s >= 0.2
    assert rdkafka.send()[1] < 0.2


def test_time_that_passes_ends_a_delay_and_a_fault(broker, rdkafka):
    with broker.faults.delay("1h", "produce", times=1) as fault:
        rdkafka.producer.produce("t", b"late", partition=0)
        while not fault.hits:
            rdkafka.producer.poll(0.01)
        broker.expect_none("t", value="late", within="50ms")
        broker.clock.advance("1h")
        broker.expect("t", count=1, value="late")
    broker.faults.refuse("NOT_ENOUGH_REPLICAS", "produce", lasts="10m")
    assert rdkafka.send()[0] == "NOT_ENOUGH_REPLICAS"
    broker.clock.advance("10m")
    assert rdkafka.send()[0] is None
    assert broker.faults.armed == []


@pytest.mark.parametrize("ending", ["end", "clear"])
async def test_a_delay_that_is_ended_lets_go_at_once(ending):
    async with horolog_broker() as broker, OurProducer(broker.bootstrap) as producer:
        await producer.send_and_wait("t", b"before")
        fault = broker.faults.delay("1h", "produce")
        waiting = asyncio.ensure_future(producer.send_and_wait("t", b"held"))
        async with asyncio.timeout(60):
            await until(lambda: fault.hits)
            fault.end() if ending == "end" else broker.faults.clear()
            await waiting
        assert broker.faults.armed == []
        assert len(broker.records("t")) == 2


@pytest.mark.parametrize("storage", ["memory", "folder"])
def test_a_full_disk_refuses_and_the_freed_one_goes_on(storage, tmp_path):
    with broker_in_thread(storage=tmp_path / "data" if storage == "folder" else "memory") as broker:
        for name in ("t", "other"):
            broker.create_topic(name)
        client = Librdkafka(broker)
        assert client.send(b"before")[0] is None
        with broker.faults.disk_full("t"):
            assert client.send(b"refused")[0] == "KAFKA_STORAGE_ERROR"
            assert client.send(b"kept", "other")[0] is None
        assert client.send(b"after")[0] is None
        with broker.faults.disk_full() as fault:
            assert client.send(b"refused", "other")[0] == "KAFKA_STORAGE_ERROR"
            assert [one.value for one in broker.records("t")] == [b"before", b"after"]
            assert fault.as_json()["kind"] == "disk_full"
        assert client.send(b"after", "other")[0] is None
        assert [one.value for one in broker.records("other")] == [b"kept", b"after"]


def test_a_leader_is_away_and_comes_back(broker):
    client = Librdkafka(broker, **{"retries": 20, "retry.backoff.ms": 20, "message.timeout.ms": 10_000})
    assert client.send(b"before")[0] is None
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"}
    consumer = Consumer(settings)
    consumer.subscribe(["t"])
    assert consumer.poll(60).value() == b"before"
    with broker.faults.leader_away("t", 0):
        assert [one.leader for one in admin.list_topics("t", 5).topics["t"].partitions.values()] == [-1, 1]
        client.producer.produce("t", b"waits", partition=0)
        assert client.producer.flush(0.3) == 1
    assert client.producer.flush(60) == 0
    message = consumer.poll(60)
    assert (message.error(), message.value()) == (None, b"waits")
    consumer.close()


def test_throttling_is_told_and_time_ends_it(broker):
    told = []
    client = Librdkafka(broker, throttle_cb=lambda event: told.append(event.throttle_time))
    assert client.send()[0] is None
    with broker.faults.throttle("1h", "produce", times=1):
        assert client.send()[0] is None
        deadline = time.monotonic() + 60
        while not told and time.monotonic() < deadline:
            client.producer.poll(0.05)
    assert told[-1] == 3600.0
    broker.clock.advance("1h")
    assert client.send()[0] is None


async def test_aiokafka_and_our_client_meet_them_on_the_same_loop():
    async with horolog_broker() as broker:
        broker.create_topic("t")
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap, request_timeout_ms=2000) as producer:
            await producer.send_and_wait("t", b"one")
            with broker.faults.refuse("MESSAGE_TOO_LARGE", "produce", times=1), pytest.raises(AioKafkaError):
                await producer.send_and_wait("t", b"two")
        with broker.faults.refuse("GROUP_AUTHORIZATION_FAILED", "FindCoordinator") as fault:
            consumer = AIOKafkaConsumer("t", bootstrap_servers=broker.bootstrap, group_id="g")
            with pytest.raises(AioKafkaError):
                await consumer.start()
            await consumer.stop()
            assert fault.hits
        async with OurProducer(broker.bootstrap) as producer:
            await producer.send_and_wait("t", b"three")
            refusing = broker.faults.refuse("TOPIC_AUTHORIZATION_FAILED", "produce", topic="t", times=1)
            with refusing, pytest.raises(errors.KafkaError, match="TOPIC_AUTHORIZATION_FAILED"):
                await producer.send_and_wait("t", b"four")
            await producer.send_and_wait("t", b"five")
        assert [one.value for one in await broker.expect("t")] == [b"one", b"three", b"five"]


def test_errors_by_name_and_number():
    assert code_named("not_enough_replicas") is ErrorCode.NOT_ENOUGH_REPLICAS
    assert code_named(19) is ErrorCode.NOT_ENOUGH_REPLICAS
    with pytest.raises(ValueError, match="do you mean NOT_ENOUGH_REPLICAS"):
        code_named("NOT_ENOUGH_REPLICA")
    for wrong in ("NONE", 0, 9999):
        with pytest.raises(ValueError, match="not an error code of Kafka"):
            code_named(wrong)
    with pytest.raises(ValueError, match=r"^there is no error 'x'$"):
        code_named("x")


def test_arguments_that_make_no_sense_are_refused(broker):
    for wrong in (
        lambda: broker.faults.delay("0s"),
        lambda: broker.faults.throttle(-1),
        lambda: broker.faults.refuse("NOT_ENOUGH_REPLICAS", lasts="0s"),
        lambda: broker.faults.refuse("NOT_ENOUGH_REPLICAS", partition=1),
        lambda: broker.faults.drop("teleport"),
    ):
        with pytest.raises(ValueError, match=r".+"):
            wrong()
    assert broker.faults.armed == []
    with pytest.raises(NotImplementedError):
        FaultKinds().drop()
    assert "Faults" in repr(broker.faults)


async def test_a_broker_stops_while_its_disk_is_full():
    async with horolog_broker() as broker:
        broker.create_topic("t")
        fault = broker.faults.disk_full()
        spent = broker.faults.drop(times=1)
        broker.faults.end(spent)
        broker.faults.end(spent)
        assert fault.is_armed
        assert broker.faults.armed == [fault]


def test_faults_of_a_run_end_before_the_next_one_starts(broker):
    fault = broker.faults.disk_full()
    broker.kill()
    broker.start()
    assert (fault.is_armed, broker.faults.armed) == (False, [])
    broker.create_topic("later")
