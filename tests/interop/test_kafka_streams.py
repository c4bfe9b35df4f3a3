"""Kafka Streams, newest and unmodified, counts words exactly once though it is killed, and the broker too."""

from __future__ import annotations

import random
import struct
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.interop.toolchains import java_program
from tests.support.broker_process import BrokerProcess
from tests.support.fixtures import BrokerStarter

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

VERSION = "4.3.1"
PARTITIONS = 2
LINES = 400
WORDS = [f"word{number}" for number in range(20)]
WAIT_SECONDS = 120.0
INPUT, OUTPUT = "lines", "counts"
SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.streams.initial.rebalance.delay.ms": 0,
    "group.streams.heartbeat.interval.ms": 300,
    "group.streams.min.heartbeat.interval.ms": 300,
    "group.streams.min.session.timeout.ms": 6000,
    "group.streams.session.timeout.ms": 6000,
}
"""Members hear of their tasks soon, and one that was killed is missed soon."""


def lines(seed: int) -> list[str]:
    chance = random.Random(seed)
    return [" ".join(chance.choices(WORDS, k=5)) for _ in range(LINES)]


def produce(broker: BrokerProcess, some: Sequence[str]) -> None:
    producer = Producer({"bootstrap.servers": broker.address, "log_level": 0})
    for number, line in enumerate(some):
        producer.produce(INPUT, line.encode(), partition=number % PARTITIONS)
    assert not producer.flush(WAIT_SECONDS)


@contextmanager
def running(command: Sequence[str], scratch: Path) -> Iterator[subprocess.Popen[bytes]]:
    with (scratch / "streams.log").open("ab") as out:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    try:
        yield process
    finally:
        process.kill()
        process.wait(30)


class Counts:
    """Every count that was put out, by word and in order, as readers of committed records see it."""

    def __init__(self, address: str) -> None:
        self.of: dict[str, list[int]] = {}
        self._consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": "reader of counts",
                "isolation.level": "read_committed",
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition(OUTPUT, number, OFFSET_BEGINNING) for number in range(PARTITIONS)])

    def read_until(self, count: int, process: subprocess.Popen[bytes], log: Path) -> None:
        """So many have come, or more."""
        end = time.monotonic() + WAIT_SECONDS
        while sum(map(len, self.of.values())) < count:
            assert process.poll() is None, f"the program ended\n{log.read_text()[-4000:]}"
            assert time.monotonic() < end, f"{sum(map(len, self.of.values()))} counts\n{log.read_text()[-4000:]}"
            self.read()

    def read(self) -> None:
        for message in self._consumer.consume(500, 0.2):
            if message.error() is None:
                key, value = message.key(), message.value()
                assert key is not None
                assert value is not None
                self.of.setdefault(key.decode(), []).append(struct.unpack(">q", value)[0])

    def close(self) -> None:
        self._consumer.close()


@pytest.mark.parametrize("protocol", ["classic", "streams"])
def test_words_are_counted_exactly_once_through_kills(
    start_broker: BrokerStarter, tmp_path: Path, protocol: str
) -> None:
    broker = start_broker(**SETTINGS)
    admin = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
    for future in admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in (INPUT, OUTPUT)]).values():
        future.result(30)
    program = java_program(VERSION, "WordCount", artifact="kafka-streams", needs=())(tmp_path)
    command = [*program, broker.address, "word-count", INPUT, OUTPUT, str(tmp_path / "state"), protocol]
    log, written, counts = tmp_path / "streams.log", [lines(seed) for seed in (1, 2, 3)], Counts(broker.address)
    expected = Counter(word for some in written for line in some for word in line.split())
    a_third = 5 * LINES
    with running(command, tmp_path) as process:
        produce(broker, written[0])
        counts.read_until(a_third // 2, process, log)  # and is killed in the middle of it
    produce(broker, written[1])
    with running(command, tmp_path) as process:
        counts.read_until(a_third + a_third // 2, process, log)
        broker.kill()
        broker.start()
        produce(broker, written[2])
        counts.read_until(3 * a_third, process, log)
    counts.read()
    counts.close()
    assert counts.of == {word: list(range(1, count + 1)) for word, count in expected.items()}
