"""Whichever way a topic is read, kept and sent on, one hash over all that its records have is that of a plain consumer, on horolog and on a Kafka."""

import random
from collections import Counter
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import Producer

from benchmarks import kafka
from horolog import pipeline
from horolog.pipeline.jobs import Settings, archive, mirror, replay
from tests.pipeline import samples
from tests.pipeline.clusters import SETTINGS, committed, create, digest, place, shown
from tests.support.broker_process import BrokerProcess
from tests.support.names import unique

pytestmark = pytest.mark.timeout(300)

RELEASE = "4.3.1"
PARTITIONS = 2
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
PLAIN, IN_TRANSACTION = 300, 40
DAY_MS = 86_400_000
SEGMENT_BYTES = 1 << 20  # no Kafka takes less by now
COMMITTED = {"includeHeaders": "true", "kafka.isolation.level": "read_committed"}
SECONDS = 60


class Origin(NamedTuple):
    """Where the topic is, what was sent to it and counts, and what a plain consumer reads of it."""

    address: str
    data: Path
    topic: str
    sent: list
    rows: list


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    broker = BrokerProcess(tmp_path_factory.mktemp("equal") / "data", SETTINGS).start()
    yield broker
    broker.stop()


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """The cluster that mirrors go to."""
    broker = BrokerProcess(tmp_path_factory.mktemp("other") / "data", SETTINGS).start()
    yield broker
    broker.stop()


REAL = pytest.param(RELEASE, marks=[pytest.mark.kafka_jars, pytest.mark.java])


@pytest.fixture(scope="module", params=["horolog", REAL])
def origin(request):
    if request.param == "horolog":
        broker = request.getfixturevalue("ours")
        yield filled(broker, broker.data)
        return
    try:
        kafka.libs(RELEASE)
    except kafka.MissingJarsError as error:
        pytest.skip(f"no jars of Kafka {RELEASE}: {error}")
    with kafka.running(RELEASE, **SETTINGS) as node:
        yield filled(node, node.data / "logs")


# -- a topic that has everything


