"""Quotas that Kafka's own tool sets hold a producer and a consumer of librdkafka to their rates, as a real Kafka beside it does.

Both brokers are asked at the same time, each by clients of its own that begin rested: they send at once what all windows allow, and
again when these have passed, so that rates are those of whole rounds.
"""

import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks import kafka
from tests.support.broker_process import PROJECT, BrokerProcess

pytestmark = [pytest.mark.kafka_jars, pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(300)]

RELEASE = "4.3.1"
RATE = 500_000
MEASURED_S = 20.0
STORED_BYTES = int(RATE * (MEASURED_S + 15))
VALUE = bytes(1000)
SLACK = 0.1


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[dict[str, BrokerProcess]]:
    try:
        kafka.libs(RELEASE)
    except kafka.MissingJarsError as error:
        pytest.skip(f"no jars of Kafka {RELEASE}: {error}")
    ours = BrokerProcess(tmp_path / "ours")
    with kafka.running(RELEASE, data=tmp_path / "theirs") as node:
        ours.start()
        try:
            yield {"horolog": ours, "kafka": BrokerProcess.at(node.address)}
        finally:
            ours.stop()


def configure(broker: BrokerProcess, *words: str) -> str:
    java = [
        "java",
        "-Xmx192m",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        f"{kafka.libs(RELEASE)}/*",
        "kafka.admin.ConfigCommand",
    ]
    command = [*java, "--bootstrap-server", broker.address, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=True, cwd=PROJECT)
    return done.stdout


def store(broker: BrokerProcess) -> None:
    admin = AdminClient({"bootstrap.servers": broker.address})
    for future in admin.create_topics([NewTopic("sent", 1, 1), NewTopic("read", 1, 1)]).values():
        future.result(30)
    producer = Producer({"bootstrap.servers": broker.address, "client.id": "nobody", "linger.ms": 20})
    for _ in range(STORED_BYTES // len(VALUE)):
        producer.poll(0)
        while True:
            try:
                producer.produce("read", VALUE, partition=0)
                break
            except BufferError:
                producer.poll(0.05)
    assert producer.flush(60) == 0


class Flow:
    """Counts bytes until it is told to stop."""

    def __init__(self, broker: BrokerProcess) -> None:
        self.moved_bytes = 0
        self._address = broker.address
        self._ends = False
        self._thread = threading.Thread(target=self._run)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ends = True
        self._thread.join(60)

    def _run(self) -> None:
        raise NotImplementedError


class Sending(Flow):
    def _run(self) -> None:
        settings = {"bootstrap.servers": self._address, "client.id": "sender", "linger.ms": 5, "batch.size": 16_384}
        producer = Producer({**settings, "queue.buffering.max.messages": 200})
        while not self._ends:
            try:
                producer.produce("sent", VALUE, partition=0, on_delivery=self._delivered)
            except BufferError:
                producer.poll(0.05)
            producer.poll(0)
        producer.purge()
        producer.flush(10)

    def _delivered(self, error: object, _: object) -> None:
        if error is None:
            self.moved_bytes += len(VALUE)


class Reading(Flow):
    def _run(self) -> None:
        settings = {"bootstrap.servers": self._address, "client.id": "reader", "group.id": "g"}
        consumer = Consumer({**settings, "fetch.message.max.bytes": 65_536, "queued.max.messages.kbytes": 128})
        consumer.assign([TopicPartition("read", 0, 0)])
        while not self._ends:
            for message in consumer.consume(500, 0.1):
                if message.error() is None:
                    self.moved_bytes += len(VALUE)
        consumer.close()


@pytest.mark.long
@pytest.mark.one_worker("each of two has half of the rate")
def test_rates_are_those_of_a_real_kafka(brokers: dict[str, BrokerProcess]) -> None:
    flows: dict[tuple[str, str], Flow] = {}
    for name, broker in brokers.items():
        store(broker)
        for client, key in (("sender", "producer_byte_rate"), ("reader", "consumer_byte_rate")):
            entity = ("--entity-type", "clients", "--entity-name", client)
            configure(broker, "--alter", *entity, "--add-config", f"{key}={RATE}")
            assert f"{key}={RATE}.0" in configure(broker, "--describe", *entity)
        flows[name, "sent"], flows[name, "read"] = Sending(broker), Reading(broker)
    for flow in flows.values():
        flow.start()
    try:
        began = time.monotonic()
        time.sleep(MEASURED_S)
        took_s = time.monotonic() - began
        rates = {one: flow.moved_bytes / took_s for one, flow in flows.items()}
    finally:
        for flow in flows.values():
            flow.stop()
    for way in ("sent", "read"):
        assert rates["horolog", way] == pytest.approx(rates["kafka", way], rel=SLACK), rates
        assert rates["horolog", way] == pytest.approx(RATE, rel=2 * SLACK), rates
