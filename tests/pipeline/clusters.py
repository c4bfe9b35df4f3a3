"""Topics of a test's broker, filled and read with a plain client, in the form in which rows of data frames are compared."""

import hashlib

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.pipeline import samples

PARTITIONS = 3
SETTINGS = {"num.partitions": str(PARTITIONS), "log.retention.ms": "-1"}
_SECONDS = 30


def create(broker, topic, partitions=PARTITIONS, **config):
    settings = {name.replace("_", "."): str(value) for name, value in config.items()}
    admin = AdminClient({"bootstrap.servers": broker.address})
    (made,) = admin.create_topics([NewTopic(topic, partitions, config=settings)]).values()
    made.result(_SECONDS)


def fill(broker, topic, codec="none", start=0, count=3000):
    """Records a second apart in each partition, some without key, value, or with headers."""
    producer = Producer({"bootstrap.servers": broker.address, "compression.type": codec, "linger.ms": 20})
    for n in range(start, start + count):
        headers = [("n", str(n)), ("n", None)] if n % 5 == 0 else None
        key = None if n % 7 == 0 else b"key %d" % (n % 50)
        value = None if n % 11 == 0 else b"value %d " % n * (n % 9)
        time = samples.BASE_MS + 1000 * (n // PARTITIONS)
        producer.produce(topic, value, key, n % PARTITIONS, timestamp=time, headers=headers)
        producer.poll(0)
    assert producer.flush(_SECONDS) == 0


def committed(broker, topic, partitions=PARTITIONS):
    """Those that readers of committed records get."""
    return consumed(broker, topic, partitions, "read_committed")


def consumed(broker, topic, partitions=PARTITIONS, isolation="read_uncommitted"):
    """Every record, as a plain consumer reads it, in the form that `shown` gives."""
    consumer = Consumer(
        {
            "isolation.level": isolation,
            "bootstrap.servers": broker.address,
            "group.id": "none",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, n, 0) for n in range(partitions)])
    found, ended = [], set()
    while len(ended) < partitions:
        for message in consumer.consume(1000, 1):
            if message.error():
                ended.add(message.partition())
                continue
            kind, time = message.timestamp()
            headers = list(message.headers() or []) or None
            row = (
                message.key(),
                message.value(),
                topic,
                message.partition(),
                message.offset(),
                time,
                kind - 1,
                headers,
            )
            found.append(row)
    consumer.close()
    return sorted(found, key=place)


def place(row):
    return row[2:5]


def shown(frame):
    """The rows of a data frame; times in milliseconds."""
    columns = ("key", "value", "topic", "partition", "offset", "unix_millis(timestamp)", "timestampType", "headers")
    found = []
    for row in frame.selectExpr(*columns).collect():
        *plain, headers = tuple(row)
        key, value = (None if one is None else bytes(one) for one in plain[:2])
        pairs = [(one.key, None if one.value is None else bytes(one.value)) for one in headers] if headers else None
        found.append((key, value, *plain[2:], pairs))
    return sorted(found, key=place)


def digest(rows, *, offsets=True):
    """One hash over partition, offset, time, key, value and headers of each of them; without offsets their order counts."""
    found = hashlib.sha256()
    for row in sorted(rows, key=place):
        key, value, _topic, partition, offset, time_ms, _kind, headers = row
        found.update(repr((partition, offset if offsets else None, time_ms, key, value, headers)).encode())
    return found.hexdigest()
