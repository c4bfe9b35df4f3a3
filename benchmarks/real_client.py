"""A client that people really use (librdkafka through confluent-kafka), as a check that raw frames did not measure a world of their own."""

import time
from collections.abc import Callable

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from benchmarks import frames

QUEUE_RECORDS = 200_000
POLL_EVERY = 1000
CONSUME_BATCH = 5000


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


def _put(producer: Producer, topic: str, value: bytes, delivered: Callable[[KafkaError | None, Message], None]) -> None:
    while True:
        try:
            producer.produce(topic, value, on_delivery=delivered)
            return
        except BufferError:
            producer.poll(0.05)


def consume(address: str, topic: str, seconds: float) -> tuple[int, float]:
    """Records read from the start of a topic, at most to its end."""
    group = f"bench-{time.monotonic_ns()}"
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": group, "enable.auto.commit": False, "fetch.wait.max.ms": 100}
    )
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    count, began, last = 0, time.perf_counter(), time.perf_counter()
    while time.perf_counter() < began + seconds:
        messages = consumer.consume(CONSUME_BATCH, timeout=0.3)
        if not messages and count:
            break
        for message in messages:
            if message.error() is not None:
                raise KafkaException(message.error())
        count += len(messages)
        last = time.perf_counter()
    consumer.close()
    return count, last - began
