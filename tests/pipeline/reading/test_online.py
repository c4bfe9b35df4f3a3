"""Topics read through a broker: the same rows as a plain consumer reads, as the files hold, and as Spark's options ask for."""

import hashlib
from collections import Counter

import pytest

from tests.pipeline import samples
from tests.pipeline.clusters import PARTITIONS, SETTINGS, consumed, fill, shown
from tests.support.broker_process import BrokerProcess

COUNT = 3000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A broker with a topic of each codec, whose records are a second apart in each partition."""
    broker = BrokerProcess(tmp_path_factory.mktemp("filled") / "data", SETTINGS).start()
    for codec in CODECS:
        fill(broker, f"topic-{codec}", codec)
    yield broker
    broker.stop()


def fingerprint(rows):
    return hashlib.sha256(repr(rows).encode()).hexdigest()


def reader(spark, broker, **options):
    settings = {"kafka.bootstrap.servers": broker.address, "includeHeaders": "true", **options}
    return spark.read.format("horolog").options(**settings).load()


@pytest.mark.parametrize("codec", CODECS)
def test_rows_are_those_that_a_consumer_reads_and_that_the_files_hold(spark, filled, codec):
    topic = f"topic-{codec}"
    expected = consumed(filled, topic)
    assert len(expected) == COUNT
    online = shown(reader(spark, filled, subscribe=topic))
    offline = shown(spark.read.format("horolog").options(includeHeaders="true", subscribe=topic).load(str(filled.data)))
    assert fingerprint(online) == fingerprint(expected)
    assert fingerprint(offline) == fingerprint(expected)


def test_patterns_and_assignments_select(spark, filled):
    by_topic = Counter(row[2] for row in shown(reader(spark, filled, subscribePattern="topic-[gl].*")))
    assert by_topic == {"topic-gzip": COUNT, "topic-lz4": COUNT}
    chosen = shown(reader(spark, filled, assign='{"topic-none":[2],"topic-zstd":[0,1]}'))
    assert {row[2:4] for row in chosen} == {("topic-none", 2), ("topic-zstd", 0), ("topic-zstd", 1)}
    both = reader(spark, filled, subscribe="topic-none, topic-gzip").count()
    assert both == 2 * COUNT


SECOND = samples.BASE_MS + 1000 * 500
RANGES = [
    ({"startingTimestamp": str(SECOND)}, range(500, 1000)),
    ({"startingTimestamp": "2023-11-14T22:21:40Z"}, range(500, 1000)),
    ({"startingTimestamp": f"@{SECOND}", "endingTimestamp": str(SECOND + 10_000)}, range(500, 510)),
    ({"endingTimestamp": str(SECOND)}, range(500)),
    ({"startingTimestamp": "1d"}, range(0)),
    ({"startingOffsets": '{"topic-none":{"0":990,"1":990,"2":990}}'}, range(990, 1000)),
    ({"endingOffsets": '{"topic-none":{"0":3,"1":3,"2":3}}', "minPartitions": "7"}, range(3)),
    (
        {"startingOffsetsByTimestamp": f'{{"topic-none":{{"0":{SECOND},"1":{SECOND},"2":"2023-11-14T22:21:40Z"}}}}'},
        range(500, 1000),
    ),
    ({"startingOffsets": "earliest", "endingOffsets": "latest", "maxRecordsPerPartition": "150"}, range(1000)),
    ({"kafka.max.partition.fetch.bytes": "2000"}, range(1000)),
    ({"kafka.isolation.level": "read_committed"}, range(1000)),
]


@pytest.mark.parametrize(("options", "offsets"), RANGES)
def test_options_bound_what_is_read_online_as_offline(spark, filled, options, offsets):
    rows = shown(reader(spark, filled, subscribe="topic-none", **options))
    assert sorted(row[4] for row in rows) == sorted([*offsets] * PARTITIONS)
    if "kafka.max.partition.fetch.bytes" not in options:
        files = spark.read.format("horolog").options(includeHeaders="true", subscribe="topic-none", **options)
        assert fingerprint(shown(files.load(str(filled.data)))) == fingerprint(rows)


def test_partitions_are_split_as_asked(spark, filled):
    assert reader(spark, filled, subscribe="topic-none").rdd.getNumPartitions() == PARTITIONS
    assert reader(spark, filled, subscribe="topic-none", minPartitions="9").rdd.getNumPartitions() == 9
    assert reader(spark, filled, subscribe="topic-none", maxRecordsPerPartition="250").rdd.getNumPartitions() == 12


def test_a_large_partition_is_read_by_several_tasks(spark, filled):
    whole = reader(spark, filled, assign='{"topic-none":[1]}')
    assert whole.rdd.getNumPartitions() == 1  # it is small
    pieces = reader(spark, filled, assign='{"topic-none":[1]}', maxBytesPerTask="10000")
    stored = sum(path.stat().st_size for path in filled.data.glob("topic-none-1/*.log"))
    assert stored / 10_000 * 0.7 < pieces.rdd.getNumPartitions() < stored / 10_000 * 1.5
    assert fingerprint(shown(pieces)) == fingerprint(shown(whole))


def test_a_filter_on_the_timestamp_gives_exact_rows_and_prunes_files(spark, filled, capfd):
    condition = "timestamp >= '2023-11-14 22:29:40' and timestamp < '2023-11-14 22:29:45'"
    files = spark.read.format("horolog").options(subscribe="topic-none").load(str(filled.data))
    assert sorted(row.offset for row in files.where(condition).select("offset").collect()) == sorted(
        [*range(980, 985)] * 3
    )
    online = reader(spark, filled, subscribe="topic-none").where(condition)
    assert online.count() == 15


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscribe": "nothing-of-that-name"}, "the cluster has no topic nothing-of-that-name"),
        ({"subscribe": "topic-none", "startingTimestmap": "1"}, "startingTimestamp is an option"),
        ({"subscribe": "topic-none", "startingTimestamp": "1d", "onNoMatch": "error"}, "no record at or after"),
        ({"subscribe": "topic-none", "endingOffsets": '{"topic-none":{"0":9}}'}, "all partitions are to be named"),
        ({"subscribe": "topic-none", "endingOffsets": '{"topic-none":{"0":9,"1":9,"2":99999}}'}, "0 to 1000 are there"),
    ],
)
def test_what_cannot_be_is_said(spark, filled, options, message):
    with pytest.raises(Exception, match=message):
        reader(spark, filled, **options).count()


def test_offsets_that_are_gone_are_passed_over_only_when_they_may_be(spark, filled):
    asked = {"subscribe": "topic-none", "endingOffsets": '{"topic-none":{"0":9,"1":9,"2":99999}}'}
    assert reader(spark, filled, failOnDataLoss="false", **asked).count() == 1018
