"""The source as Spark finds it: by name, with or without filters handed over, and only for what it can do."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

pytest.importorskip("pyspark")

from pyspark.sql.datasource import EqualTo, GreaterThan, GreaterThanOrEqual, LessThan
from pyspark.sql.types import StructType

from horolog.pipeline.base.positions import OptionError
from horolog.pipeline.options.options import parse_read
from horolog.pipeline.reading import dead_letters
from horolog.pipeline.reading.online import BrokerReader
from horolog.pipeline.reading.stream import BrokerStream, RefusedStream
from horolog.pipeline.sources import source as module
from horolog.pipeline.sources.source import SCHEMA, SCHEMA_WITH_HEADERS, FilesReader, FilteredReader, HorologSource
from horolog.pipeline.writing import write
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


# -- what Spark asks for, without Spark

BROKER = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "t"}
TYPED = {"value.format": "json", "value.schema": "second BIGINT"}


def rows_of(reader):
    return [row for task in reader.partitions() for batch in reader.read(task) for row in batch.to_pylist()]


def test_columns_are_known_from_options_alone():
    assert HorologSource({}).schema() == SCHEMA
    assert HorologSource({**BROKER, "includeHeaders": "TRUE"}).schema() == SCHEMA_WITH_HEADERS
    typed = HorologSource({**BROKER, **TYPED}).schema()
    assert "second" in typed.simpleString()
    with pytest.raises(OptionError, match=r"value\.format"):
        HorologSource({**BROKER, "value.schema": "id BIGINT"}).schema()


def test_files_are_read_in_tasks(data, capsys):
    source = HorologSource({"path": str(data), "maxBytesPerTask": "100000"})
    found = rows_of(source.reader(SCHEMA))
    assert [row["offset"] for row in found] == list(range(2000))
    assert capsys.readouterr().err.startswith(f"horolog: {data}: reads 10 segments")
    decoded = HorologSource({"path": str(data), **TYPED})
    assert len(rows_of(decoded.reader(decoded.schema()))) == 2000


def test_a_range_without_records_is_one_task_without_pieces(data):
    reader = HorologSource({"path": str(data), "startingTimestamp": "2099-01-01"}).reader(SCHEMA)
    assert [task.pieces for task in reader.partitions()] == [[]]
    assert rows_of(reader) == []


def test_files_stay_pinned_until_they_are_read_or_no_more_rows_are_needed(data, monkeypatch):
    released = []
    monkeypatch.setattr(module, "release", released.append)
    reader = HorologSource({"path": str(data)}).reader(SCHEMA)
    (task, *_) = reader.partitions()
    reading = reader.read(task)
    next(reading)
    assert released == []
    reading.close()
    assert released == [task.pieces]
    assert sum(batch.num_rows for batch in reader.read(task)) > 0
    assert released == [task.pieces] * 2

    def fails(*_, **__):
        raise ZeroDivisionError
        yield

    monkeypatch.setattr(module, "read_pieces", fails)
    with pytest.raises(ZeroDivisionError):
        list(reader.read(task))  # Spark runs it again
    assert released == [task.pieces] * 2


def test_broken_records_of_each_piece_have_letters_of_their_own(data, monkeypatch):
    asked = []
    monkeypatch.setattr(dead_letters, "post_of_piece", lambda options, piece: asked.append(piece) or "post")
    decoding = SimpleNamespace(
        dead_letters="bad", reads_headers=False, batches=lambda plain, post=None: plain if post == "post" else None
    )
    monkeypatch.setattr(module, "decoding_of", lambda *_, **__: decoding)
    monkeypatch.setattr(module, "_columns", lambda *_, **__: SCHEMA)
    options = {"path": str(data), **TYPED, "dead.letter.topic": "bad", "kafka.bootstrap.servers": "127.0.0.1:1"}
    reader = HorologSource(options).reader(SCHEMA)
    assert len(rows_of(reader)) == 2000
    assert len({piece.path for piece in asked}) == len(asked) == 10


def test_filters_are_taken_only_where_spark_hands_them_over(data, monkeypatch):
    source = HorologSource({"path": str(data)})
    assert isinstance(source.reader(SCHEMA), FilesReader)
    assert isinstance(HorologSource(BROKER).reader(SCHEMA), BrokerReader)
    monkeypatch.setattr(module, "_is_called_by", lambda file: "pushdown" in file)
    filtered = source.reader(SCHEMA)
    assert isinstance(filtered, FilteredReader)
    assert filtered.pushFilters([GreaterThanOrEqual(("timestamp",), at(1600))])
    assert len(rows_of(filtered)) == 400


def test_who_calls_is_found_among_the_callers():
    assert module._is_called_by("test_source.py")
    assert not module._is_called_by("no_such_file.py")


@pytest.mark.parametrize("schema", [SCHEMA_WITH_HEADERS, StructType(SCHEMA.fields[:2])])
def test_other_columns_are_refused(schema):
    with pytest.raises(OptionError, match="the columns are fixed: struct<key:binary"):
        HorologSource(BROKER).reader(schema)


def test_a_stream_with_bad_options_is_one_that_says_so():
    source = HorologSource({**BROKER, "endingOffsets": "latest"})
    refused = source.streamReader(SCHEMA)
    assert isinstance(refused, RefusedStream)
    with pytest.raises(OptionError, match="a stream has no end"):
        refused.initialOffset()
    assert isinstance(HorologSource(BROKER).streamReader(SCHEMA), BrokerStream)


class Writer:
    def __init__(self, options, schema, *, claims=True):
        self.options, self.claims = options, claims


def test_a_topic_is_added_to_and_never_overwritten(monkeypatch):
    monkeypatch.setattr(write, "BatchWriter", Writer)
    monkeypatch.setattr(write, "StreamWriter", Writer)
    source = HorologSource({"kafka.bootstrap.servers": "h:1", "topic": "t"})
    assert source.writer(SCHEMA, overwrite=False).options.topic == "t"
    assert source.streamWriter(SCHEMA, overwrite=False).claims
    monkeypatch.setattr(module, "_is_called_by", lambda file: "sink" in file)
    assert not source.streamWriter(SCHEMA, overwrite=False).claims
    for made in (source.writer, source.streamWriter):
        with pytest.raises(OptionError, match="a topic cannot be overwritten"):
            made(SCHEMA, overwrite=True)
    monkeypatch.setattr(module, "has_arrow_writer_of_streams", lambda: False)
    with pytest.raises(OptionError, match=r"writing streams needs Spark 4\.1"):
        source.streamWriter(SCHEMA, overwrite=False)
