"""Topics read as streams: exactly once from checkpoint to checkpoint, in batches as large as asked, with times fit for watermarks."""

import json

import pytest

from client.types import TopicPartition
from tests.pipeline import samples
from tests.pipeline.clusters import PARTITIONS, SETTINGS, create, fill
from tests.support.broker_process import BrokerProcess

pytest.importorskip("pyspark")

from pyspark.errors import StreamingQueryException

from pipeline.stream import from_json, limited, to_json

SECONDS = 60


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    broker = BrokerProcess(tmp_path_factory.mktemp("streams") / "data", SETTINGS).start()
    yield broker
    broker.stop()


def stream(spark, broker, topic, **options):
    settings = {"kafka.bootstrap.servers": broker.address, "subscribe": topic, "startingOffsets": "earliest", **options}
    return spark.readStream.format("horolog").options(**settings).load()


def run(frame, checkpoint, seen):
    """Everything there is now, batch by batch: the offsets of each batch."""
    sizes = []

    def take(batch, _number):
        rows = [(row.partition, row.offset) for row in batch.select("partition", "offset").collect()]
        sizes.append(len(rows))
        seen.extend(rows)

    query = (
        frame.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    )
    assert query.start().awaitTermination(SECONDS)
    return sizes


def everything(count):
    return sorted((n % PARTITIONS, n // PARTITIONS) for n in range(count))


def test_a_restart_goes_on_exactly_where_the_last_run_ended(spark, cluster, tmp_path):
    create(cluster, "restarted")
    seen = []
    for start in (0, 300, 600):
        fill(cluster, "restarted", start=start, count=300)
        assert sum(run(stream(spark, cluster, "restarted"), tmp_path, seen)) == 300
    assert run(stream(spark, cluster, "restarted"), tmp_path, seen) == []
    assert sorted(seen) == everything(900)


def test_the_checkpoint_has_the_connectors_json(spark, cluster, tmp_path):
    fill(cluster, "checkpointed", count=9)
    run(stream(spark, cluster, "checkpointed"), tmp_path, [])
    newest = max((tmp_path / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    assert json.loads(newest.read_text().splitlines()[-1]) == {"checkpointed": {"0": 3, "1": 3, "2": 3}}


def test_batches_are_as_large_as_asked(spark, cluster, tmp_path):
    fill(cluster, "limited", count=900)
    seen = []
    sizes = run(stream(spark, cluster, "limited", maxOffsetsPerTrigger="200"), tmp_path, seen)
    assert sorted(seen) == everything(900)
    assert len(sizes) >= 5
    assert max(sizes) <= 200 + PARTITIONS


def test_a_run_that_dies_inside_a_batch_reads_that_batch_again(spark, cluster, tmp_path):
    fill(cluster, "dying", count=600)
    frame = stream(spark, cluster, "dying", maxOffsetsPerTrigger="150")
    taken = {}

    def take(batch, number):
        taken[number] = sorted((row.partition, row.offset) for row in batch.select("partition", "offset").collect())
        if number == 2 and not died:
            died.append(number)
            raise RuntimeError("died")

    died = []
    writer = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
    with pytest.raises(StreamingQueryException, match="died"):
        writer.start().awaitTermination(SECONDS)
    assert writer.start().awaitTermination(SECONDS)
    assert died == [2]
    assert sorted(row for rows in taken.values() for row in rows) == everything(600)


def test_a_stream_begins_at_a_time(spark, cluster, tmp_path):
    fill(cluster, "timed", count=300)
    seen = []
    run(stream(spark, cluster, "timed", startingTimestamp=str(samples.BASE_MS + 90_000)), tmp_path, seen)
    assert sorted(seen) == [one for one in everything(300) if one[1] >= 90]


def test_times_can_have_watermarks(spark, cluster, tmp_path):
    fill(cluster, "watermarked", count=900)
    windows = (
        stream(spark, cluster, "watermarked", maxOffsetsPerTrigger="300")
        .withWatermark("timestamp", "10 seconds")
        .selectExpr("window(timestamp, '1 minute') as minute")
        .groupBy("minute")
        .count()
    )
    query = windows.writeStream.format("memory").queryName("minutes").outputMode("append")
    running = query.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    assert running.awaitTermination(SECONDS)
    counts = spark.sql("select unix_millis(minute.start) as start, count from minutes").collect()
    full = [row["count"] for row in counts if row["start"] > samples.BASE_MS]
    assert len(full) >= 3
    assert set(full) == {60 * PARTITIONS}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"endingTimestamp": "1h"}, "a stream has no end"),
        ({"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "3"}, "minOffsetsPerTrigger 9 is more than"),
    ],
)
def test_what_a_stream_cannot_have_is_said(spark, cluster, tmp_path, options, message):
    fill(cluster, "refused", count=3)
    with pytest.raises(Exception, match=message):
        run(stream(spark, cluster, "refused", **options), tmp_path, [])


def partitions(*offsets):
    return {TopicPartition("t", n): offset for n, offset in enumerate(offsets)}


def test_a_limit_is_shared_by_what_waits():
    assert limited(partitions(0, 0), partitions(300, 100), 40) == partitions(30, 10)
    assert limited(partitions(0, 0), partitions(300, 100), 400) == partitions(300, 100)
    assert limited(partitions(0, 5), partitions(1000, 6), 10) == partitions(9, 6)
    assert limited(partitions(7, 5), partitions(7, 50), 10) == partitions(7, 15)


def test_offsets_survive_json():
    assert from_json(json.loads(json.dumps(to_json(partitions(3, 4))))) == partitions(3, 4)
