"""Headers are no null list while Spark hands rows to a function in Python, and null again in a table."""

from typing import Any

import pyarrow as pa
import pytest

from horolog.pipeline.arrow.columns import HEADERS
from horolog.pipeline.base import headers

pytestmark = pytest.mark.spark

GIVEN = [[{"key": "k", "value": b"v"}], [], None, [{"key": "k", "value": None}, {"key": "", "value": b""}]]


def test_null_stands_for_no_headers_in_a_table() -> None:
    rows = pa.table({"offset": [0, 1, 2, 3], "headers": pa.array(GIVEN, HEADERS)})
    kept = headers.with_nulls(rows)
    assert kept["headers"].to_pylist() == [GIVEN[0], None, None, GIVEN[3]]
    assert kept.schema == rows.schema
    assert kept["offset"].to_pylist() == [0, 1, 2, 3]


def test_rows_keep_their_headers_and_none_is_null(spark: Any) -> None:
    kind = "array<struct<key:string,value:binary>>"
    rows = spark.createDataFrame([(number, each) for number, each in enumerate(GIVEN)], f"offset long, headers {kind}")
    given = headers.without_nulls(rows)
    assert given.schema["headers"].dataType == rows.schema["headers"].dataType
    found = {row["offset"]: row["headers"] for row in given.collect()}
    assert found[1] == found[2] == []
    assert [(one.key, one.value) for one in found[3]] == [("k", None), ("", b"")]
