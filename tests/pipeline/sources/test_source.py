"""The source as Spark finds it: by name, with or without filters handed over, and only for what it can do."""

from datetime import UTC, datetime

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.datasource import EqualTo, GreaterThan, GreaterThanOrEqual, LessThan

from horolog.pipeline.options.options import parse_read
from horolog.pipeline.sources.source import FilesReader, FilteredReader, HorologSource
from pyspark_horolog import DefaultSource
from tests.pipeline import samples
from tests.pipeline.reading.test_offline import NOW_MS, log_of

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A record a second, in ten segments of 200."""
    folder, _ = log_of(tmp_path_factory.mktemp("source"))
    return folder


def at(second, tz=UTC):
    return datetime.fromtimestamp(samples.BASE_MS / 1000 + second, tz)


def pieces_after(data, *filters):
    reader = FilteredReader(FilesReader(parse_read({"path": str(data)}, NOW_MS)))
    assert list(reader.pushFilters(list(filters))) == list(filters)
    return [piece for task in reader.partitions() for piece in task.pieces]


def test_lower_bounds_prune_and_every_filter_is_left_to_spark_too(data):
    time = ("timestamp",)
    assert len(pieces_after(data)) == 10
    assert len(pieces_after(data, GreaterThanOrEqual(time, at(1600)))) == 2
    assert len(pieces_after(data, GreaterThan(time, at(1700)), GreaterThan(time, at(5)))) == 2
    assert len(pieces_after(data, EqualTo(time, at(1999)))) == 1
    assert len(pieces_after(data, LessThan(time, at(3)))) == 10
    assert len(pieces_after(data, GreaterThan(("offset",), 5))) == 10
    assert pieces_after(data, GreaterThan(time, at(5000))) == []


@pytest.mark.parametrize(("pushed", "tasks"), [("true", 2), ("false", 10)])
def test_filters_give_the_same_rows_whether_they_are_handed_over_or_not(spark, data, pushed, tasks):
    spark.conf.set(PUSHDOWN, pushed)
    try:
        files = spark.read.format("horolog").option("maxBytesPerTask", "100000").load(str(data))
        late = files.where("timestamp >= '2023-11-14 22:40:00' and offset % 2 = 0").select("offset")
        assert late.rdd.getNumPartitions() == tasks  # of 100 kB each: a segment is a task
        assert sorted(row.offset for row in late.collect()) == list(range(1600, 2000, 2))
    finally:
        spark.conf.set(PUSHDOWN, "true")


def test_it_is_found_by_its_name():
    assert DefaultSource is HorologSource
    assert DefaultSource.name() == "horolog"


@pytest.mark.parametrize(
    ("schema", "message"), [("value string", "the columns are fixed"), ("key binary", "the columns are fixed")]
)
def test_columns_are_not_the_callers_to_choose(spark, data, schema, message):
    with pytest.raises(Exception, match=message):
        spark.read.format("horolog").schema(schema).load(str(data)).count()


def test_a_topic_is_not_overwritten(spark, data):
    frame = spark.createDataFrame([("v",)], "value string")
    with pytest.raises(Exception, match="a topic cannot be overwritten"):
        frame.write.format("horolog").options(**{"kafka.bootstrap.servers": "127.0.0.1:1", "topic": "t"}).mode(
            "overwrite"
        ).save()


def test_readers_without_filters_have_no_place_for_them():
    assert "pushFilters" not in vars(FilesReader)
