"""Ten restarts under idempotent producers of librdkafka and Java: nobody dies of them, and everything is there once and in order."""

import random
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tests.interop.toolchains import java_program
from tests.support.broker_process import BrokerProcess
from tests.support.fixtures import BrokerStarter
from tests.support.history import History, Place, Row
from tests.support.witness import create, values_in, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

TOPIC, PARTITIONS = "t", 3
RESTARTS = 10
UP_SECONDS = (0.1, 0.8)
MOST_IN_QUEUE = 200
JAVA_NAMES = ("java-a", "java-b", "java-c")
SMALL_SEGMENT_BYTES = 16384
"""Rolls are frequent, so that a kill comes soon after one."""


class Senders:
    """Producers of librdkafka, one thread each, with five small batches on their way."""

    def __init__(self, address: str, history: History) -> None:
        self.address = address
        self.history = history
        self.stopping = threading.Event()
        self.acknowledged = 0
        self._guard = threading.Lock()
        names = [f"librdkafka-{number}" for number in range(4)]
        self._threads = [threading.Thread(target=self._send, args=(name,), daemon=True) for name in names]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self.stopping.set()
        for thread in self._threads:
            thread.join(90)
            assert not thread.is_alive()

    def _send(self, name: str) -> None:
        def told(error: KafkaError) -> None:
            if error.fatal():
                self._died(name, error)

        producer = Producer(
            {
                "bootstrap.servers": self.address,
                "enable.idempotence": True,
                "max.in.flight.requests.per.connection": 5,
                "linger.ms": 0.5,
                "batch.num.messages": 3,
                "message.timeout.ms": 120_000,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 20,
                "log_level": 0,
                "error_cb": told,
            }
        )
        number = 0
        try:
            while not self.stopping.is_set():
                self._produce(producer, name, number)
                number += 1
                producer.poll(0.0005 if len(producer) < MOST_IN_QUEUE else 0.02)
            assert producer.flush(60) == 0
        except KafkaException as error:
            self._died(name, error)

    def _died(self, name: str, error: object) -> None:
        with self._guard:
            self.history.died(name, error)
        self.stopping.set()

    def _produce(self, producer: Producer, name: str, number: int) -> None:
        value, partition = f"{name}-{number}".encode(), number % PARTITIONS
        with self._guard:
            self.history.attempt(value, (TOPIC, partition), in_order_of=name)

        def delivered(error: KafkaError | None, message: Message) -> None:
            offset = message.offset()
            if error is None and offset is not None:
                self.history.acknowledge(value, offset)
                self.acknowledged += 1
            else:
                self._died(name, error)

        producer.produce(TOPIC, value, partition=partition, on_delivery=delivered)


@contextmanager
def java_senders(broker: BrokerProcess, history: History, scratch: Path) -> Iterator[None]:
    """A Java process with several producers; at the end what it was told is in the history."""
    program = java_program("3.9.2", "Restarts", needs=())(scratch)
    command = [*program, broker.address, TOPIC, str(PARTITIONS), *JAVA_NAMES]
    output = scratch / "output"
    with output.open("wb") as lines, (scratch / "errors").open("wb") as errors:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=lines, stderr=errors)
        try:
            yield
            process.communicate(timeout=150)
        finally:
            process.kill()
            process.wait()
    told = [line.split("\t") for line in output.read_text().splitlines() if line.count("\t") == 3]
    order = {name: sorted((line for line in told if sent_by(line[1]) == name), key=sent_as) for name in JAVA_NAMES}
    for name, lines_of in order.items():
        assert len(lines_of) > 100, f"{name} did not come to send: {(scratch / 'errors').read_text()[-2000:]}"
        for kind, value, partition, rest in lines_of:
            if kind == "died":
                history.died(name, rest)
                continue
            history.attempt(value.encode(), (TOPIC, int(partition)), in_order_of=name)
            if kind == "acked":
                history.acknowledge(value.encode(), int(rest))
            else:
                history.died(name, f"{value}: {rest}")


def sent_by(value: str) -> str:
    return value.rpartition("-")[0] if value not in JAVA_NAMES else value


def sent_as(line: list[str]) -> int:
    number = line[1].rpartition("-")[2]
    return int(number) if number.isdigit() else -1


def restart_often(broker: BrokerProcess, senders: Senders, end: Callable[[], int]) -> None:
    """Restarts at random instants, each once everybody has got on."""
    chance = random.Random(10)
    for _ in range(RESTARTS):
        known = senders.acknowledged
        wait_until(lambda known=known: senders.acknowledged > known + 100 or senders.stopping.is_set(), 60, "records")
        time.sleep(chance.uniform(*UP_SECONDS))
        end()
        broker.start()


def final_of(broker: BrokerProcess) -> dict[Place, list[Row]]:
    """The log's content, read from its beginning."""
    final: dict[Place, list[Row]] = {(TOPIC, partition): [] for partition in range(PARTITIONS)}
    for (partition, offset), value in sorted(values_in(broker.address, TOPIC, PARTITIONS, timeout_s=60.0).items()):
        final[TOPIC, partition].append((offset, value))
    return final


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_producers_of_librdkafka(start_broker: BrokerStarter, end: str) -> None:
    broker = start_broker(log__segment__bytes=SMALL_SEGMENT_BYTES)
    create(broker.address, TOPIC, PARTITIONS)
    history = History()
    senders = Senders(broker.address, history)
    senders.start()
    restart_often(broker, senders, getattr(broker, end))
    senders.end()
    assert history.problems(final_of(broker)) == []
    assert all(write.offset is not None for write in history.writes.values()), "and everything was acknowledged"


@pytest.mark.long
@pytest.mark.java
def test_producers_of_librdkafka_and_java(start_broker: BrokerStarter, tmp_path: Path) -> None:
    broker = start_broker()
    create(broker.address, TOPIC, PARTITIONS)
    history = History()
    senders = Senders(broker.address, history)
    with java_senders(broker, history, tmp_path):
        senders.start()
        restart_often(broker, senders, broker.stop)
        senders.end()
    assert history.problems(final_of(broker)) == []
    assert all(write.offset is not None for write in history.writes.values()), "and everything was acknowledged"
