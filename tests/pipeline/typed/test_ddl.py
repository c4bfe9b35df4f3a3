"""Spark's own words for types become Arrow's; any other text is refused with the reason."""

import pyarrow as pa
import pytest

from horolog.pipeline.base.positions import OptionError
from horolog.pipeline.typed.ddl import LOCAL_TIMESTAMP, TIMESTAMP, parse


def kinds(text):
    return {one.name: one.type for one in parse("value.schema", text)}


def test_simple_types():
    found = kinds("a BIGINT, b int NOT NULL, c: string COMMENT 'it''s, so', d double, e BOOLEAN, f DATE, `g h` binary")
    assert found == {
        "a": pa.int64(),
        "b": pa.int32(),
        "c": pa.string(),
        "d": pa.float64(),
        "e": pa.bool_(),
        "f": pa.date32(),
        "g h": pa.binary(),
    }
    assert kinds("t timestamp, n TIMESTAMP_NTZ, d DECIMAL(20, 4), e decimal, f dec(5)") == {
        "t": TIMESTAMP,
        "n": LOCAL_TIMESTAMP,
        "d": pa.decimal128(20, 4),
        "e": pa.decimal128(10, 0),
        "f": pa.decimal128(5, 0),
    }


def test_nested_types():
    inner = pa.struct([("x", pa.int16()), ("y z", pa.list_(pa.string()))])
    text = "a ARRAY<STRUCT<x: SMALLINT, `y z` ARRAY<STRING>>>, m MAP<STRING, MAP<STRING, INT>>"
    assert kinds(text) == {"a": pa.list_(inner), "m": pa.map_(pa.string(), pa.map_(pa.string(), pa.int32()))}
    assert parse("value.schema", "STRUCT<x: SMALLINT, `y z`: ARRAY<STRING>>") == inner
    assert kinds("struct int") == {"struct": pa.int32()}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no column"),
        ("a", "ends too early"),
        ("STRUCT<a INT> x", "'x' is left over"),
        ("a quaternion", "no type 'quaternion'"),
        ("a int b int", "',' was expected, found 'b'"),
        ("a int, A string", "two columns A"),
        ("a ARRAY<int", "ends too early"),
        ("a MAP<int, int>", "keys of maps are STRING"),
        ("a DECIMAL(39)", "1 to 38 digits"),
        ("a DECIMAL(3, x)", "'x' is not a number"),
        ("? int", "'\\?' is not a name"),
        ("a int not yet", "NOT is followed by NULL"),
        ("a " + "ARRAY<" * 60 + "int" + ">" * 60, "nests deeper than 50"),
        ('{"type": "record"}', "is not a name of a column"),
    ],
)
def test_what_is_no_schema_is_refused(text, said):
    with pytest.raises(OptionError, match=said):
        parse("value.schema", text)
