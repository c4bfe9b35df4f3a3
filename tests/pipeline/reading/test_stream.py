"""Topics read as streams: exactly once from checkpoint to checkpoint, in batches as large as asked, with times fit for watermarks."""

import asyncio
import json
from base64 import urlsafe_b64encode
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from horolog.client.admin.admin import Admin
from horolog.client.producing.producer import Producer
from horolog.client.values.types import TopicPartition
from horolog.client.wire.client import Client
from tests.pipeline import samples
from tests.pipeline.clusters import PARTITIONS, SETTINGS, create, fill
from tests.support.broker_process import BrokerProcess
from tests.support.names import unique

pytest.importorskip("pyspark")

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from horolog.pipeline.base.positions import EARLIEST, DataLoss, OffsetRange, OptionError
from horolog.pipeline.options.options import parse_read
from horolog.pipeline.reading.sampling import Sample
from horolog.pipeline.reading.stream import BEHIND, BrokerStream, RefusedStream, from_json, to_json

SECONDS = 60

HOUR_MS = 3_600_000


async def later(client, topic, seconds, by_ms=HOUR_MS):
    async with Producer(client) as producer:
        for second in seconds:
            await producer.send(topic, b"later", partition=0, timestamp_ms=samples.BASE_MS + by_ms + 1000 * second)


