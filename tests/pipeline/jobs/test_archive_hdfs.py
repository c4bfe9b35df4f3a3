"""A real HDFS: segment files are read in it; tables of all kinds are safe there against a second job, kept small, and replayed."""

from typing import NamedTuple

import pytest

from horolog.pipeline import plan
from horolog.pipeline.stores.object_stores import Place
from horolog.pipeline.stores.store import files_of
from horolog.pipeline.tables.catalogues import CatalogueTable
from horolog.pipeline.tables.table import FORMATS, ROWS, CommitLost, open_table
from tests.pipeline import samples
from tests.pipeline.jobs.test_archive import NOON, PLACE, archived, consumed, days_of_records
from tests.pipeline.jobs.test_expire import KEEP_FROM, kept
from tests.pipeline.reading.test_object_files import read
from tests.pipeline.reading.test_offline import log_of
from tests.support import golden
from tests.support.names import unique


def uploaded(hdfs, folder):
    """The folder there; its URL."""
    url = f"{hdfs}/{unique('data')}/{folder.name}"
    store = files_of(Place.of(url))
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            store.create(str(path.relative_to(folder)), path.read_bytes())
    return url


@pytest.mark.parametrize(("name", "stage"), golden.names()[::30])
def test_a_golden_folder_holds_the_same_as_on_a_disk(hdfs, name, stage, golden_root, tmp_path):
    folder = golden.Case(name, golden_root).copy(stage, tmp_path)
    url = uploaded(hdfs, folder)
    for level in ("read_uncommitted", "read_committed"):
        options = {"kafka.isolation.level": level}
        assert read(url, **options) == read(folder, **options)


def test_spark_reads_and_replays_it(spark, run, produce, hdfs, tmp_path):
    data, count = log_of(tmp_path, segments=3)
    url, topic = uploaded(hdfs, data), unique("segments")
    since = samples.BASE_MS + 1000 * (count - 5)
    here, there = plan(str(data), since), plan(url, since)
    assert [piece._replace(path="") for piece in there.pieces] == [piece._replace(path="") for piece in here.pieces]
    rows = spark.read.format("horolog").load(url)
    found = rows.where(f"timestamp >= timestamp_millis({since})").collect()
    assert sorted(row["offset"] for row in found) == list(range(count - 5, count))
    produce(topic, [], partitions=1)
    sent = run("replay", "--from", url, "--topic", topic, "-o", "json")
    assert (sent.code, sent.json["records"]) == (0, count), sent.err


class Named(NamedTuple):
    """How commands that write and that read name a new table there, its format, and what opens it."""

    target: tuple
    source: tuple
    kind: str
    where: object


@pytest.fixture(params=FORMATS)
def table(request, hdfs, tmp_path):
    kind, url = request.param, f"{hdfs}/{unique('table')}"
    if kind == "iceberg":
        properties = {"uri": f"sqlite:///{tmp_path / 'catalogue.db'}", "warehouse": url}
        given = [word for name, value in properties.items() for word in ("--catalog-set", f"{name}={value}")]
        words = ("--catalog", "sql", *given, "--table", "logs.t")
        return Named(words, words, kind, CatalogueTable("sql", "logs.t", properties))
    return Named(("--to", url, "--format", kind), ("--from", url), kind, url)


@pytest.mark.long
def test_a_topic_is_archived_and_replayed_and_its_first_date_expires(spark, run, produce, table):
    topic, again = unique("hdfs"), unique("again")
    words = ("archive", "--topic", topic, *table.target, "--step", "70", "-o", "json")
    produce(topic, list(days_of_records(150)), partitions=2)
    first = run(*words)
    assert (first.code, first.json["records"], first.json["commits"]) == (0, 150, 3), first.err
    produce(topic, list(days_of_records(30, seed=2)), partitions=2)
    third = run(*words, "--compact")
    assert (third.code, third.json["records"]) == (0, 30), third.err
    assert third.json["files_compacted_away"] > 0
    assert archived(spark, table.kind, table.where) == consumed(run, topic)
    produce(again, [], partitions=2)
    for expected in (180, 0):
        sent = run("replay", *table.source, "--topic", again, "--exactly-once", "-o", "json")
        assert (sent.code, sent.json["records"]) == (0, expected), sent.err
    left = kept(consumed(run, topic))
    expired = run("expire", *table.target, "--older-than", KEEP_FROM, "--keep-versions", "0ms", "-o", "json")
    assert (expired.code, expired.json["records"]) == (0, 180 - len(left)), expired.err
    vacuumed = run("vacuum", *table.target, "--older-than", "0ms", "--force", "-o", "json")
    assert (vacuumed.code, vacuumed.json["files"] > 0) == (0, table.kind != "parquet"), vacuumed.err
    assert archived(spark, table.kind, table.where) == left


def test_sparks_own_reader_finds_rows_as_well(spark, run, produce, hdfs):
    topic, url = unique("hdfs"), f"{hdfs}/{unique('table')}"
    produce(topic, list(days_of_records(30)), partitions=2)
    assert run("archive", "--topic", topic, "--to", url, "-o", "json").json["records"] == 30
    assert spark.read.parquet(url).count() == 30


def test_a_checkpoint_may_be_elsewhere_in_it(spark, run, produce, hdfs, tmp_path):
    topic, url = unique("elsewhere"), f"{hdfs}/{unique('table')}"
    words = ("archive", "--topic", topic, "--to", url, "-o", "json", "--checkpoint")
    produce(topic, list(days_of_records(20)), partitions=2)
    checkpoint = f"{hdfs}/{unique('checkpoint')}"
    assert [run(*words, checkpoint).json["records"] for _ in range(2)] == [20, 0]
    assert files_of(Place.of(url)).folders("")[0].startswith("date="), "nothing of ours is in the table's folder"
    refused = run(*words, tmp_path)
    assert (refused.code, "has to be in the same bucket" in refused.err) == (1, True), refused.err


def test_of_two_that_saw_the_same_progress_one_adds_its_rows(spark, table):
    rows = spark.createDataFrame([("t", 0, 1, NOON, 0, None, b"v", None)], ROWS)
    first, second = (open_table(table.kind, table.where, spark) for _ in range(2))
    assert first.lock is not None, "a job asks for it first, which makes the namespace"
    for expected in (1, 2):
        assert first.offsets() == second.offsets() == ({PLACE: expected - 1} if expected > 1 else {})
        first.append(rows, {PLACE: expected}, {"t": "id"})
        with pytest.raises(CommitLost):
            second.append(rows, {PLACE: expected}, {"t": "id"})
        assert open_table(table.kind, table.where, spark).rows().count() == expected


def test_a_dump_in_it_is_read_by_spark(spark, run, produce, hdfs):
    url, topic = f"{hdfs}/{unique('dump')}", unique("dump")
    frame = spark.range(20).selectExpr("id", "timestamp_millis(1763337600000 + id) as timestamp")
    frame.write.parquet(url)
    produce(topic, [], partitions=1)
    words = ("bootstrap", "--from", url, "--topic", topic, "-o", "json")
    sent = run(*words, "--format", "parquet")
    assert (sent.code, sent.json["records"]) == (0, 20), sent.err
