"""Reads topics from their start with a Python client and prints each record: `read_topics.py CLIENT ADDRESS COUNT TOPIC...`.

A line is: topic, offset, timestamp type, timestamp, key, value; the last two in hexadecimal, `-` for null. Runs in an environment
of its own, in which there is only the client: nothing of the project is imported.
"""

import sys
import time

PATIENCE_SECONDS = 60


def show(topic, offset, time_type, timestamp, key, value):
    told = [topic, offset, time_type, timestamp, *("-" if data is None else bytes(data).hex() for data in (key, value))]
    print(*told, sep="\t")


def read_with_confluent(address, count, topics):
    from confluent_kafka import OFFSET_BEGINNING, TIMESTAMP_LOG_APPEND_TIME, Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": address, "group.id": "reader", "enable.auto.commit": False})
    for topic in topics:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        got, deadline = 0, time.monotonic() + PATIENCE_SECONDS
        while got < count and time.monotonic() < deadline:
            for message in consumer.consume(count, 0.2):
                if message.error():
                    print(topic, message.error(), file=sys.stderr)
                    continue
                time_type, timestamp = message.timestamp()
                appended = int(time_type == TIMESTAMP_LOG_APPEND_TIME)
                timestamp = timestamp if time_type else -1
                show(topic, message.offset(), appended, timestamp, message.key(), message.value())
                got += 1
    consumer.close()


def read_with_kafka_python(address, count, topics):
    from kafka import KafkaConsumer, TopicPartition

    for topic in topics:
        consumer = KafkaConsumer(bootstrap_servers=address, consumer_timeout_ms=3000, enable_auto_commit=False)
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek_to_beginning()
        try:
            for _, one in zip(range(count), consumer, strict=False):
                timestamp = -1 if one.timestamp is None else one.timestamp
                show(topic, one.offset, one.timestamp_type, timestamp, one.key, one.value)
        except Exception as error:  # noqa: BLE001 - whatever it is, the test shows it
            print(topic, repr(error), file=sys.stderr)
        consumer.close()


def read_with_aiokafka(address, count, topics):
    import asyncio

    asyncio.run(_read_with_aiokafka(address, count, topics))


async def _read_with_aiokafka(address, count, topics):
    import asyncio

    from aiokafka import AIOKafkaConsumer, TopicPartition

    for topic in topics:
        consumer = AIOKafkaConsumer(bootstrap_servers=address, enable_auto_commit=False)
        await consumer.start()
        place = TopicPartition(topic, 0)
        consumer.assign([place])
        await consumer.seek_to_beginning(place)
        try:
            for _ in range(count):
                one = await asyncio.wait_for(consumer.getone(), PATIENCE_SECONDS)
                show(topic, one.offset, one.timestamp_type, one.timestamp, one.key, one.value)
        except Exception as error:  # noqa: BLE001 - whatever it is, the test shows it
            print(topic, repr(error), file=sys.stderr)
        await consumer.stop()


READERS = {
    "confluent": read_with_confluent,
    "kafka-python": read_with_kafka_python,
    "aiokafka": read_with_aiokafka,
}

if __name__ == "__main__":
    READERS[sys.argv[1]](sys.argv[2], int(sys.argv[3]), sys.argv[4:])
