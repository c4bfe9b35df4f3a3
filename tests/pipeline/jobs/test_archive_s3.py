"""Archives in a real S3 server: whole, safe against a second job and a kill at any moment, and sent to a topic again."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from horolog.pipeline.stores.object_stores import Place
from horolog.pipeline.tables import row_files
from horolog.pipeline.tables.lock import writing
from horolog.pipeline.tables.parquet import ParquetTable, plain_rows
from horolog.pipeline.tables.table import ROWS, CommitLost, TableError, open_table
from horolog.stores.faults import StoreError
from tests.pipeline.jobs.test_archive import (
    BASE_MS,
    DAY_MS,
    NOON,
    PLACE,
    archived,
    consumed,
    days_of_records,
)
from tests.pipeline.reading.test_object_files import uploaded
from tests.pipeline.reading.test_offline import log_of
from tests.pipeline.samples import BASE_MS as BASE_TIME
from tests.support.names import unique
from tests.support.style import PROJECT

KINDS = ("parquet", "delta")


@pytest.fixture
def around(s3, monkeypatch):
    """The environment as somebody has it who works with that server."""
    s3.enter(monkeypatch)


@pytest.mark.parametrize("kind", KINDS)
def test_a_topic_is_archived_to_a_bucket_and_replayed_from_it(spark, run, produce, s3, around, kind):
    topic, again, url = unique("bucket"), unique("again"), s3.url(unique("table"))
    words = ("archive", "--topic", topic, "--to", url, "--format", kind, "--step", "70", "-o", "json")
    produce(topic, list(days_of_records(150)), partitions=2)
    first = run(*words)
    assert (first.code, first.json["records"], first.json["commits"]) == (0, 150, 3), first.err
    assert run(*words).json["records"] == 0
    produce(topic, list(days_of_records(30, seed=2)), partitions=2)
    third = run(*words, "--compact")
    assert (third.code, third.json["records"]) == (0, 30), third.err
    assert third.json["files_compacted_away"] > 0
    assert archived(spark, kind, url) == consumed(run, topic)
    since = BASE_MS + DAY_MS + 5
    expected = [each for each in consumed(run, topic) if since <= each[3] < since + DAY_MS]
    assert open_table(kind, url, spark).rows(since, since + DAY_MS).count() == len(expected)
    if kind == "parquet":
        plain = plain_rows(spark, Place.of(url, s3.options, {}))
        assert plain.count() == 180, "one who reads the plain folder sees each row once"
    sent = run("replay", "--from", url.replace("s3a:", "s3:"), "--topic", again, "-o", "json")
    assert sent.code != 0, "the topic is not there"
    produce(again, [], partitions=2)
    sent = run("replay", "--from", url, "--topic", again, "--exactly-once", "-o", "json")
    assert (sent.code, sent.json["records"]) == (0, 180), sent.err
    twice = run("replay", "--from", url.replace("s3a:", "s3:") + "/", "--topic", again, "--exactly-once", "-o", "json")
    assert (twice.code, twice.json["records"]) == (0, 0), twice.err

    def content(name):
        return sorted((each[1], each[3:]) for each in consumed(run, name))

    assert repr(content(again)) == repr(content(topic))
    assert s3.secret_key not in first.err + third.err + sent.err + first.out + third.out + sent.out


def test_a_table_in_a_catalogue_is_written_and_replayed_by_its_name(run, spark, produce, s3, around, tmp_path):
    topic, again = unique("named"), unique("again")
    uri, warehouse = f"uri=sqlite:///{tmp_path / 'c.db'}", f"warehouse=s3://lake/{unique('w')}"
    table = ("--catalog", "sql", "--catalog-set", uri, "--catalog-set", warehouse, "--table", "logs.t")
    produce(topic, list(days_of_records(40)), partitions=2)
    first = run("archive", "--topic", topic, *table, "--step", "25", "-o", "json")
    assert (first.code, first.json["records"], first.json["commits"]) == (0, 40, 2), first.err
    assert run("archive", "--topic", topic, *table, "--format", "iceberg", "-o", "json").json["records"] == 0
    produce(again, [], partitions=2)
    for expected in (40, 0):
        sent = run("replay", *table, "--topic", again, "--exactly-once", "-o", "json")
        assert (sent.code, sent.json["records"]) == (0, expected), sent.err
    times = sorted(each[3] for each in consumed(run, topic))
    assert sorted(each[3] for each in consumed(run, again)) == times


def test_a_table_is_said_in_one_way(run, produce, tmp_path):
    topic = unique("said")
    named = ("--catalog", "sql", "--table", "logs.t")
    for words, said in (
        (("archive",), "give --to, or --catalog and --table"),
        (("archive", "--catalog", "sql"), "choose one with --table NAMESPACE.NAME"),
        (("archive", "--table", "logs.t", "--to", tmp_path), "give --catalog, too"),
        (("archive", "--catalog", "sql", "--table", "t"), "a table in a catalogue is NAMESPACE.NAME"),
        (("archive", *named, "--format", "delta"), "--catalog is for Iceberg tables, not for delta"),
        (("archive", *named, "--checkpoint", "c"), "--checkpoint is for parquet"),
        (("archive", *named, "--catalog-set", "uri"), "expected KEY=VALUE"),
        (("replay",), "give either --from, or --catalog and --table"),
        (("replay", *named, "--from", tmp_path), "give either --from, or --catalog and --table"),
    ):
        ended = run(*words, "--topic", topic)
        assert (ended.code, said in ended.err) == (2, True), (words, ended.err)


def test_segments_in_a_bucket_are_replayed(spark, run, produce, s3, around, tmp_path):
    topic = unique("segments")
    produce(topic, [], partitions=1)
    data, count = log_of(tmp_path, segments=3)
    url = uploaded(s3, data)
    sent = run("replay", "--from", url, "--topic", topic, "-o", "json")
    assert (sent.code, sent.json["records"]) == (0, count), sent.err
    times = [each[3] for each in consumed(run, topic)]
    assert times == [BASE_TIME + 1000 * n for n in range(count)]
    ended = run("replay", "--from", s3.url(unique("nothing")), "--topic", topic)
    assert (ended.code, "holds neither an archive nor segment files" in ended.err) == (1, True)


@pytest.mark.parametrize("kind", KINDS)
def test_of_two_that_saw_the_same_progress_one_adds_its_rows(spark, s3, around, kind):
    url = s3.url(unique("two"))
    rows = spark.createDataFrame([("t", 0, 1, NOON, 0, None, b"v", None)], ROWS)
    first, second = (open_table(kind, url, spark) for _ in range(2))
    for expected in (1, 2):
        assert first.offsets() == second.offsets() == ({PLACE: expected - 1} if expected > 1 else {})
        first.append(rows, {PLACE: expected}, {"t": "id"})
        with pytest.raises(CommitLost):
            second.append(rows, {PLACE: expected}, {"t": "id"})
        assert open_table(kind, url, spark).rows().count() == expected
    assert (second.offsets(), second.topic_ids()) == ({PLACE: 2}, {"t": "id"})


def test_only_groups_of_rows_that_may_be_in_the_range_are_read(spark, s3, around, monkeypatch):
    url = s3.url(unique("groups"))
    monkeypatch.setattr(row_files, "ROW_GROUP_ROWS", 10)
    rows = spark.range(1000, numPartitions=1).selectExpr(
        "'t' as topic", "0 as partition", "id as offset", f"timestamp_millis({BASE_MS} + id) as timestamp",
        "0 as timestampType", "cast(null as binary) as key", "cast('v' as binary) as value",
        "cast(null as array<struct<key:string,value:binary>>) as headers",
    )  # fmt: skip
    table = open_table("parquet", url, spark)
    with writing(table):
        table.append(rows, {PLACE: 1000})
    found = table.rows(BASE_MS + 333, BASE_MS + 444).select("offset").collect()
    assert sorted(row["offset"] for row in found) == list(range(333, 444))


class Crash(BaseException):
    """The process ends here."""


def test_a_table_in_a_bucket_survives_a_crash_at_every_step_of_a_commit(spark, s3, around, monkeypatch):
    """The commit is interrupted before its n-th change of an object, for every n; then the job runs again."""
    from horolog.pipeline.stores.object_store import ObjectStore
    from horolog.pipeline.tables import lock

    rows = spark.range(6).selectExpr(
        "'t' as topic", "0 as partition", "id as offset", "timestamp_millis(1763337600000 + id * 40000000) as timestamp",
        "0 as timestampType", "cast(null as binary) as key", "cast('v' as binary) as value",
        "cast(null as array<struct<key:string,value:binary>>) as headers",
    ).cache()  # fmt: skip
    monkeypatch.setattr(ObjectStore, "at_once", 1)
    left = [0]

    def falling(original):
        def call(*arguments, **named):
            left[0] -= 1
            if left[0] < 0:
                raise Crash
            return original(*arguments, **named)

        return call

    import obstore

    crashed = 0
    for survived in range(100):
        url = s3.url(unique("crash"))
        monkeypatch.setattr(lock, "_process", lambda pid, life=survived: f"{pid} in life {2 * life}")
        with monkeypatch.context() as patch:
            left[0] = survived * 2  # every second one: the others are tried on a file system
            for name in ("put", "copy", "delete"):
                patch.setattr(obstore, name, falling(getattr(obstore, name)))
            table = open_table("parquet", url, spark)
            try:
                with writing(table):
                    table.append(rows, {PLACE: 6})
                done = True
            except Crash:
                done = False
        crashed += not done
        monkeypatch.setattr(lock, "_process", lambda pid, life=survived: f"{pid} in life {2 * life + 1}")
        table = open_table("parquet", url, spark)
        if table.offsets():
            assert table.rows().count() == 6
        with writing(table):
            if not table.offsets():
                table.append(rows, {PLACE: 6})
        offsets = [row["offset"] for row in table.rows().orderBy("offset").collect()]
        assert (table.offsets(), offsets) == ({PLACE: 6}, list(range(6)))
        place = Place.of(url, s3.options, {})
        assert plain_rows(spark, place).count() == 6
        assert table._own.folders("staging") == []
        if done:
            break
    assert crashed > 3


def test_what_is_wrong_is_one_sentence(spark, run, produce, s3, around, monkeypatch):
    topic = unique("wrong")
    produce(topic, [{"value": "v", "timestamp": BASE_MS}])
    for words, said in (
        (("--to", "s3a://nobody-made-it/t"), "there is no bucket nobody-made-it"),
        (("--to", "s3a://nobody-made-it/t", "--format", "delta"), "there is no bucket nobody-made-it"),
        (("--to", s3.url("i"), "--format", "iceberg"), "needs a catalogue; use --catalog and --table"),
        (("--to", "tape://name/t"), "neither a store nor fsspec supports tape://"),
        (("--to", s3.url("d"), "--format", "hudi"), "hudi"),
        (("--to", s3.url("c"), "--checkpoint", "/tmp/c"), "has to be in the same bucket"),
    ):
        ended = run("archive", "--topic", topic, *words)
        assert ended.code != 0, words
        assert said in ended.err, (words, ended.err)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    ended = run("archive", "--topic", topic, "--to", s3.url("denied"))
    assert (ended.code, len(ended.err.strip().splitlines())) == (1, 1)
    assert "access denied (SignatureDoesNotMatch)" in ended.err
    ended = run("replay", "--topic", topic, "--from", s3.url("denied"))
    assert (ended.code, "access denied" in ended.err) == (1, True)


def test_a_folder_that_holds_nothing_is_no_table(spark, s3, around):
    with pytest.raises(TableError, match="is not a table of horolog yet"):
        ParquetTable(Place.of(s3.url(unique("empty")), s3.options, {}), spark).rows()


def test_what_a_store_answers_delta_is_one_sentence_without_its_text(spark, s3, around, monkeypatch):
    """Its own text has signatures, and comes from inside of `deltalake` where the store was right before."""
    rows = spark.createDataFrame([("t", 0, 1, NOON, 0, None, b"v", None)], ROWS)
    url = s3.url(unique("refused"))
    table = open_table("delta", url, spark)
    table._options["AWS_SECRET_ACCESS_KEY"] = "wrong"
    with pytest.raises(StoreError) as caught:
        table.append(rows, {PLACE: 1})
    assert str(caught.value) == f"{url}: access denied (SignatureDoesNotMatch)"
    assert caught.value.__suppress_context__
    with pytest.raises(TableError, match="is not a Delta table yet"):
        open_table("delta", url, spark).rows()


@pytest.mark.kills
@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(1800)
def test_two_jobs_at_once_one_of_which_is_killed_archive_everything_once(
    spark, run, produce, session_broker, s3, around
):
    topic, name = unique("at-once"), unique("table")
    folder = s3.bucket / name
    produce(topic, list(days_of_records(1500, seed=4)), partitions=2)
    command = [sys.executable, "-m", "horolog", "pipeline", "archive", "--topic", topic, "--to", s3.url(name)]
    command += ["--step", "150", "--bootstrap", session_broker.address, "--quick", "--master", "local[1]"]
    rng = random.Random(int(os.environ.get("HOROLOG_SEED", "1")))

    def start(*more):
        return subprocess.Popen(
            [*command, *more], cwd=PROJECT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
        )

    killed = False
    for _ in range(4):
        jobs = [start(), start("--wait", "5m")]
        deadline = time.monotonic() + 120
        while not list(folder.glob("_horolog/commits/*.json")) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(2 * rng.random())
        if not killed:
            owner = json.loads(max(folder.glob("_horolog/lock/*.json")).read_text())["owner"]["pid"]
            victims = [job for job in jobs if job.pid == owner and job.poll() is None]
            for job in victims:
                os.killpg(job.pid, signal.SIGKILL)
            killed = bool(victims)
        said = [job.communicate()[1].decode() for job in jobs]
        assert {job.returncode for job in jobs} <= {0, 6, -signal.SIGKILL}, said
        if killed:
            break
    assert killed
    assert run("archive", "--topic", topic, "--to", s3.url(name)).code == 0
    assert archived(spark, "parquet", s3.url(name)) == consumed(run, topic)
