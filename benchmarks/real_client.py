"""A client that people really use (librdkafka through confluent-kafka), as a check that raw frames did not measure a world of their own."""

import time
from collections.abc import Callable

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from benchmarks import frames

QUEUE_RECORDS = 200_000
POLL_EVERY = 1000
IN_TURN = 10
MOST_UNACKNOWLEDGED = 50_000
SENT_WITHIN_S = 120.0
CONSUME_BATCH = 5000
CONSUME_LIMIT_SECONDS = 60.0
CONSUMER_SETTINGS: dict[str, str | int | bool] = {
    "enable.auto.commit": False,
    "fetch.wait.max.ms": 100,
    # Once its own queue is full the client pauses for a second by default, which would be all that is measured.
    "fetch.queue.backoff.ms": 1,
}


def produce(address: str, topic: str, size_bytes: int, seconds: float) -> tuple[int, float]:
    """Records acknowledged and the time it took, the last flush included."""
    failures: list[str] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failures.append(str(error))

    settings = {"bootstrap.servers": address, "acks": 1, "linger.ms": 5, "queue.buffering.max.messages": QUEUE_RECORDS}
    producer = Producer(settings)
    values = frames.payloads(size_bytes)
    began, count = time.perf_counter(), 0
    while time.perf_counter() < began + seconds:
        for number in range(POLL_EVERY):
            _put(producer, topic, values[(count + number) % len(values)], delivered)
        count += POLL_EVERY
        producer.poll(0)
    left = producer.flush(60)
    if failures or left:
        raise KafkaException(f"{len(failures)} records refused, {left} not answered: {failures[:1]}")
    return count, time.perf_counter() - began


def produce_by_many(address: str, topic: str, size_bytes: int, seconds: float, producers: int) -> tuple[int, float]:
    """The same by several idempotent producers in turn, each of which sends what it has after a millisecond."""
    failures: list[str] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failures.append(str(error))

    settings = {"bootstrap.servers": address, "enable.idempotence": True, "linger.ms": 1}
    made = [Producer(settings) for _ in range(producers)]
    values = frames.payloads(size_bytes)
    began, count = time.perf_counter(), 0
    while time.perf_counter() < began + seconds:
        for producer in made:
            for number in range(IN_TURN):
                _put(producer, topic, values[(count + number) % len(values)], delivered)
            count += IN_TURN
            producer.poll(0)
    left = sum(producer.flush(60) for producer in made)
    if failures or left:
        raise KafkaException(f"{len(failures)} records refused, {left} not answered: {failures[:1]}")
    return count, time.perf_counter() - began


def send(address: str, topic: str, partitions: int, record: bytes, size_bytes: int) -> float:
    """Send so many bytes of the same record to all partitions in turn; the seconds until all are acknowledged. Raises TimeoutError."""
    producer = Producer({"bootstrap.servers": address, "log_level": 0, "linger.ms": 20, "acks": "all"})
    began = time.monotonic()
    for number in range(size_bytes // len(record)):
        while len(producer) > MOST_UNACKNOWLEDGED:
            producer.poll(0.01)
        producer.produce(topic, record, partition=number % partitions)
        producer.poll(0)
    if left := producer.flush(SENT_WITHIN_S):
        raise TimeoutError(f"{left} records were not acknowledged within {SENT_WITHIN_S:g} s")
    return time.monotonic() - began


def _put(producer: Producer, topic: str, value: bytes, delivered: Callable[[KafkaError | None, Message], None]) -> None:
    while True:
        try:
            producer.produce(topic, value, on_delivery=delivered)
            return
        except BufferError:
            producer.poll(0.05)


def consume(address: str, topic: str, records: int, seconds: float) -> tuple[int, float]:
    """Records read and the time it took: all of a topic from its start, as often as the time allows."""
    consumer = Consumer(CONSUMER_SETTINGS | {"bootstrap.servers": address, "group.id": f"bench-{time.monotonic_ns()}"})
    count, began = 0, time.perf_counter()
    try:
        while time.perf_counter() < began + seconds:
            consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
            _read_all(consumer, records)
            count += records
        return count, time.perf_counter() - began
    finally:
        consumer.close()


def _read_all(consumer: Consumer, records: int) -> None:
    count, limit = 0, time.perf_counter() + CONSUME_LIMIT_SECONDS
    while count < records:
        messages = consumer.consume(CONSUME_BATCH, timeout=0.3)
        for message in messages:
            if message.error() is not None:
                raise KafkaException(message.error())
        count += len(messages)
        if time.perf_counter() > limit:
            raise TimeoutError(f"{count} of {records} records within {CONSUME_LIMIT_SECONDS} s")


def consume_as_group(address: str, topic: str, records: int, members: int) -> tuple[int, float]:
    """Records read and the time it took: a new group reads all of a topic from its start, the joining of its members included."""
    group = f"bench-{time.monotonic_ns()}"
    settings = CONSUMER_SETTINGS | {"bootstrap.servers": address, "group.id": group, "auto.offset.reset": "earliest"}
    began = time.perf_counter()
    consumers = [Consumer(settings) for _ in range(members)]
    limit = began + CONSUME_LIMIT_SECONDS
    ends: dict[int | None, int] = {}  # a member that joins late may be given what another has read
    try:
        for consumer in consumers:
            consumer.subscribe([topic])
        while sum(ends.values()) < records:
            for consumer in consumers:
                _note_ends(consumer.consume(CONSUME_BATCH, timeout=0.01), ends)
            if time.perf_counter() > limit:
                raise TimeoutError(f"{sum(ends.values())} of {records} records within {CONSUME_LIMIT_SECONDS} s")
        return records, time.perf_counter() - began
    finally:
        for consumer in consumers:
            consumer.close()


def _note_ends(messages: list[Message], ends: dict[int | None, int]) -> None:
    """How far each partition has been read."""
    for message in messages:
        if message.error() is not None:
            raise KafkaException(message.error())
        partition, end = message.partition(), (message.offset() or 0) + 1
        ends[partition] = max(end, ends.get(partition, 0))
