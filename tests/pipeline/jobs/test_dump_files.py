"""A dump in an object store is read as the same files are on a disk."""

import datetime as dt
import time

import pytest

from horolog.commands.errors import NotFoundError, UsageError
from horolog.pipeline.jobs.dump_files import (
    CONTENT,
    FILE,
    FILE_FORMATS,
    STATE,
    TIME,
    Columns,
    Lines,
    SparkRows,
    WholeRows,
    format_among,
    rows_at,
)
from horolog.pipeline.stores.object_stores import Place
from horolog.pipeline.stores.store import LocalStore
from tests.pipeline.reading.test_object_files import uploaded
from tests.support.names import unique

NOON = dt.datetime(2025, 11, 17, 12, tzinfo=dt.UTC)


def on_disk(spark, kind, path):
    reader = spark.read.format(kind)
    if kind == "csv":
        reader = reader.option("header", "true").option("inferSchema", "true")
    return reader.load(str(path))


def content(frame):
    return frame.dtypes, sorted(map(tuple, frame.collect()), key=repr)


@pytest.mark.parametrize("kind", FILE_FORMATS)
def test_a_dump_in_a_bucket_is_read_as_one_on_a_disk(spark, s3, tmp_path, kind):
    rows = spark.createDataFrame(
        [(n, f"item ü {n}" if n % 3 else None, n / 2, NOON + dt.timedelta(hours=n)) for n in range(20)],
        "id int, name string, price double, created timestamp",
    ).repartition(3)
    dump = tmp_path / "dump"
    writer = rows.write.format(kind)
    (writer.option("header", "true") if kind == "csv" else writer).save(str(dump))
    (dump / "_SUCCESS").write_text("left out")
    expected = content(on_disk(spark, kind, dump))
    place = Place.of(uploaded(s3, dump), s3.options, {})
    found = rows_at(spark, place, None).all
    assert content(found) == expected
    one = next(path.name for path in sorted(dump.glob("part-*")) if path.stat().st_size)
    single = rows_at(spark, place / one, kind).all
    assert content(single.select("id"))[1] == content(on_disk(spark, kind, dump / one).select("id"))[1]


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_the_files_of_rows_are_known_on_a_disk_and_in_a_bucket(spark, s3, tmp_path, kind):
    from pyspark.sql import functions as f

    dump = tmp_path / "dump"
    rows = spark.createDataFrame([(n, NOON + dt.timedelta(hours=n)) for n in range(6)], "id int, created timestamp")
    rows.repartition(2).write.format(kind).save(str(dump))
    names = {path.name for path in dump.glob("part-*")}
    for found in (
        SparkRows(on_disk(spark, kind, dump)),
        rows_at(spark, Place.of(uploaded(s3, dump), s3.options, {}), None),
    ):
        times = found.times("created", f.col("created")).collect()
        assert sorted(row[TIME].astimezone(dt.UTC) for row in times) == [NOON + dt.timedelta(hours=n) for n in range(6)]
        assert {row[FILE].rpartition("/")[2] for row in times} == names
        assert all(row[STATE] and row[CONTENT] == 0 for row in times)
        of = {file: content(found.of([file]))[1] for file in {row[FILE] for row in times}}
        assert sorted(row for each in of.values() for row in each) == content(found.all)[1]
        assert all(of.values())


def test_rows_that_do_not_tell_their_file(spark):
    from pyspark.sql import functions as f

    rows = spark.createDataFrame([(1, NOON), (2, NOON)], "id int, created timestamp")
    for state, told in ((None, 2), ("unchanged", 1)):
        found = WholeRows(rows, state)
        times = found.times("created", f.col("created")).collect()
        assert {(row[FILE], row[STATE]) for row in times} == {(None, state)}
        assert len({row[CONTENT] for row in times}) == told
        assert found.of([]) is rows


def test_columns_are_those_of_the_first_file(spark, s3, tmp_path):
    (tmp_path / "dump").mkdir()
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"a": pa.array([1], pa.int64()), "b": ["x"]}), tmp_path / "dump" / "1.parquet")
    pq.write_table(pa.table({"c": [5], "a": pa.array([2], pa.int32())}), tmp_path / "dump" / "2.parquet")
    found = rows_at(spark, Place.of(uploaded(s3, tmp_path / "dump"), s3.options, {}), None).all
    assert content(found) == ([("a", "bigint"), ("b", "string")], [(1, "x"), (2, None)])


def test_what_tasks_make_of_names(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import orc

    table = pa.table({"a": pa.array([1, 2], pa.int32())})
    pq.write_table(table, tmp_path / "x.parquet")
    orc.write_table(table, tmp_path / "x.orc")
    (tmp_path / "x.csv").write_bytes("\ufeffa\r\n1\n".encode())
    files, wanted = LocalStore(tmp_path), pa.schema([("a", pa.int64()), ("b", pa.string())])

    def made(task, name):
        batches = list(task([pa.RecordBatch.from_pydict({"name": [name]})]))
        return pa.Table.from_batches(batches).to_pylist()

    for kind in ("parquet", "orc"):
        assert made(Columns(files, kind, wanted), f"x.{kind}") == [{"a": 1, "b": None}, {"a": 2, "b": None}]
    assert made(Lines(files), "x.csv") == [{"value": "a"}, {"value": "1"}]


def test_what_cannot_be_read_is_said(spark, s3, tmp_path):
    with pytest.raises(NotFoundError, match="is empty"):
        rows_at(spark, Place.of(s3.url(unique("nothing")), s3.options, {}), None)
    (tmp_path / "dump" / "year=2025").mkdir(parents=True)
    (tmp_path / "dump" / "year=2025" / "1.json").write_text("{}")
    with pytest.raises(UsageError, match="has columns in the names of folders"):
        rows_at(spark, Place.of(uploaded(s3, tmp_path / "dump"), s3.options, {}), None)
    with pytest.raises(UsageError, match=r"no file in x looks like parquet, json, csv, orc"):
        format_among(["a", "b.gz"], "x")


@pytest.mark.parametrize(("names", "kind"), [(["a.txt", "b.ndjson"], "json"), (["c.snappy.parquet"], "parquet")])
def test_a_format_is_known_by_the_first_name_that_tells(names, kind):
    assert format_among(names, "x") == kind


def test_a_dump_in_a_bucket_is_sent_once(spark, run, produce, s3, tmp_path, monkeypatch):
    s3.enter(monkeypatch)
    topic, now_ms = unique("dumped"), time.time_ns() // 1_000_000
    produce(topic, [])
    (tmp_path / "dump").mkdir()
    lines = "".join(f'{{"id":{n},"at":{now_ms - n}}}\n' for n in range(7))
    (tmp_path / "dump" / "rows.jsonl").write_text(lines)
    url = uploaded(s3, tmp_path / "dump")
    words = ("bootstrap", "--topic", topic, "--time-column", "at", "--key-column", "id", "-o", "json")
    for source, expected in ((url, 7), (url.replace("s3a:", "s3:") + "/", 0)):
        sent = run(*words, "--from", source)
        assert (sent.code, sent.json["records"]) == (0, expected), sent.err
    for source, code, said in (
        (s3.url(unique("nothing")), 4, "is empty"),
        ("s3a://nobody-made-it/x", 1, "there is no bucket nobody-made-it"),
        ("hdfs://name/x", 2, "the format of hdfs://name/x is unknown; give it with --format"),
    ):
        refused = run(*words, "--from", source)
        assert (refused.code, said in refused.err) == (code, True), refused.err
