"""Data frames written to topics: every column arrives, times above all, and a refused row is refused alone and with its reason."""

import time
from datetime import UTC, datetime
from types import SimpleNamespace

import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import BinaryType, StructField, StructType

from horolog.pipeline.base.positions import OptionError
from horolog.pipeline.options.options import parse_write
from horolog.pipeline.options.reaching import Unreachable
from horolog.pipeline.writing.transactional import BATCH, QUERY
from horolog.pipeline.writing.write import BatchWriter, StreamWriter, TaskCommit, WriteFailed
from tests.pipeline import samples
from tests.pipeline.clusters import SETTINGS, committed, consumed, create, fill, shown
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
        ("key string", ("k",), {"topic": "option"}, "the column `value` is missing"),
        ("value string", ("v",), {}, "to choose where to write"),
        ("value int", (1,), {"topic": "option"}, "`value` is int; expected string or binary"),
        (
            "value string, timestamp long",
            ("v", 1),
            {"topic": "option"},
            "`timestamp` is bigint; expected timestamp",
        ),
        ("value string, headers array<string>", ("v", ["h"]), {"topic": "option"}, "expected array<struct"),
        ("value string, topic string", ("v", None), {}, "a row has no topic"),
        ("value string", ("v",), {"topic": "option", "kafka.acks": "1"}, "kafka.acks: '1' is not one of all"),
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


# -- what Spark calls, without Spark: tasks and driver in this process

SCHEMA = StructType([StructField("key", BinaryType()), StructField("value", BinaryType())])


def options_of(cluster, *, streaming=False, **more):
    return parse_write({"kafka.bootstrap.servers": cluster.address, **more}, streaming=streaming)


def batches(*values, **columns):
    keys = [b"k"] * len(values)
    for value, key in zip(values, keys, strict=True):
        yield pa.RecordBatch.from_pydict({"key": [key], "value": [value], **{n: [c] for n, c in columns.items()}})


def values_in(cluster, topic):
    return sorted(row[1] for row in consumed(cluster, topic))


def test_a_task_writes_its_batches_and_the_driver_says_nothing_of_them(cluster, capsys):
    topic = unique("tasks")
    create(cluster, topic)
    writer = BatchWriter(options_of(cluster, topic=topic), SCHEMA)
    written = writer.write(batches(b"1", b"2", None))
    assert (written.records, written.rejected, written.part, written.run) == (3, 0, None, None)
    writer.commit([written, None])
    writer.abort([written])
    assert capsys.readouterr().err == ""
    assert [row[1] for row in consumed(cluster, topic)].count(None) == 1
    assert writer.write(iter(())).records == 0


def test_one_line_says_what_was_refused(cluster, capsys):
    topic, aside = unique("bounded"), unique("rejected")
    create(cluster, topic, message_timestamp_before_max_ms=HOUR_MS)
    old = pa.scalar(samples.BASE_MS, pa.timestamp("ms", tz="UTC"))
    writer = BatchWriter(options_of(cluster, topic=topic, rejectedTopic=aside), SCHEMA)
    written = [writer.write(batches(b"old", timestamp=old)), writer.write(batches(b"new"))]
    writer.commit(written)
    assert "horolog: 1 record written, 1 refused and written to the rejectedTopic" in capsys.readouterr().err
    (rejected,) = consumed(cluster, aside)
    assert (rejected[1], dict(rejected[7])["horolog.rejected.topic"]) == (b"old", topic.encode())


def test_a_record_that_is_refused_ends_the_task(cluster):
    topic = unique("bounded")
    create(cluster, topic, message_timestamp_before_max_ms=HOUR_MS)
    old = pa.scalar(samples.BASE_MS, pa.timestamp("ms", tz="UTC"))
    writer = BatchWriter(options_of(cluster, topic=topic), SCHEMA)
    with pytest.raises(WriteFailed, match=f"topic {topic}, key b'k': INVALID_TIMESTAMP"):
        writer.write(batches(b"old", b"older", timestamp=old))


def test_a_rejected_topic_that_refuses_too_ends_the_task(cluster):
    topic, aside = unique("bounded"), unique("strict")
    create(cluster, topic, message_timestamp_before_max_ms=HOUR_MS)
    create(cluster, aside, cleanup_policy="compact")  # takes no records without keys
    old = pa.scalar(samples.BASE_MS, pa.timestamp("ms", tz="UTC"))
    keyless = (pa.RecordBatch.from_pydict({"value": [b"v"], "timestamp": [old]}) for _ in range(1))
    writer = BatchWriter(options_of(cluster, topic=topic, rejectedTopic=aside), SCHEMA)
    with pytest.raises(WriteFailed, match=f"topic {aside}, for a record of {topic}: INVALID_RECORD"):
        writer.write(keyless)


