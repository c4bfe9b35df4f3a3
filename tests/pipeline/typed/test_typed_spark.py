"""Typed columns in Spark: batches, streams and files; dead letters are written once, however often their range is read."""

import json
from datetime import UTC, datetime

import pytest

pytest.importorskip("pyspark")

from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.record import Record
from horolog.testing import broker_in_thread
from tests.pipeline.samples import write_log
from tests.pipeline.typed.test_avro_columns import fields, written
from tests.support.names import unique
from tests.support.registry_server import RegistryThread

MS = 1_763_000_000_000
SCHEMA = fields(
    {"name": "id", "type": "long"}, {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}
)
DDL = "id BIGINT, at TIMESTAMP, tags ARRAY<STRING>, sizes STRUCT<x: DOUBLE>"


@pytest.fixture(scope="module")
def broker():
    with broker_in_thread(settings={"log.retention.ms": -1}) as running:
        yield running


def documents():
    """Every seventh of a hundred is broken."""
    for n in range(100):
        found = {"id": n, "at": MS // 1000 + n, "tags": ["a"], "sizes": {"x": n / 2}}
        yield (f"k{n}", json.dumps(found) if n % 7 else "{broken", datetime.fromtimestamp(MS / 1000 + n + 60, UTC))


@pytest.fixture
def orders(spark, broker):
    topic = unique("orders")  # a test that is run again has another
    broker.create_topic(topic, partitions=2)
    frame = spark.createDataFrame(list(documents()), "key string, value string, timestamp timestamp")
    frame.write.format("horolog").mode("append").option("topic", topic).options(**at(broker)).save()
    return topic


def at(broker):
    return {"kafka.bootstrap.servers": broker.bootstrap}


def typed(reader, broker, topic, **more):
    given = {"key.format": "string", "value.format": "json", "value.schema": DDL, "timestamp.field": "at"}
    return reader.format("horolog").options(**at(broker), subscribe=topic, **given).options(**more).load()


def test_a_batch_has_types_event_times_and_broken_records(spark, broker, orders):
    rows = typed(spark.read, broker, orders)
    assert (
        rows.schema["value"].dataType.simpleString()
        == "struct<id:bigint,at:timestamp,tags:array<string>,sizes:struct<x:double>>"
    )
    good = rows.where("_corrupt is null").selectExpr("key", "value.id", "value.sizes.x", "lateness_ms", "event_time")
    found = {row.id: row for row in good.collect()}
    assert found.keys() == {n for n in range(100) if n % 7}
    assert (found[8].key, found[8].x, found[8].lateness_ms) == ("k8", 4.0, 60_000)
    bad = (
        rows.where("_corrupt is not null").selectExpr("cast(_corrupt.value as string) v", "_corrupt.reason r").collect()
    )
    assert {(row.v, row.r.partition(":")[0]) for row in bad} == {("{broken", "value")}
    assert len(bad) == 15
    hour = rows.where("timestamp >= '2025-11-13 02:14:30'").count()  # of the record's own time
    assert 0 < hour < 100


def test_failfast_says_which_record(spark, broker, orders):
    with pytest.raises(Exception, match=r"BrokenRecordError: .*, offset \d+: value: not JSON"):
        typed(spark.read, broker, orders, mode="failfast").count()


def test_dead_letters_are_written_once(spark, broker, orders, tmp_path):
    dead = f"{orders}-dead"
    broker.create_topic(dead)
    rows = typed(spark.read, broker, orders, **{"dead.letter.topic": dead})
    assert [rows.count() for _ in range(3)] == [85, 85, 85]

    def letters():
        read = spark.read.format("horolog").options(**at(broker), subscribe=dead, includeHeaders="true")
        found = read.option("kafka.isolation.level", "read_committed").load().collect()
        return [
            {one.key: bytes(one.value).decode() for one in row.headers} | {"value": bytes(row.value)} for row in found
        ]

    assert len(letters()) == 15
    places = {(one["__connect.errors.partition"], one["__connect.errors.offset"]) for one in letters()}
    assert len(places) == 15
    assert {(one["value"], one["__connect.errors.topic"]) for one in letters()} == {(b"{broken", orders)}
    stream = typed(spark.readStream, broker, orders, **{"dead.letter.topic": dead, "startingOffsets": "earliest"})
    query = stream.selectExpr("value.id", "event_time").writeStream.format("memory").queryName("typed_stream")
    query.trigger(availableNow=True).option("checkpointLocation", str(tmp_path / "cp")).start().awaitTermination()
    assert spark.table("typed_stream").count() == 85
    assert len(letters()) == 15  # the same ranges, so the same letters


def test_files_and_a_registry(spark, tmp_path):
    answers = {
        "/subjects/orders-value/versions/latest": {"schema": json.dumps(SCHEMA), "id": 1},
        "/schemas/ids/1": {"schema": json.dumps(SCHEMA)},
    }
    moments = [datetime.fromtimestamp(MS / 1000 + n, UTC) for n in range(5)]
    values = written(SCHEMA, *({"id": n, "at": each} for n, each in enumerate(moments))).to_pylist()
    records = [Record(n, MS + n, 0, None, b"\x00\x00\x00\x00\x01" + each) for n, each in enumerate(values)]
    write_log(tmp_path / "orders-0", bytes(encode_batch([*records, Record(5, MS, 0, None, b"x")])))
    with RegistryThread(answers) as registry:
        options = {"value.format": "avro", "registry": registry.url, "subscribe": "orders", "mode": "dropMalformed"}
        rows = spark.read.format("horolog").options(**options).load(str(tmp_path))
        assert [(row.id, row.at.replace(tzinfo=UTC)) for row in rows.select("value.*").orderBy("id").collect()] == list(
            enumerate(moments)
        )


def test_dead_letters_of_files_are_written_once(spark, broker, tmp_path):
    dead = "dead-of-files"
    broker.create_topic(dead)
    for partition, first in (("orders-0", b"{"), ("orders-1", b"no")):
        records = [Record(n, MS + n, 0, b"k", b'{"id":%d}' % n if n % 3 else first, ((b"h", b"1"),)) for n in range(9)]
        write_log(tmp_path / partition, bytes(encode_batch(records)))
    options = {"value.format": "json", "value.schema": "id INT", "dead.letter.topic": dead, **at(broker)}
    rows = spark.read.format("horolog").options(**options).load(str(tmp_path))
    assert [rows.count() for _ in range(2)] == [12, 12]
    assert "headers" not in rows.columns
    read = spark.read.format("horolog").options(**at(broker), subscribe=dead, includeHeaders="true")
    found = read.option("kafka.isolation.level", "read_committed").load().collect()
    assert sorted(bytes(row.value) for row in found) == [b"no"] * 3 + [b"{"] * 3
    assert {row.headers[0].key for row in found} == {"h"}, "its own headers go first"