def filled(broker, data):
    topic = unique("equal")
    create(broker, topic, PARTITIONS, retention_ms=-1, segment_bytes=SEGMENT_BYTES)
    rng, numbers, sent = random.Random(9), count(), []

    def some(most):
        return [record(rng, number) for number, _ in zip(numbers, range(most), strict=False)]

    for codec in CODECS:
        writer = producer(broker, codec)
        sent += send(writer, topic, some(PLAIN))
        transactional = producer(broker, codec, **{"transactional.id": unique("writer")})
        transactional.init_transactions(SECONDS)
        for ends in ("abort", "commit"):
            transactional.begin_transaction()
            inside = send(transactional, topic, some(IN_TRANSACTION // 2))
            between = send(writer, topic, some(10))  # batches of others lie between those of the transaction
            behind = send(transactional, topic, some(IN_TRANSACTION // 2))
            if ends == "commit":
                transactional.commit_transaction(SECONDS)
                sent += inside + between + behind
            else:
                transactional.abort_transaction(SECONDS)
                sent += between
    return Origin(broker.address, data, topic, sent, committed(broker, topic, PARTITIONS))


def producer(broker, codec, **more):
    """One whose batches are of different sizes, and in order even where one has to be sent again."""
    settings = {"bootstrap.servers": broker.address, "compression.type": codec, "linger.ms": 5, "batch.size": 60_000}
    return Producer({**settings, "max.in.flight.requests.per.connection": 1, **more})


def record(rng, number):
    """(partition, time, key, value, headers) of any shape; times are of three days and out of order, some are missing."""
    size = rng.choice([0, 1, 100, 1000, 20_000])
    headers = [("n", b"%d" % number), ("n", None), ("Größe", b"\xff\x00"), ("", b"")]
    return (
        rng.randrange(PARTITIONS),
        -1 if number % 50 == 7 else samples.BASE_MS + 60_000 * number - rng.randrange(DAY_MS),
        rng.choice([None, b"", b"key %d" % number]),
        rng.choice([None, rng.randbytes(size), b"%d " % number * (size // 5)]),
        headers[: rng.randrange(5)] or None,
    )


def send(writer, topic, records):
    for partition, time_ms, key, value, headers in records:
        writer.produce(topic, value, key, partition, timestamp=time_ms, headers=headers)
        writer.poll(0)
    assert writer.flush(SECONDS) == 0
    return records


def test_a_plain_consumer_reads_what_was_sent_and_not_aborted(origin):
    """The measure of all others: it is right, and the topic has what a reader may stumble over."""
    found = [(partition, time, key, value, headers) for key, value, _, partition, _, time, _, headers in origin.rows]
    assert found == sorted(origin.sent, key=lambda one: one[0])  # in the order in which each partition was sent them
    sizes = Counter(-1 if row[1] is None else len(row[1]) for row in origin.rows)
    assert {-1, 0, 1} < set(sizes)
    assert max(sizes) >= 20_000
    ends = [max(row[4] for row in origin.rows if row[3] == partition) for partition in range(PARTITIONS)]
    assert sum(ends) > len(found) + len(CODECS) * IN_TRANSACTION, "aborted records and markers have offsets, too"
    assert len(list(origin.data.glob(f"{origin.topic}-*/*.log"))) > PARTITIONS, "several segments"


# -- the ways, each to the rows that it gives


def reading(spark, origin, **more):
    options = {"kafka.bootstrap.servers": origin.address, "subscribe": origin.topic}
    return spark.read.format("horolog").options(**options, **COMMITTED, **more)


def online(spark, origin, _other, _folder):
    return shown(reading(spark, origin).load())


def cut_into_tasks(spark, origin, _other, _folder):
    return shown(reading(spark, origin, maxRecordsPerPartition="150").load())


def offline(spark, origin, _other, _folder):
    files = spark.read.format("horolog").options(subscribe=origin.topic, **COMMITTED)
    return shown(files.load(str(origin.data)))


def by_sql(spark, origin, _other, _folder):
    return selected(spark, origin, bootstrap=origin.address)


def by_sql_over_files(spark, origin, _other, _folder):
    return selected(spark, origin, path=str(origin.data))


def selected(spark, origin, **where):
    name = unique("equal").replace("-", "_")
    log = pipeline.catalogue(spark, name, options=COMMITTED, **where)
    (view,) = [view for view, topic in log.tables.items() if topic == origin.topic]
    try:
        return shown(spark.sql(f"SELECT * FROM {name}.{view}"))
    finally:
        spark.sql(f"DROP DATABASE {name} CASCADE")


def archived(kind):
    def way(spark, origin, _other, folder):
        summary = archive(spark, origin.address, origin.topic, str(folder), table_format=kind, step_records=900)
        assert (summary.records, summary.details["commits"]) == (len(origin.rows), 3)
        return shown(pipeline.table(spark, str(folder), table_format=kind))

    return way


def replayed(spark, origin, _other, folder):
    archive(spark, origin.address, origin.topic, str(folder))
    return sent_again(spark, origin, folder)


def replayed_from_files(spark, origin, _other, _folder):
    return sent_again(spark, origin, origin.data, from_topic=origin.topic)


def sent_again(spark, origin, source, **more):
    target = target_of(origin)
    settings = Settings(exactly_once=True)
    summary = replay(spark, origin.address, str(source), target, settings=settings, **more)
    assert (summary.records, summary.details["sent_twice"]) == (len(origin.rows), 0)
    return committed(origin, target, PARTITIONS)


def mirrored(spark, origin, other, _folder):
    mirror(spark, origin.address, other.address, origin.topic, step_records=400)
    return committed(other, origin.topic, PARTITIONS)


def as_a_stream(spark, origin):
    options = {"kafka.bootstrap.servers": origin.address, "subscribe": origin.topic}
    reader = spark.readStream.format("horolog").options(**options, **COMMITTED)
    return reader.options(startingOffsets="earliest", maxOffsetsPerTrigger="700").load().writeStream


def streamed(spark, origin, _other, folder):
    found, batches = [], []

    def take(batch, number):
        found.extend(shown(batch))
        batches.append(number)

    query = as_a_stream(spark, origin).foreachBatch(take).option("checkpointLocation", str(folder))
    assert query.trigger(availableNow=True).start().awaitTermination(SECONDS)
    assert len(batches) > 2
    return found


def streamed_into_a_topic(spark, origin, _other, folder):
    target = target_of(origin)
    options = {"kafka.bootstrap.servers": origin.address, "topic": target, "checkpointLocation": str(folder)}
    options |= {"transactional": "true", "transactionalId": unique("stream")}
    query = as_a_stream(spark, origin).format("horolog").options(**options).trigger(availableNow=True).start()
    assert query.awaitTermination(SECONDS)
    return committed(origin, target, PARTITIONS)


def target_of(origin):
    topic = unique("equal-again")
    create(origin, topic, PARTITIONS, retention_ms=-1)
    return topic


KEPT_OFFSETS = {
    "online": online,
    "online in many tasks": cut_into_tasks,
    "offline": offline,
    "SQL": by_sql,
    "SQL over files": by_sql_over_files,
    "archive as Parquet": archived("parquet"),
    "archive as Delta": archived("delta"),
    "archive as Iceberg": archived("iceberg"),
    "stream": streamed,
}
OF_THEIR_OWN = {
    "replay of an archive": replayed,
    "replay of files": replayed_from_files,
    "mirror": mirrored,
    "stream into a topic": streamed_into_a_topic,
}


def assert_equal(found, expected, *, offsets):
    if digest(found, offsets=offsets) != digest(expected, offsets=offsets):
        assert len(found) == len(expected)
        pairs = zip(sorted(found, key=place), expected, strict=True)  # the hash does not tell which record it is
        assert [pair for pair in pairs if len({digest([row], offsets=offsets) for row in pair}) > 1][:1] == []


@pytest.mark.long
@pytest.mark.parametrize("way", KEPT_OFFSETS)
def test_its_rows_are_those_of_a_plain_consumer(spark, origin, other, tmp_path, way):
    found = KEPT_OFFSETS[way](spark, origin, other, tmp_path / "folder")
    assert_equal(found, origin.rows, offsets=True)


@pytest.mark.parametrize("way", OF_THEIR_OWN)
def test_the_topic_that_it_fills_has_the_same_in_the_same_order(spark, origin, other, tmp_path, way):
    found = OF_THEIR_OWN[way](spark, origin, other, tmp_path / "folder")
    assert_equal(found, origin.rows, offsets=False)