def test_a_huge_record_ends_the_task_and_nothing_of_it_is_written(cluster):
    topic = unique("huge")
    create(cluster, topic)
    writer = BatchWriter(options_of(cluster, topic=topic), SCHEMA)
    with pytest.raises(WriteFailed, match="MESSAGE_TOO_LARGE"):
        writer.write(batches(bytes(3 << 20)))
    assert values_in(cluster, topic) == []


def test_what_is_missing_is_told_before_tasks_begin(cluster):
    with pytest.raises(OptionError, match="the column `value` is missing"):
        BatchWriter(options_of(cluster, topic="t"), StructType([]))
    gone = parse_write({"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t", "kafka.max.block.ms": "50"})
    for made in (BatchWriter, StreamWriter):
        with pytest.raises(Unreachable, match=r"within 50ms \(kafka\.max\.block\.ms\)"):
            made(gone, SCHEMA)


def test_a_missing_topic_is_made_if_the_options_say_so(cluster):
    topic = unique("made")
    with pytest.raises(Exception, match=topic):
        BatchWriter(options_of(cluster, topic=topic), SCHEMA)
    writer = BatchWriter(options_of(cluster, topic=topic, createTopics="true"), SCHEMA)
    assert writer.write(batches(b"1")).records == 1


def task(monkeypatch, number=0, attempt=0):
    """As Spark tells a task which one it is."""
    from pyspark import TaskContext

    context = SimpleNamespace(
        partitionId=lambda: number,
        attemptNumber=lambda: attempt,
        getLocalProperty={BATCH: "3", QUERY: "query"}.get,
    )
    monkeypatch.setattr(TaskContext, "get", staticmethod(lambda: context))


def test_a_data_frame_in_transactions_is_there_once_it_is_committed(cluster, monkeypatch):
    topic = unique("whole")
    create(cluster, topic)
    options = options_of(cluster, topic=topic, transactional="true", transactionalId=unique("load"), batchId="1")
    writer = BatchWriter(options, SCHEMA)
    task(monkeypatch, 0)
    first = writer.write(batches(b"1", b"2"))
    task(monkeypatch, 1)
    second = writer.write(batches(b"3"))
    assert (first.run is not None, second.run) == (True, None)
    assert {first.part.rows, second.part.rows} == {1, 2}
    assert committed(cluster, topic) == []
    writer.commit([first, second])
    assert sorted(row[1] for row in committed(cluster, topic)) == [b"1", b"2", b"3"]
    again = BatchWriter(options, SCHEMA)
    task(monkeypatch, 0)
    repeated = again.write(batches(b"1", b"2"))
    assert (repeated.records, repeated.part) == (0, None)
    again.commit([repeated])
    assert len(committed(cluster, topic)) == 3


def test_what_was_written_in_transactions_goes_with_an_abort(cluster, monkeypatch):
    topic = unique("aborted")
    create(cluster, topic)
    options = options_of(cluster, topic=topic, transactional="true", transactionalId=unique("load"), batchId="1")
    writer = BatchWriter(options, SCHEMA)
    task(monkeypatch, 0)
    written = writer.write(batches(b"1"))
    writer.abort([written, None])
    assert committed(cluster, topic) == []

    def failing():
        yield from batches(b"2")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        BatchWriter(options, SCHEMA).write(failing())
    assert committed(cluster, topic) == []


def test_a_stream_claims_its_batches_and_the_writer_that_ends_one_does_not(cluster, monkeypatch):
    topic = unique("stream")
    create(cluster, topic)
    plain = StreamWriter(options_of(cluster, streaming=True, topic=topic), SCHEMA)
    written = plain.write(batches(b"plain"))
    plain.commit([written], 0)
    plain.abort([written], 0)
    assert values_in(cluster, topic) == [b"plain"]
    named = options_of(cluster, streaming=True, topic=topic, transactional="true", transactionalId=unique("stream"))
    task(monkeypatch, 0)
    writer, ending = StreamWriter(named, SCHEMA), StreamWriter(named, SCHEMA, claims=False)
    assert ending.claim is None
    lost = writer.write(batches(b"lost"))
    ending.abort([lost], 3)
    kept = StreamWriter(named, SCHEMA).write(batches(b"kept"))
    ending.commit([kept, TaskCommit(0, 0)], 3)
    assert sorted(row[1] for row in committed(cluster, topic)) == [b"kept", b"plain"]
