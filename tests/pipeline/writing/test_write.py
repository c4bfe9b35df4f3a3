"""Data frames written to topics: every column arrives, times above all, and a refused row is refused alone and with its reason."""

import time
from datetime import UTC, datetime

import pytest

from tests.pipeline import samples
from tests.pipeline.clusters import SETTINGS, consumed, create, fill, shown
from tests.support.broker_process import BrokerProcess
from tests.support.names import unique

HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    broker = BrokerProcess(tmp_path_factory.mktemp("written") / "data", SETTINGS).start()
    yield broker
    broker.stop()


def at(ms):
    return datetime.fromtimestamp(ms / 1000, UTC)


def write(frame, broker, **options):
    frame.write.format("horolog").options(**{"kafka.bootstrap.servers": broker.address, **options}).mode(
        "append"
    ).save()


@pytest.mark.long
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_what_is_read_can_be_written_as_it_was(spark, cluster, codec):
    source, target = unique(f"from-{codec}"), unique(f"to-{codec}")
    fill(cluster, source, count=600)
    create(cluster, target)
    options = {"kafka.bootstrap.servers": cluster.address, "subscribe": source, "includeHeaders": "true"}
    frame = spark.read.format("horolog").options(**options).load()
    write(frame, cluster, topic=target, **{"kafka.compression.type": codec})
    read, written = consumed(cluster, source), consumed(cluster, target)
    assert [row[:2] + row[3:] for row in written] == [row[:2] + row[3:] for row in read]


def test_columns_are_topic_key_partition_and_time(spark, cluster):
    one, two = unique("columns"), unique("columns")
    create(cluster, one)
    create(cluster, two)
    frame = spark.createDataFrame(
        [
            (one, "text", bytearray(b"bytes"), 2, at(samples.BASE_MS + 7)),
            (two, None, None, 1, at(samples.BASE_MS)),
            (two, "k", bytearray(b""), 1, at(-1)),
            (two, "k", bytearray(b"now"), 1, None),
        ],
        "topic string, key string, value binary, partition int, timestamp timestamp",
    )
    began = time.time() * 1000
    write(frame.coalesce(1), cluster)
    ((key, value, _, partition, _, when, *_),) = consumed(cluster, one)
    assert (key, value, partition, when) == (b"text", b"bytes", 2, samples.BASE_MS + 7)
    rows = consumed(cluster, two)
    assert [(row[0], row[1], row[3]) for row in rows] == [(None, None, 1), (b"k", b"", 1), (b"k", b"now", 1)]
    assert [row[5] for row in rows[:2]] == [samples.BASE_MS, -1]
    assert began <= rows[2][5] <= time.time() * 1000


def test_the_option_beats_the_column(spark, cluster):
    topic = unique("option")
    create(cluster, topic)
    write(spark.createDataFrame([("elsewhere", "v")], "topic string, value string"), cluster, topic=topic)
    assert [row[1] for row in consumed(cluster, topic)] == [b"v"]


def bounded_frame(spark, now_ms):
    rows = [(str(n), at(now_ms - (2 * HOUR_MS if n % 10 == 3 else 0)), n % 3) for n in range(1000)]
    return spark.createDataFrame(rows, "value string, timestamp timestamp, partition int").coalesce(2)


def test_a_record_outside_the_time_bounds_fails_the_task_with_the_brokers_reason(spark, cluster):
    topic = unique("bounded")
    create(cluster, topic, message_timestamp_before_max_ms=HOUR_MS)
    with pytest.raises(
        Exception,
        match=r"INVALID_TIMESTAMP: TimestampExceededThreshold: timestamp [0-9]+ .* earlier than the earliest accepted",
    ):
        write(bounded_frame(spark, int(time.time() * 1000)), cluster, topic=topic)


def test_exactly_the_refused_records_go_to_the_rejected_topic(spark, cluster):
    topic, aside = unique("bounded"), unique("rejected")
    create(cluster, topic, message_timestamp_before_max_ms=HOUR_MS)
    create(cluster, aside)
    now_ms = int(time.time() * 1000)
    write(bounded_frame(spark, now_ms), cluster, topic=topic, rejectedTopic=aside)
    accepted = sorted(int(row[1]) for row in consumed(cluster, topic))
    rejected = consumed(cluster, aside)
    assert accepted == [n for n in range(1000) if n % 10 != 3]
    assert sorted(int(row[1]) for row in rejected) == [n for n in range(1000) if n % 10 == 3]
    for row in rejected:
        said = dict(row[7])
        assert b"earlier than the earliest accepted" in said["horolog.rejected.reason"]
        assert said["horolog.rejected.topic"] == topic.encode()
        assert said["horolog.rejected.timestamp"] == b"%d" % (now_ms - 2 * HOUR_MS)
        assert row[5] >= now_ms


@pytest.mark.parametrize(
    ("schema", "row", "options", "message"),
    [
        ("key string", ("k",), {"topic": "option"}, "a column `value` is needed"),
        ("value string", ("v",), {}, "says where to write to"),
        ("value int", (1,), {"topic": "option"}, "`value` is int; it has to be string or binary"),
        (
            "value string, timestamp long",
            ("v", 1),
            {"topic": "option"},
            "`timestamp` is bigint; it has to be timestamp",
        ),
        ("value string, headers array<string>", ("v", ["h"]), {"topic": "option"}, "it has to be array<struct"),
        ("value string, topic string", ("v", None), {}, "a row has no topic"),
        ("value string", ("v",), {"topic": "option", "kafka.acks": "1"}, "kafka.acks: '1' is none of all"),
    ],
)
def test_what_cannot_be_written_is_said(spark, cluster, schema, row, options, message):
    with pytest.raises(Exception, match=message):
        write(spark.createDataFrame([row], schema), cluster, **options)


def test_a_stream_is_written_batch_by_batch(spark, cluster, tmp_path):
    source, target = unique("stream-from"), unique("stream-to")
    fill(cluster, source, count=300)
    create(cluster, target)
    options = {"kafka.bootstrap.servers": cluster.address, "subscribe": source, "startingOffsets": "earliest"}
    frame = (
        spark.readStream.format("horolog").options(includeHeaders="true", maxOffsetsPerTrigger="100", **options).load()
    )
    query = (
        frame.writeStream.format("horolog")
        .options(**{"kafka.bootstrap.servers": cluster.address, "topic": target})
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)
    assert len(query.recentProgress) >= 3
    read, written = consumed(cluster, source), consumed(cluster, target)
    assert [row[:2] + row[3:] for row in written] == [row[:2] + row[3:] for row in read]
    assert shown(spark.read.format("horolog").options(includeHeaders="true", **options).load()) == read
