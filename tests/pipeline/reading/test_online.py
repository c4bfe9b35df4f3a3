"""Topics read through a broker: the same rows as a plain consumer reads, as the files hold, and as Spark's options ask for."""

import asyncio
import hashlib
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest

pytest.importorskip("pyspark")

from horolog.client.admin.admin import Admin
from horolog.client.values.errors import KafkaError
from horolog.client.values.types import TopicPartition
from horolog.pipeline.base.positions import DataLoss, OffsetRange
from horolog.pipeline.options.options import parse_read
from horolog.pipeline.reading import online
from horolog.pipeline.reading.online import BrokerReader, RangeTask, cut_by_bytes, read_range
from horolog.pipeline.reading.pushdown import Bounds, RecordBounds
from horolog.protocol.errors import ErrorCode
from tests.pipeline import samples
from tests.pipeline.clusters import PARTITIONS, SETTINGS, consumed, fill, shown
from tests.support.broker_process import BrokerProcess
from tests.support.names import unique

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
        ({"subscribe": "topic-none", "startingTimestmap": "1"}, "do you mean startingTimestamp"),
        ({"subscribe": "topic-none", "startingTimestamp": "1d", "onNoMatch": "error"}, "no record at or after"),
        ({"subscribe": "topic-none", "endingOffsets": '{"topic-none":{"0":9}}'}, "give every partition of the read"),
        ({"subscribe": "topic-none", "endingOffsets": '{"topic-none":{"0":9,"1":9,"2":99999}}'}, "0 to 1000 exist"),
    ],
)
def test_what_cannot_be_is_said(spark, filled, options, message):
    with pytest.raises(Exception, match=message):
        reader(spark, filled, **options).count()


def test_offsets_that_are_gone_are_passed_over_only_when_they_may_be(spark, filled):
    asked = {"subscribe": "topic-none", "endingOffsets": '{"topic-none":{"0":9,"1":9,"2":99999}}'}
    assert reader(spark, filled, failOnDataLoss="false", **asked).count() == 1018


# -- what Spark calls, without Spark: driver and tasks in this process

TOPIC = "topic-none"


def options_of(broker, **more):
    return parse_read({"kafka.bootstrap.servers": broker.address, "subscribe": TOPIC, **more}, 0)


def offsets_of(reader, tasks):
    """The offsets that tasks give, by partition."""
    found = {}
    for task in tasks:
        for batch in reader.read(task):
            for partition, offset in zip(batch["partition"].to_pylist(), batch["offset"].to_pylist(), strict=True):
                found.setdefault(partition, []).append(offset)
    return found


