"""Rows of a data frame become records: which columns there may be, and what null means in each."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("pyspark")

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    ByteType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from horolog.pipeline.arrow.columns import HEADERS
from horolog.pipeline.base.positions import OptionError
from horolog.pipeline.writing.rows import anywhere, check_columns, rows_of

NOW_MS = 1_795_000_000_000
HEADER = StructType([StructField("key", StringType()), StructField("value", BinaryType())])


def schema(**columns):
    return StructType([StructField(name, kind) for name, kind in columns.items()])


def batch(**columns):
    return pa.RecordBatch.from_pydict(columns)


def moment(ms):
    return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=ms)


def test_columns_that_can_be_written():
    check_columns(schema(value=StringType()), "t")
    check_columns(schema(value=BinaryType(), topic=StringType(), partition=ByteType(), other=LongType()), None)
    headers = ArrayType(HEADER)
    check_columns(schema(key=BinaryType(), value=BinaryType(), timestamp=TimestampType(), headers=headers), "t")


@pytest.mark.parametrize(
    ("columns", "topic", "said"),
    [
        ({"key": StringType()}, "t", "the column `value` is missing, which writing needs; the columns are key"),
        ({"value": StringType()}, None, "set the option `topic` or add a column `topic`"),
        ({"value": LongType()}, "t", "the column `value` is bigint; expected string or binary"),
        ({"value": StringType(), "partition": LongType()}, "t", "`partition` is bigint; expected int"),
        ({"value": StringType(), "timestamp": StringType()}, "t", "`timestamp` is string; expected timestamp"),
        ({"value": StringType(), "headers": StringType()}, "t", "`headers` is string; expected array<struct"),
        ({"value": StringType(), "headers": ArrayType(StringType())}, "t", "expected array<struct"),
        (
            {"value": StringType(), "headers": ArrayType(StructType([StructField("value", BinaryType())]))},
            "t",
            "expected array<struct",
        ),
    ],
)
def test_columns_that_cannot_be_written_are_told(columns, topic, said):
    with pytest.raises(OptionError, match=said):
        check_columns(schema(**columns), topic)


def test_what_a_row_does_not_say():
    (rows,) = rows_of(batch(value=[b"v", None]), "t", NOW_MS)
    assert (rows.topic, rows.partitions.tolist()) == ("t", [-1, -1])
    assert (rows.records.keys.to_pylist(), rows.records.values.to_pylist()) == ([None, None], [b"v", None])
    assert rows.records.times_ms.tolist() == [NOW_MS, NOW_MS]
    assert rows.records.headers is None


def test_null_and_empty_are_not_the_same():
    (rows,) = rows_of(batch(key=[None, "", "k"], value=pa.array(["", None, "ü"])), "t", NOW_MS)
    assert rows.records.keys.to_pylist() == [None, b"", b"k"]
    assert rows.records.values.to_pylist() == [b"", None, "ü".encode()]


def test_times_are_kept_to_the_millisecond_also_before_1970():
    times = pa.array([moment(-1), moment(1_700_000_000_123), None], pa.timestamp("us", tz="UTC"))
    (rows,) = rows_of(batch(value=["a", "b", "c"], timestamp=times), "t", NOW_MS)
    assert rows.records.times_ms.tolist() == [-1, 1_700_000_000_123, NOW_MS]


def test_rows_go_to_their_topics_and_partitions_in_their_order():
    given = batch(
        value=["1", "2", "3", "4"],
        topic=["b", "a", "b", "b"],
        partition=pa.array([1, None, None, 0], pa.int32()),
    )
    found = {
        rows.topic: (rows.records.values.to_pylist(), rows.partitions.tolist()) for rows in rows_of(given, None, 0)
    }
    assert found == {"b": ([b"1", b"3", b"4"], [1, -1, 0]), "a": ([b"2"], [-1])}
    (all_of_one,) = rows_of(given, "c", 0)
    assert (all_of_one.topic, all_of_one.records.size) == ("c", 4)


def test_a_row_without_a_topic_is_told():
    with pytest.raises(OptionError, match="the column `topic` is null and there is no option"):
        rows_of(batch(value=["a", "b"], topic=["t", None]), None, 0)


@pytest.mark.parametrize("topic", ["t", None])
def test_no_rows_are_no_records(topic):
    empty = pa.RecordBatch.from_arrays([pa.array([], pa.string())] * 2, names=["value", "topic"])
    assert rows_of(empty, topic, 0) == []


def test_headers_keep_their_order_and_their_nulls():
    said = [[{"key": "k", "value": b"1"}, {"key": "k", "value": None}, {"key": "", "value": b""}], None, []]
    (rows,) = rows_of(batch(value=["a", "b", "c"], headers=pa.array(said, HEADERS)), "t", 0)
    assert rows.records.headers == [((b"k", b"1"), (b"k", None), (b"", b"")), (), ()]
    (without,) = rows_of(batch(value=["a"], headers=pa.array([None], HEADERS)), "t", 0)
    assert without.records.headers is None


def test_a_header_without_a_key_is_told():
    nameless = pa.array([[{"key": None, "value": b"1"}]], HEADERS)
    with pytest.raises(OptionError, match="a header has no key"):
        rows_of(batch(value=["a"], headers=nameless), "t", 0)


def test_rows_that_name_no_partition_go_anywhere():
    assert np.array_equal(anywhere(3), [-1, -1, -1])