def stored_bytes(broker, topic):
    return sum(path.stat().st_size for path in broker.data.glob(f"{topic}-*/*.log"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    broker = BrokerProcess(tmp_path_factory.mktemp("streams") / "data", SETTINGS).start()
    yield broker
    broker.stop()


def stream(spark, broker, topic, **options):
    settings = {"kafka.bootstrap.servers": broker.address, "subscribe": topic, **options}
    if "startingTimestamp" not in options:
        settings["startingOffsets"] = "earliest"
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


@pytest.mark.long
def test_a_restart_goes_on_exactly_where_the_last_run_ended(spark, cluster, tmp_path):
    topic = unique("restarted")
    create(cluster, topic)
    seen = []
    for start in (0, 300, 600):
        fill(cluster, topic, start=start, count=300)
        assert sum(run(stream(spark, cluster, topic), tmp_path, seen)) == 300
    assert run(stream(spark, cluster, topic), tmp_path, seen) == []
    assert sorted(seen) == everything(900)


def test_the_checkpoint_has_the_connectors_json(spark, cluster, tmp_path):
    topic = unique("checkpointed")
    fill(cluster, topic, count=9)
    run(stream(spark, cluster, topic), tmp_path, [])
    newest = max((tmp_path / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    found = json.loads(newest.read_text().splitlines()[-1])
    assert list(found.pop("topic ids")) == [topic]
    assert found == {topic: {"0": 3, "1": 3, "2": 3}}


def test_batches_are_as_large_as_asked(spark, cluster, tmp_path):
    topic = unique("limited")
    fill(cluster, topic, count=900)
    seen = []
    sizes = run(stream(spark, cluster, topic, maxOffsetsPerTrigger="200"), tmp_path, seen)
    assert sorted(seen) == everything(900)
    assert len(sizes) >= 5
    assert max(sizes) <= 200 + PARTITIONS


def test_batches_have_about_as_many_bytes_as_asked(spark, cluster, tmp_path):
    topic = unique("bytes")
    create(cluster, topic)
    fill(cluster, topic, count=3000)
    stored = stored_bytes(cluster, topic)
    seen = []
    sizes = run(stream(spark, cluster, topic, maxBytesPerTrigger=str(stored // 6)), tmp_path, seen)
    assert sorted(seen) == everything(3000)
    assert 5 <= len(sizes) <= 9


def test_batches_cover_as_much_time_as_asked(spark, cluster, tmp_path):
    """Partitions whose records are of other times wait for each other."""
    topic = unique("spans")
    create(cluster, topic)
    fill(cluster, topic, count=900)
    with client_of(cluster) as ask:  # partition 0 has another hundred seconds, an hour later
        ask(lambda client: later(client, topic, range(100)))
    covered = []

    def take(batch, _number):
        (row,) = batch.selectExpr("unix_millis(min(timestamp))", "unix_millis(max(timestamp))", "count(*)").collect()
        covered.append(tuple(row))

    frame = stream(spark, cluster, topic, maxTimePerTrigger="100s")
    writer = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
    assert writer.start().awaitTermination(SECONDS)
    begins = [samples.BASE_MS + 100_000 * n for n in range(3)] + [samples.BASE_MS + HOUR_MS]
    assert covered == [(begin, begin + 99_000, 300) for begin in begins[:3]] + [(begins[3], begins[3] + 99_000, 100)]


def test_a_record_of_the_future_does_not_open_the_limit_of_time(spark, cluster, tmp_path):
    topic = unique("future")
    create(cluster, topic, partitions=1)
    with client_of(cluster) as ask:
        ask(lambda client: later(client, topic, range(1)))
        for n in range(20):  # a batch each
            ask(lambda client, n=n: later(client, topic, range(n, n + 1), by_ms=0))
    seen = []
    sizes = run(stream(spark, cluster, topic, maxTimePerTrigger="5s"), tmp_path, seen)
    assert sorted(seen) == [(0, offset) for offset in range(21)]
    assert max(sizes) <= 6


def test_a_run_that_dies_inside_a_batch_reads_that_batch_again(spark, cluster, tmp_path):
    topic = unique("dying")
    fill(cluster, topic, count=600)
    frame = stream(spark, cluster, topic, maxOffsetsPerTrigger="150")
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
    topic = unique("timed")
    fill(cluster, topic, count=300)
    seen = []
    run(stream(spark, cluster, topic, startingTimestamp=str(samples.BASE_MS + 90_000)), tmp_path, seen)
    assert sorted(seen) == [one for one in everything(300) if one[1] >= 90]


def test_times_can_have_watermarks(spark, cluster, tmp_path):
    topic = unique("watermarked")
    fill(cluster, topic, count=900)
    windows = (
        stream(spark, cluster, topic, maxOffsetsPerTrigger="300")
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
    topic = unique("refused")
    fill(cluster, topic, count=3)
    with pytest.raises(Exception, match=message):
        run(stream(spark, cluster, topic, **options), tmp_path, [])


# -- topics that are made anew, and retention that is quicker


def remake(cluster, topic, count):
    """The topic is deleted and recreated, with other records; both ids."""
    with client_of(cluster) as ask:
        old = ask(lambda client: client.metadata([topic])).topics[topic].id
        ask(lambda client: Admin(client).delete_topics([topic]))
    create(cluster, topic)
    fill(cluster, topic, count=count)
    with client_of(cluster) as ask:
        new = ask(lambda client: client.metadata([topic])).topics[topic].id
    assert old != new
    return tuple(urlsafe_b64encode(each).decode().rstrip("=") for each in (old, new))


@contextmanager
def client_of(cluster):
    """Asks something of a client, from code that is not asynchronous."""
    with asyncio.Runner() as runner:
        client = Client(cluster.address)

        async def asked(question):
            return await question(client)

        yield lambda question: runner.run(asked(question))
        runner.run(client.close())


@pytest.mark.long
@pytest.mark.parametrize("count", [150, 900])
def test_a_topic_that_was_made_anew_is_another_one(spark, cluster, tmp_path, count):
    """Whether it has as many records as the old one by now or not."""
    topic = unique("remade")
    create(cluster, topic)
    fill(cluster, topic, count=300)
    assert sum(run(stream(spark, cluster, topic), tmp_path, [])) == 300
    old, new = remake(cluster, topic, count)
    with pytest.raises(StreamingQueryException) as told:
        run(stream(spark, cluster, topic), tmp_path, [])
    said = f"topic {topic} was deleted and recreated: this read began with topic id {old}, the present topic has {new}"
    assert said in str(told.value)
    seen = []
    sizes = run(stream(spark, cluster, topic, failOnDataLoss="false", maxOffsetsPerTrigger="400"), tmp_path, seen)
    assert sorted(seen) == everything(count)
    assert max(sizes) <= 400 + PARTITIONS
    assert run(stream(spark, cluster, topic), tmp_path, []) == []


def test_a_checkpoint_without_ids_is_bound_to_the_topic_that_is_there(spark, cluster, tmp_path):
    topic = unique("bound")
    create(cluster, topic)
    fill(cluster, topic, count=300)
    assert sum(run(stream(spark, cluster, topic), tmp_path, [])) == 300
    offsets = newest_offsets(tmp_path)
    *head, last = offsets.read_text().splitlines()
    found = json.loads(last)
    del found["topic ids"]
    offsets.write_text("\n".join([*head, json.dumps(found)]))
    assert ids_in(offsets) == {}
    fill(cluster, topic, start=300, count=30)
    assert sum(run(stream(spark, cluster, topic), tmp_path, [])) == 30
    assert list(ids_in(newest_offsets(tmp_path))) == [topic]
    remake(cluster, topic, 900)
    with pytest.raises(StreamingQueryException, match="deleted and recreated"):
        run(stream(spark, cluster, topic), tmp_path, [])


def newest_offsets(checkpoint):
    """Without the checksum that Spark keeps beside it, so that it may be changed."""
    newest = max((checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)
    return newest


def ids_in(offsets):
    return json.loads(offsets.read_text().splitlines()[-1]).get("topic ids", {})


@pytest.mark.parametrize("what", ["deleted and recreated", "deleted"])
def test_a_batch_of_a_topic_that_is_gone_is_not_read_from_another(spark, cluster, tmp_path, what):
    """A batch is under way when the run dies, and its topic goes before the next."""
    topic, other = unique("under-way"), unique("under-way")
    for each in (topic, other):
        create(cluster, each)
        fill(cluster, each, count=90)
    names = {"subscribe": f"{topic},{other}"}

    def die(batch, number):
        raise RuntimeError("died")

    dying = stream(spark, cluster, topic, **names).writeStream.foreachBatch(die)
    with pytest.raises(StreamingQueryException, match="died"):
        dying.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start().awaitTermination(SECONDS)
    if what == "deleted and recreated":
        remake(cluster, topic, 60)
    else:
        with client_of(cluster) as ask:
            ask(lambda client: Admin(client).delete_topics([topic]))
        del names["subscribe"]
        names["subscribePattern"] = f"{topic}|{other}"
    options = {name: value for name, value in names.items() if name != "subscribe"} or names
    frame = {"kafka.bootstrap.servers": cluster.address, "startingOffsets": "earliest", **options}
    with pytest.raises(StreamingQueryException, match=what):
        run(spark.readStream.format("horolog").options(**frame).load(), tmp_path, [])
    seen = []
    run(spark.readStream.format("horolog").options(**frame, failOnDataLoss="false").load(), tmp_path, seen)
    both = [*everything(90), *everything(60)] if what == "deleted and recreated" else everything(90)
    assert sorted(seen) == sorted(both)


def test_retention_that_is_quicker_than_the_stream_is_told(spark, cluster, tmp_path):
    topic = unique("overtaken")
    create(cluster, topic)
    fill(cluster, topic, count=300)
    run(stream(spark, cluster, topic), tmp_path, [])
    fill(cluster, topic, start=300, count=300)
    with client_of(cluster) as ask:
        ask(lambda client: Admin(client).delete_records({TopicPartition(topic, 1): 150}))
    with pytest.raises(StreamingQueryException, match=f"{topic}-1 was read up to 100 and begins at 150 now: retention"):
        run(stream(spark, cluster, topic), tmp_path, [])
    seen = []
    run(stream(spark, cluster, topic, failOnDataLoss="false", maxOffsetsPerTrigger="60"), tmp_path, seen)
    expected = [one for one in everything(600) if one[1] >= (150 if one[0] == 1 else 100)]
    assert sorted(seen) == expected


def partitions(*offsets):
    return {TopicPartition("t", n): offset for n, offset in enumerate(offsets)}


def test_offsets_survive_json():
    ids = {"t": "Pq8a1JTqQ2Sp3BqIL5vqWg"}
    assert from_json(json.loads(json.dumps(to_json(partitions(3, 4), ids)))) == (partitions(3, 4), ids)
    assert to_json(partitions(3, 4), {}) == {"t": {"0": 3, "1": 4}}
    assert from_json({"t": {"0": 3, "1": 4}}) == (partitions(3, 4), {})


class AskedLog:
    """A broker's answers for two partitions, of which one has records that wait."""

    def __init__(self, samples):
        self._samples = samples
        self.sampled = None

    def partitions(self, selection):
        return [TopicPartition("t", 0), TopicPartition("t", 1)]

    def ends(self, partitions, which):
        return dict.fromkeys(partitions, 0 if which == -2 else 100)

    def topic_ids(self, topics):
        return {}

    def samples(self, positions):
        self.sampled = dict(positions)
        return {one: each for one, each in self._samples.items() if one in positions}


def test_the_progress_tells_how_far_a_stream_is_behind():
    waits = TopicPartition("t", 1)
    options = parse_read(
        {"kafka.bootstrap.servers": "x:1", "subscribe": "t", "maxOffsetsPerTrigger": "60"}, 0, streaming=True
    )
    stream = BrokerStream(options, now_ms=lambda: 5_500)
    stream._broker = log = AskedLog({waits: Sample(60, (), 2_000)})
    assert stream.reportLatestOffset()[BEHIND] == {"records": 0, "seconds": 0.0}
    reached = stream.latestOffset({"t": {"0": 80, "1": 0}}, ReadMaxRows(60))
    assert reached == {"t": {"0": 90, "1": 50}}  # 120 wait
    told = stream.reportLatestOffset()
    assert told == {"t": {"0": 100, "1": 100}, BEHIND: {"records": 60, "seconds": 3.5}}
    assert log.sampled == {TopicPartition("t", 0): 90, waits: 50}
    assert from_json(told).offsets == {TopicPartition("t", 0): 100, waits: 100}


# -- what Spark calls, without Spark and over a log that stands still between two calls

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


class StillLog:
    """Offsets and ids as they are set; every offset has ten bytes and is a second after the one before."""

    def __init__(self, ends, first=None, ids=None):
        self.now, self.first = dict(ends), dict(first or {})
        self.ids = {"a": "id-a", "b": "id-b"} if ids is None else ids
        self.is_closed = False

    def partitions(self, selection):
        return sorted(self.now)

    def ends(self, places, which):
        return {
            one: self.first.get(one, 0) if which == EARLIEST else self.now[one] for one in places if one in self.now
        }

    def at_times(self, times):
        return {one: min(self.now[one], ms // 1000) for one, ms in times.items()}

    def topic_ids(self, topics):
        return {topic: self.ids[topic] for topic in topics if topic in self.ids}

    def are_there(self, topics):
        return {one.topic for one in self.now} & set(topics)

    def samples(self, positions):
        return {one: SimpleNamespace(bytes_per_offset=10.0, earliest_ms=1000 * at) for one, at in positions.items()}

    def close(self):
        self.is_closed = True


def stream_of(log, clock=lambda: 0.0, **options):
    given = {"kafka.bootstrap.servers": "h:1", "subscribe": "a,b", "startingOffsets": "earliest", **options}
    made = BrokerStream(parse_read(given, 0, streaming=True), clock, now_ms=lambda: 100_000)
    made._broker = log
    return made


def ends_at(found):
    return from_json(found).offsets


def test_a_stream_begins_where_its_options_say():
    log = StillLog({A0: 9, A1: 7}, first={A0: 2})
    assert stream_of(log).initialOffset() == {"a": {"0": 2, "1": 0}, "topic ids": {"a": "id-a"}}
    assert ends_at(stream_of(log, startingOffsets="latest").initialOffset()) == {A0: 9, A1: 7}
    assert stream_of(StillLog({})).initialOffset() == {}


def test_a_batch_has_all_that_there_is_or_as_much_as_it_may():
    log = StillLog({A0: 90, A1: 10})
    start = {"a": {"0": 0, "1": 0}}
    assert ends_at(stream_of(log).latestOffset()) == {A0: 90, A1: 10}
    assert ends_at(stream_of(log).latestOffset(start, ReadAllAvailable())) == {A0: 90, A1: 10}
    assert sum(ends_at(stream_of(log).latestOffset(start, ReadMaxRows(20))).values()) == 20
    assert sum(ends_at(stream_of(log, maxBytesPerTrigger="200").latestOffset(start)).values()) == 20
    assert ends_at(stream_of(log, maxTimePerTrigger="5s").latestOffset(start))[A0] < 90
    assert isinstance(stream_of(log).getDefaultReadLimit(), ReadAllAvailable)
    assert stream_of(log, maxOffsetsPerTrigger="7").getDefaultReadLimit().max_rows == 7


def test_too_few_records_are_waited_for_but_not_forever():
    now = [0.0]
    stream = stream_of(StillLog({A0: 5}), lambda: now[0], minOffsetsPerTrigger="10", maxTriggerDelay="1m")
    start = {"a": {"0": 0}}
    assert stream.latestOffset(start) == start
    now[0] = 60.0
    assert ends_at(stream.latestOffset(start)) == {A0: 5}
    assert stream.latestOffset(start) == start  # since the last batch
    stream._broker.now[A0] = 10
    assert ends_at(stream.latestOffset(start)) == {A0: 10}


def test_a_query_of_what_is_available_ends_at_what_there_was():
    log = StillLog({A0: 5})
    stream = stream_of(log, minOffsetsPerTrigger="10")
    stream.prepareForTriggerAvailableNow()
    log.now[A0] = 50
    assert ends_at(stream.latestOffset({"a": {"0": 0}})) == {A0: 5}


def test_how_far_a_stream_is_behind_is_reported():
    log = StillLog({A0: 50})
    stream = stream_of(log)
    stream.latestOffset({"a": {"0": 0}}, ReadMaxRows(40))
    assert stream.reportLatestOffset()[BEHIND] == {"records": 10, "seconds": 60.0}
    stream.latestOffset({"a": {"0": 40}})
    assert stream.reportLatestOffset()[BEHIND] == {"records": 0, "seconds": 0.0}


def lossy(stream_options, log, question, said):
    """A loss is an error, unless the options accept it."""
    with pytest.raises(DataLoss, match=said):
        question(stream_of(log, **stream_options))
    return question(stream_of(log, **stream_options, failOnDataLoss="false"))


def test_new_partitions_begin_at_their_start():
    log = StillLog({A0: 9, A1: 7}, first={A1: 3})
    tasks = stream_of(log).partitions({"a": {"0": 5}}, {"a": {"0": 9, "1": 7}})
    assert [task.wanted for task in tasks] == [OffsetRange(A0, 5, 9), OffsetRange(A1, 3, 7)]
    assert {task.topic_id for task in tasks} == {"id-a"}
    assert stream_of(log).partitions({"a": {"0": 9, "1": 7}}, {"a": {"0": 9, "1": 7}}) == []


def test_retention_that_was_quicker_than_the_stream_is_a_loss():
    log = StillLog({A0: 9}, first={A0: 6})
    tasks = lossy(
        {}, log, lambda s: s.partitions({"a": {"0": 2}}, {"a": {"0": 9}}), "a-0 was read up to 2 and begins at 6 now"
    )
    assert [task.wanted for task in tasks] == [OffsetRange(A0, 6, 9)]
    end = lossy({}, log, lambda s: s.latestOffset({"a": {"0": 2}}), "retention deleted records before the stream")
    assert ends_at(end) == {A0: 9}


def test_a_partition_that_ends_before_what_was_read_is_a_loss():
    log = StillLog({A0: 9})
    end = lossy({}, log, lambda s: s.latestOffset({"a": {"0": 12}}), "a-0 was read up to 12 and ends at 9 now")
    assert ends_at(end) == {A0: 12}
    gone = lossy(
        {}, log, lambda s: s.latestOffset({"a": {"0": 2, "1": 3}}), "a-1 was read up to 3 and no longer exists"
    )
    assert ends_at(gone) == {A0: 9}
    short = lambda s: s.partitions({"a": {"0": 12}}, {"a": {"0": 9}})  # noqa: E731
    assert lossy({}, log, short, "a-0 was read up to 12 and ends before that now") == []


def test_a_topic_that_was_deleted_is_a_loss():
    log = StillLog({A0: 9})
    tasks = lossy(
        {},
        log,
        lambda s: s.partitions({"a": {"0": 0}, "b": {"0": 0}}, {"a": {"0": 9}, "b": {"0": 4}}),
        "topic b was deleted; failOnDataLoss=false leaves out its records",
    )
    assert [task.wanted for task in tasks] == [OffsetRange(A0, 0, 9)]


def test_a_topic_that_was_made_anew_is_read_from_its_start():
    log = StillLog({A0: 3})
    start = {"a": {"0": 70}, "topic ids": {"a": "old"}}
    end = lossy({}, log, lambda s: s.latestOffset(start), "begins the new topic at its start")
    assert from_json(end) == ({A0: 3}, {"a": "id-a"})
    tasks = lossy({}, log, lambda s: s.partitions(start, end), "deleted and recreated")
    assert [task.wanted for task in tasks] == [OffsetRange(A0, 0, 3)]
    planned = {"a": {"0": 90}, "topic ids": {"a": "old"}}
    assert lossy({}, log, lambda s: s.partitions(start, planned), "leaves out the records of the old one") == []


def test_a_stream_of_what_was_available_begins_a_new_topic_too():
    log = StillLog({A0: 3})
    stream = stream_of(log, failOnDataLoss="false")
    stream.prepareForTriggerAvailableNow()
    assert ends_at(stream.latestOffset({"a": {"0": 1}, "topic ids": {"a": "old"}})) == {A0: 3}


def test_tasks_get_the_options_alone_and_the_driver_closes_its_connection():
    log = StillLog({A0: 3})
    stream = stream_of(log)
    assert stream.__getstate__() == {"options": stream.options}
    stream.stop()
    stream.stop()
    assert log.is_closed


def test_a_task_reads_its_range(cluster):
    topic = unique("ranged")
    create(cluster, topic)
    fill(cluster, topic, count=30)
    given = {"kafka.bootstrap.servers": cluster.address, "subscribe": topic, "startingOffsets": "earliest"}
    stream = BrokerStream(parse_read(given, 0, streaming=True))
    (first, *_) = stream.partitions(stream.initialOffset(), stream.latestOffset())
    stream.stop()
    assert [offset for batch in stream.read(first) for offset in batch["offset"].to_pylist()] == list(range(10))


def test_every_question_to_a_stream_with_bad_options_has_the_reason_for_an_answer():
    refused = RefusedStream(OptionError("a stream has no end"))
    for question in (
        refused.initialOffset,
        refused.latestOffset,
        lambda: refused.partitions({}, {}),
        lambda: refused.read(None),
    ):
        with pytest.raises(OptionError, match="a stream has no end"):
            question()