def test_tasks_together_read_every_offset_once(filled):
    whole = {n: list(range(COUNT // PARTITIONS)) for n in range(PARTITIONS)}
    for more in ({}, {"minPartitions": "7"}, {"maxRecordsPerPartition": "90"}, {"maxBytesPerTask": "2000"}):
        reader = BrokerReader(options_of(filled, **more))
        tasks = reader.partitions()
        assert offsets_of(reader, tasks) == whole
        assert len(tasks) >= int(more.get("minPartitions", PARTITIONS))
        assert all(task.topic_id for task in tasks)


def test_a_selection_of_nothing_that_is_there_reads_nothing(filled):
    reader = BrokerReader(parse_read({"kafka.bootstrap.servers": filled.address, "subscribePattern": "no-.*"}, 0))
    assert reader.partitions() == []
    assert list(reader.read(object())) == []  # what Spark gives a task where there is nothing


def test_filters_skip_offsets_and_one_line_says_so(filled, capsys):
    reader = BrokerReader(options_of(filled))
    reader.wanted = RecordBounds(times=Bounds(low=SECOND))
    tasks = reader.partitions()
    assert offsets_of(reader, tasks) == {n: list(range(500, COUNT // PARTITIONS)) for n in range(PARTITIONS)}
    assert "offsets, skips 1500 by filters" in capsys.readouterr().err


def test_only_large_ranges_are_looked_at():
    asked = []
    place, small, empty = (TopicPartition("t", n) for n in range(3))
    sample = SimpleNamespace(bytes_per_offset=10.0)
    broker = SimpleNamespace(samples=lambda large: asked.append(large) or {place: sample})
    ranges = [OffsetRange(place, 0, 2000), OffsetRange(small, 0, 999), OffsetRange(empty, 5, 5)]
    parts = cut_by_bytes(broker, ranges, 5000)
    assert asked == [{place: 0}]
    assert parts == [*(OffsetRange(place, n * 500, n * 500 + 500) for n in range(4)), OffsetRange(small, 0, 999)]


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_a_range_ends_where_it_was_planned_to(filled, isolation):
    options = options_of(filled, **{"kafka.isolation.level": isolation, "kafka.fetch.max.bytes": "1000"})
    found = [
        row
        for batch in read_range(options, RangeTask(OffsetRange(TopicPartition(TOPIC, 1), 7, 29)))
        for row in batch["offset"].to_pylist()
    ]
    assert found == list(range(7, 29))


def test_a_query_that_has_enough_rows_reads_no_further(filled):
    reading = read_range(
        options_of(filled, **{"kafka.fetch.max.bytes": "1000"}),
        RangeTask(OffsetRange(TopicPartition(TOPIC, 0), 0, 900)),
    )
    assert next(reading)["offset"].to_pylist()[0] == 0
    reading.close()


@pytest.mark.parametrize(("topic_id", "said"), [("another", "deleted and recreated"), (None, None)])
def test_a_topic_of_the_same_name_that_was_made_since_is_another_one(filled, topic_id, said):
    task = RangeTask(OffsetRange(TopicPartition(TOPIC, 0), 0, 5), topic_id)
    if said is None:  # planned by a release that knew no ids
        assert sum(batch.num_rows for batch in read_range(options_of(filled), task)) == 5
        return
    with pytest.raises(DataLoss, match=f"{TOPIC}-0: .*{said}.*failOnDataLoss=false reads the rest"):
        list(read_range(options_of(filled), task))
    assert list(read_range(options_of(filled, failOnDataLoss="false"), task)) == []


@pytest.fixture
def shrunk(filled):
    """Retention has taken the first 300 offsets after the read was planned."""
    topic = unique("shrunk")
    fill(filled, topic, count=COUNT)
    place = TopicPartition(topic, 0)

    async def shrink():
        async with Admin(filled.address) as admin:
            await admin.delete_records({place: 300})

    asyncio.run(shrink())
    return place


def test_offsets_that_are_gone_are_a_loss_or_passed_over(filled, shrunk):
    task = RangeTask(OffsetRange(shrunk, 100, 320))
    with pytest.raises(DataLoss, match="offset 100 no longer exists; the first offset is 300"):
        list(read_range(options_of(filled), task))
    rest = read_range(options_of(filled, failOnDataLoss="false"), task)
    assert [row for batch in rest for row in batch["offset"].to_pylist()] == list(range(300, 320))


def test_a_range_that_is_wholly_beyond_the_end_is_lost(filled):
    task = RangeTask(OffsetRange(TopicPartition(TOPIC, 0), 5000, 5010))
    assert list(read_range(options_of(filled, failOnDataLoss="false"), task)) == []
    with pytest.raises(DataLoss, match="offset 5000 no longer exists"):
        list(read_range(options_of(filled), task))


class Silent:
    """A broker whose fetches bring nothing, or fail."""

    def __init__(self, options, error=None):
        self.error = error
        self.client = SimpleNamespace(fetch_raw=self.fetch)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    async def fetch(self, *_):
        if self.error is not None:
            raise self.error
        return SimpleNamespace(records=b"", aborted=())

    def start(self, fetching):
        return fetching

    def finish(self, fetching):
        return asyncio.run(fetching)

    def forget(self, fetching):
        fetching.close()


def test_a_range_of_which_nothing_comes_is_not_waited_for_forever(filled, monkeypatch):
    monkeypatch.setattr(online, "BrokerLog", Silent)
    monkeypatch.setattr(online, "_FRUITLESS_FETCHES", 3)
    task = RangeTask(OffsetRange(TopicPartition("t", 0), 5, 9))
    with pytest.raises(DataLoss, match="no records were received for the offsets from 5 up to 9"):
        list(read_range(options_of(filled), task))
    assert list(read_range(options_of(filled, failOnDataLoss="false"), task)) == []


def test_other_errors_of_a_fetch_end_the_task(filled, monkeypatch):
    refused = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "you may not read")
    monkeypatch.setattr(online, "BrokerLog", lambda options: Silent(options, refused))
    with pytest.raises(KafkaError, match="you may not read"):
        list(read_range(options_of(filled), RangeTask(OffsetRange(TopicPartition("t", 0), 5, 9))))


def test_decoded_rows_and_letters_come_of_the_same_range(filled, monkeypatch):
    asked = []

    class Decoding:
        reads_headers = False
        dead_letters = None

        def batches(self, plain, post):
            asked.append(post)
            return plain

    letters = Decoding()
    letters.dead_letters = "bad"
    monkeypatch.setattr(online, "post_of", lambda options, wanted, topic_id: (wanted, topic_id))
    wanted = OffsetRange(TopicPartition(TOPIC, 0), 0, 5)
    for decoding in (Decoding(), letters):
        options = replace(options_of(filled), decoding=decoding)
        assert sum(batch.num_rows for batch in read_range(options, RangeTask(wanted))) == 5
    assert asked == [None, (wanted, None)]
