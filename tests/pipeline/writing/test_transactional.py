"""Data frames and streams in transactions: all of a batch or nothing, once however often it comes, and one driver of a name at a time."""

import asyncio
import os
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from horolog.client.values.types import TopicPartition
from horolog.client.wire.client import Client
from horolog.pipeline.options.options import parse_write
from horolog.pipeline.writing import transactional
from horolog.pipeline.writing.exactly_once import Owner, Part, WriteFailed, task_id
from horolog.pipeline.writing.transacting import Cluster, OpenTransaction
from horolog.pipeline.writing.transactional import (
    BATCH,
    QUERY,
    UNNAMED,
    abort_batch,
    claim_name,
    commit_batch,
    run_of_task,
)
from horolog.protocol.messages.transactions import ListTransactionsRequest
from tests.pipeline.clusters import SETTINGS, committed, create, fill
from tests.support.broker_process import BrokerProcess
from tests.support.names import unique

HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    broker = BrokerProcess(tmp_path_factory.mktemp("transactional") / "data", SETTINGS).start()
    yield broker
    broker.stop()


def made(cluster, **config):
    topic = unique("written")
    create(cluster, topic, **config)
    return topic


def options_of(cluster, topic, **more):
    return {"kafka.bootstrap.servers": cluster.address, "topic": topic, "transactional": "true"} | more


def write(frame, options):
    frame.write.format("horolog").options(**options).mode("append").save()


def values(cluster, topic):
    return sorted(row[1] for row in committed(cluster, topic))


def contents(cluster, topic):
    """Key, value, partition and time of each record."""
    return sorted((row[:2] + row[3:4] + row[5:6] for row in committed(cluster, topic)), key=repr)


def numbers(count, first=0):
    return sorted(b"%d" % n for n in range(first, first + count))


def open_now(cluster):
    """Transactional ids with an open transaction."""

    async def ask():
        async with Client(cluster.address) as client:
            return sorted(await Cluster(client, None, 60_000).open_ids())

    return asyncio.run(ask())


def begun(cluster, topic, transactional_id):
    """A transaction with nothing but a partition in it, as somebody leaves it who dies."""

    async def begin():
        async with Client(cluster.address) as client:
            transaction = OpenTransaction(client, transactional_id, 60_000)
            await transaction.begin()
            await transaction.add(TopicPartition(topic, 0))
            return transaction.owner

    return asyncio.run(begin())


# -- without Spark


class Context:
    """What Spark tells a task."""

    def __init__(self, task=0, attempt=0, **said):
        self.partitionId, self.attemptNumber = lambda: task, lambda: attempt
        self.getLocalProperty = said.get


def run_in(monkeypatch, options, claim, task=0, attempt=0, batch=None, query="q"):
    said = {} if batch is None else {BATCH: str(batch), QUERY: query}
    monkeypatch.setattr(transactional, "TaskContext", SimpleNamespace(get=lambda: Context(task, attempt, **said)))
    return run_of_task(options, claim)


def part_in(cluster, run, topic):
    """The part of a task that has written nothing but its note."""

    async def write():
        async with Client(cluster.address) as client:
            transaction = OpenTransaction(client, run.transactional_id, 60_000)
            await transaction.begin()
            await transaction.add(TopicPartition(topic, 0))
            if run.place is not None:
                await transaction.note(run.place, run.note(transaction.owner))
            return Part(run.task, run.attempt, transaction.owner, 1, 1)

    return asyncio.run(write())


def test_a_write_without_transactions_claims_nothing(cluster):
    assert claim_name(parse_write({"kafka.bootstrap.servers": cluster.address, "topic": "t"})) is None


def test_a_stream_is_claimed_written_and_known(cluster, monkeypatch, capsys):
    topic, name = made(cluster), unique("stream")
    options = parse_write(options_of(cluster, topic, transactionalId=name), streaming=True)
    first = claim_name(options)
    run = run_in(monkeypatch, options, first, task=3, attempt=1, batch=7)
    assert (run.batch, run.of, run.is_to_be_written) == (7, "q", True)
    assert run.transactional_id == task_id(name, 3, 1)
    commit_batch(options, run, [part_in(cluster, run, topic)])
    again = run_in(monkeypatch, options, claim_name(options), batch=7)
    assert not again.is_to_be_written
    commit_batch(options, again, [])
    assert f"batch 7 of {name} was written before; nothing was written again" in capsys.readouterr().err
    other = run_in(monkeypatch, options, claim_name(options), batch=8, query="another")
    with pytest.raises(WriteFailed, match="belongs to the stream q, whose batch 7"):
        assert other.is_to_be_written
    with pytest.raises(WriteFailed, match="the stream and the number of the batch"):
        run_in(monkeypatch, options, first)
    assert open_now(cluster) == []


