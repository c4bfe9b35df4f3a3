"""A producer that remembers what was acknowledged, and where; and a reader that checks the log against it."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

WINDOW = 400
"""Records in flight at a time."""

FLUSH_SECONDS = 75.0
"""Longer than any producer here waits for an answer, so that each record has its outcome."""

Place = tuple[int, int]  # partition, offset


class Witness:
    """Produces numbered records to a topic while `producing`; `acknowledged` has those that the broker acknowledged."""

    def __init__(
        self, address: str, topic: str, *, partitions: int = 1, value_bytes: int = 100, **config: object
    ) -> None:
        self.topic = topic
        self.partitions = partitions
        self.acknowledged: dict[int, Place] = {}
        self.errors: list[tuple[float, int]] = []
        self.last_acknowledged_at = 0.0
        self._padding = b"." * value_bytes
        self._number = 0
        self._stopping = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": address,
                "linger.ms": 2,
                "message.timeout.ms": 10_000,
                "reconnect.backoff.max.ms": 200,
                "retry.backoff.max.ms": 200,
                "log_level": 0,
                **config,
            }
        )

    def __repr__(self) -> str:
        return f"<Witness of {len(self.acknowledged)} records, {len(self.errors)} errors>"

    def _delivered(self, number: int, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.errors.append((time.monotonic(), error.code()))
            return
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        self.acknowledged[number] = (partition, offset)
        self.last_acknowledged_at = time.monotonic()

    def _send_one(self) -> None:
        number = self._number
        self._number += 1
        self._producer.produce(
            self.topic,
            b"%d" % number + self._padding,
            partition=number % self.partitions,
            on_delivery=lambda error, message: self._delivered(number, error, message),
        )

    def _work(self) -> None:
        while not self._stopping.is_set():
            if len(self._producer) < WINDOW:
                self._send_one()
                self._producer.poll(0)
            else:
                self._producer.poll(0.005)

    @contextmanager
    def producing(self) -> Iterator["Witness"]:
        """Produce as fast as possible, in a thread; at the end, wait for records in flight."""
        self._stopping.clear()
        thread = threading.Thread(target=self._work)
        thread.start()
        try:
            yield self
        finally:
            self._stopping.set()
            thread.join(20)
            self._producer.flush(FLUSH_SECONDS)

    def send(self, count: int) -> None:
        """Send a number of records, and wait for their responses."""
        for _ in range(count):
            self._send_one()
        self._producer.flush(FLUSH_SECONDS)

    def wait_for(self, count: int, timeout_s: float = 20.0) -> None:
        """Wait until this many more records are acknowledged."""
        wanted = len(self.acknowledged) + count
        wait_until(lambda: len(self.acknowledged) >= wanted, timeout_s, f"{count} more records acknowledged: {self!r}")

    def wait_for_error(self, timeout_s: float = 20.0) -> int:
        """Wait until one more record is refused; returns the code."""
        known = len(self.errors)
        wait_until(lambda: len(self.errors) > known, timeout_s, "a record refused")
        return self.errors[known][1]

    def check(self, records: dict[Place, int], *, exactly_once: bool = False) -> None:
        """Check that every acknowledged record is at its offset; with idempotence, none is duplicated or out of order."""
        lost = {number: place for number, place in self.acknowledged.items() if records.get(place) != number}
        assert not lost, (
            f"{len(lost)} of {len(self.acknowledged)} acknowledged records lost: {sorted(lost.items())[:5]}"
        )
        if exactly_once:
            for partition in range(self.partitions):
                numbers = [records[place] for place in sorted(records) if place[0] == partition]
                assert numbers == sorted(set(numbers)), "twice or out of order"


def wait_until(condition, timeout_s, what):  # type: ignore[no-untyped-def]
    """Poll a condition until it holds, in bounded time."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}"
        time.sleep(0.02)


def create(address: str, topic: str, partitions: int = 1, **config: str) -> None:
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    settings = {key.replace("_", "."): value for key, value in config.items()}
    (future,) = admin.create_topics([NewTopic(topic, partitions, 1, config=settings)]).values()
    future.result(20)


def numbers_in(
    address: str, topic: str, partitions: int = 1, *, timeout_s: float = 30.0, isolation: str = "read_uncommitted"
) -> dict[Place, int]:
    """Every record of a topic by its place, as a consumer reads them."""
    values = values_in(address, topic, partitions, timeout_s=timeout_s, isolation=isolation)
    return {place: int(value.rstrip(b".")) for place, value in values.items()}


def values_in(
    address: str, topic: str, partitions: int = 1, *, timeout_s: float = 30.0, isolation: str = "read_uncommitted"
) -> dict[Place, bytes]:
    """The values of a topic's records, in the same way."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "reader",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "check.crcs": True,
            "log_level": 0,
        }
    )
    records: dict[Place, bytes] = {}
    try:
        consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
        ended: set[int] = set()
        deadline = time.monotonic() + timeout_s
        while len(ended) < partitions:
            assert time.monotonic() < deadline, f"read {len(records)} records of {topic}, and no end"
            for message in consumer.consume(1000, 0.5):
                error, partition, offset = message.error(), message.partition(), message.offset()
                assert partition is not None
                if error is not None:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    ended.add(partition)
                    continue
                ended.discard(partition)
                value = message.value()
                assert value is not None
                assert offset is not None
                records[partition, offset] = value
    finally:
        consumer.close()
    return records