def test_numbers_of_a_name_rise(cluster, monkeypatch):
    topic, name = made(cluster), unique("load")
    options = parse_write(options_of(cluster, topic, transactionalId=name, batchId="5"))
    run = run_in(monkeypatch, options, claim_name(options))
    assert (run.batch, run.of) == (5, "")
    commit_batch(options, run, [])
    less = parse_write(options_of(cluster, topic, transactionalId=name, batchId="4"))
    with pytest.raises(WriteFailed, match=f"batchId 4 is less than 5, the newest that {name} has written"):
        claim_name(less)


@pytest.mark.parametrize("named", [False, True])
def test_a_batch_that_failed_is_aborted_with_all_that_was_left(cluster, monkeypatch, named):
    topic = made(cluster)
    more = {"transactionalId": unique("load"), "batchId": "1"} if named else {}
    options = parse_write(options_of(cluster, topic, **more))
    claim = claim_name(options)
    run = run_in(monkeypatch, options, claim)
    assert run.is_to_be_written
    part = part_in(cluster, run, topic)
    begun(cluster, topic, task_id(claim.name, 5, 2))
    assert len(open_now(cluster)) == 2
    abort_batch(options, claim, [part])
    assert open_now(cluster) == []
    abort_batch(options, claim, [part])


def test_a_write_without_a_name_is_all_or_says_what_is_missing(cluster, monkeypatch):
    topic = made(cluster)
    options = parse_write(options_of(cluster, topic))
    claim = claim_name(options)
    assert claim.name.startswith(UNNAMED)
    assert claim.name != claim_name(options).name
    run = run_in(monkeypatch, options, claim)
    part = part_in(cluster, run, topic)
    begun(cluster, topic, task_id(claim.name, 0, 3))
    commit_batch(options, run, [part])
    assert open_now(cluster) == []
    monkeypatch.setattr(Cluster, "states", lambda *_: asyncio.sleep(0))
    gone = part._replace(owner=Owner(part.owner.producer_id, part.owner.epoch + 1))
    with pytest.raises(WriteFailed, match="1 of 2 transactions timed out while they were committed: 1 rows"):
        commit_batch(options, run, [part, gone])


# -- in Spark


def frame(spark, count, first=0, tasks=3):
    return spark.range(first, first + count, 1, tasks).selectExpr("cast(id as string) as value")


def test_a_data_frame_is_all_or_nothing(spark, cluster):
    """A late row is refused, and what other tasks have written by then is not seen."""
    topic = made(cluster, message_timestamp_before_max_ms=HOUR_MS)
    write(frame(spark, 500), options_of(cluster, topic))
    assert values(cluster, topic) == numbers(500)
    old = frame(spark, 300, 500).selectExpr(
        "value", "if(value = '790', timestamp'2020-01-01 00:00:00', null) as timestamp"
    )
    with pytest.raises(Exception, match="INVALID_TIMESTAMP"):
        write(old, options_of(cluster, topic))
    assert values(cluster, topic) == numbers(500)
    assert open_now(cluster) == [], "a reader of committed records would wait behind it"


def test_rejected_records_are_in_the_transaction(spark, cluster):
    topic, rejected = made(cluster, message_timestamp_before_max_ms=HOUR_MS), made(cluster)
    rows = frame(spark, 100).selectExpr(
        "value", "if(value % 10 = 3, timestamp'2020-01-01 00:00:00', null) as timestamp"
    )
    options = options_of(cluster, topic, rejectedTopic=rejected, transactionalId=unique("load"), batchId="1")
    for _ in range(2):
        write(rows, options)
        assert values(cluster, topic) == sorted(b"%d" % n for n in range(100) if n % 10 != 3)
        assert values(cluster, rejected) == sorted(b"%d" % n for n in range(100) if n % 10 == 3)


def test_a_batch_that_comes_again_is_left_out(spark, cluster):
    topic = made(cluster)
    options = options_of(cluster, topic, transactionalId=unique("load"))
    for batch in (1, 1, 7, 7):
        write(frame(spark, 50, 50 * batch), options | {"batchId": str(batch)})
    assert values(cluster, topic) == sorted(numbers(50, 50) + numbers(50, 350))
    with pytest.raises(Exception, match="batchId 6 is less than 7, the newest"):
        write(frame(spark, 1), options | {"batchId": "6"})


def test_topics_in_a_column_need_a_place_for_notes(spark, cluster):
    one, other, notes = made(cluster), made(cluster), made(cluster)
    rows = frame(spark, 60).selectExpr("value", f"if(value % 2 = 0, '{one}', '{other}') as topic")
    options = options_of(cluster, one, transactionalId=unique("load"), batchId="1", notesTopic=notes)
    del options["topic"]
    write(rows, options)
    write(rows, options)
    assert len(values(cluster, one)) == len(values(cluster, other)) == 30
    assert values(cluster, notes) == []


@pytest.mark.long
def test_a_stream_whose_batches_come_again_has_each_row_once(spark, cluster, tmp_path):
    """Spark has forgotten that its last batches were done, as after a crash before its own commit."""
    source, topic, name = made(cluster), made(cluster), unique("stream")
    fill(cluster, source, count=300)
    expected = contents(cluster, source)

    def run(options):
        reader = spark.readStream.format("horolog").options(subscribe=source, startingOffsets="earliest")
        reader = reader.options(**{"kafka.bootstrap.servers": cluster.address, "maxOffsetsPerTrigger": "100"})
        writer = reader.load().writeStream.format("horolog").options(**options)
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        assert query.awaitTermination(120)

    options = options_of(cluster, topic, transactionalId=name)
    run(options)
    assert contents(cluster, topic) == expected
    commits = tmp_path / "checkpoint" / "commits"
    for each in sorted(commits.glob("[0-9]*"), key=lambda path: int(path.name))[-2:]:
        each.unlink()
        (commits / f".{each.name}.crc").unlink()
    run(options)
    fill(cluster, source, start=300, count=60)
    run(options)
    expected = contents(cluster, source)
    assert contents(cluster, topic) == expected
    fill(cluster, source, start=360, count=30)
    with pytest.raises(Exception, match="a stream with transactional=true needs a transactionalId"):
        run(options_of(cluster, topic))
    with pytest.raises(Exception, match="belongs to the stream"):
        write(frame(spark, 5), options | {"batchId": "1000"})
    assert open_now(cluster) == []


def test_foreach_batch_hands_on_its_number(spark, cluster, tmp_path):
    source, topic = made(cluster), made(cluster)
    fill(cluster, source, count=90)
    options = options_of(cluster, topic, transactionalId=unique("each"))

    def twice(rows, batch):
        for _ in range(2):
            write(rows, options | {"batchId": str(batch)})

    reader = spark.readStream.format("horolog").options(subscribe=source, startingOffsets="earliest")
    reader = reader.options(**{"kafka.bootstrap.servers": cluster.address, "maxOffsetsPerTrigger": "45"})
    query = reader.load().writeStream.foreachBatch(twice).option("checkpointLocation", str(tmp_path))
    assert query.trigger(availableNow=True).start().awaitTermination(120)
    assert len(committed(cluster, topic)) == 90


def test_the_later_of_two_drivers_wins(spark, cluster, tmp_path, monkeypatch):
    """The earlier one is held up in a task until the later one is done."""
    topic, name, gate = made(cluster), unique("load"), tmp_path / "gate"
    options = options_of(cluster, topic, transactionalId=name, batchId="1")

    def slow(batches):
        for batch in batches:
            while not gate.exists():
                time.sleep(0.05)
            yield batch

    def later():
        """A driver without Spark; its batch is an empty one."""
        began = time.monotonic()
        try:
            while task_id(name, 0, 0) not in known(cluster):
                assert time.monotonic() - began < 60
                time.sleep(0.05)
            parsed = parse_write(options)
            run = run_in(monkeypatch, parsed, claim_name(parsed))
            commit_batch(parsed, run, [part_in(cluster, run, topic)])
        finally:
            gate.touch()

    rows = frame(spark, 40, tasks=1).mapInArrow(slow, "value string")
    with ThreadPoolExecutor() as pool:
        other = pool.submit(later)
        with pytest.raises(Exception, match=r"another driver has taken|PRODUCER_FENCED|no longer open"):
            write(rows, options)
        other.result()
    assert values(cluster, topic) == []
    write(frame(spark, 40, tasks=1), options)
    assert values(cluster, topic) == [], "batch 1 is the later one's, and known"
    write(frame(spark, 40, tasks=1), options | {"batchId": "2"})
    assert values(cluster, topic) == numbers(40)
    assert open_now(cluster) == []


def known(cluster):
    """Transactional ids that the broker has heard of."""

    async def ask():
        async with Client(cluster.address) as client:
            answer = await client.attempt(ListTransactionsRequest())
            return [each.transactional_id for each in answer.transaction_states]

    return asyncio.run(ask())


def test_what_a_task_was_killed_in_the_middle_of_is_not_seen(spark, cluster, tmp_path):
    """A local master tries no task again: the write fails, and the same write again is whole."""
    topic, flag = made(cluster), tmp_path / "was there"
    options = options_of(cluster, topic, transactionalId=unique("load"), batchId="1")

    def dies_once(batches):
        for number, batch in enumerate(batches):
            if number and not flag.exists():
                flag.touch()
                os.kill(os.getpid(), 9)
            yield batch

    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
    try:
        rows = frame(spark, 1000, tasks=2).mapInArrow(dies_once, "value string")
        with pytest.raises(Exception, match=r"crashed|exited"):
            write(rows, options)
        assert values(cluster, topic) == []
        write(rows, options)
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert values(cluster, topic) == numbers(1000)
