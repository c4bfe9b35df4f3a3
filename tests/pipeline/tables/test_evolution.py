"""Decoded columns of tables grow by names and by longer numbers, and by nothing else."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark")

from horolog.pipeline.tables import evolution
from horolog.pipeline.tables.evolution import NONE, merged, storable, widest
from horolog.pipeline.tables.table import TableError


def columns(**kinds):
    return pa.schema(list(kinds.items()))


def value(**kinds):
    return columns(v=pa.struct(list(kinds.items())))


def test_new_fields_come_last_and_those_that_are_not_brought_stay():
    has, brings = value(a=pa.int32(), b=pa.string()), value(c=pa.string(), a=pa.int32())
    assert merged(has, brings) == value(a=pa.int32(), b=pa.string(), c=pa.string())
    assert merged(NONE, brings) == brings
    assert merged(brings, NONE) == brings


@pytest.mark.parametrize(
    ("has", "brings", "made"),
    [
        (pa.int32(), pa.int64(), pa.int64()),
        (pa.int64(), pa.int8(), pa.int64()),
        (pa.float32(), pa.float64(), pa.float64()),
        (pa.decimal128(6, 2), pa.decimal128(9, 2), pa.decimal128(9, 2)),
        (pa.list_(pa.int32()), pa.list_(pa.int64()), pa.list_(pa.int64())),
        (pa.map_(pa.string(), pa.float32()), pa.map_(pa.string(), pa.float64()), pa.map_(pa.string(), pa.float64())),
    ],
)
def test_numbers_grow(has, brings, made):
    assert merged(value(n=has), value(n=brings)) == value(n=made)


@pytest.mark.parametrize(
    ("has", "brings", "said"),
    [
        (pa.string(), pa.int32(), "v.n is string in the table, and int in the schema:"),
        (pa.int64(), pa.float64(), "v.n is bigint in the table, and double in the schema:"),
        (
            pa.decimal128(6, 2),
            pa.decimal128(6, 3),
            "v.n is decimal.6,2. in the table, and decimal.6,3. in the schema:",
        ),
        (pa.date32(), pa.timestamp("us", "UTC"), "v.n is date in the table, and timestamp in the schema:"),
        (pa.list_(pa.string()), pa.list_(pa.int32()), "v.n.element is string"),
        (pa.map_(pa.string(), pa.string()), pa.map_(pa.string(), pa.int32()), "v.n.value is string"),
        (pa.struct([("x", pa.string())]), pa.string(), "v.n is struct<x:string> in the table"),
        (
            pa.struct([(f"field{n}", pa.string()) for n in range(20)]),
            pa.string(),
            r"field4:string,fie\.\.\. in the table",
        ),
    ],
)
def test_nothing_else_does(has, brings, said):
    with pytest.raises(TableError, match=said):
        merged(value(n=has), value(n=brings))


def test_names_that_differ_in_capitals_alone_are_refused():
    with pytest.raises(TableError, match=r"v\.id and v\.ID differ only in case"):
        merged(value(id=pa.string()), value(ID=pa.string()))
    with pytest.raises(TableError, match=r"v\.id and v\.ID differ only in case"):
        merged(NONE, value(id=pa.string(), ID=pa.string()))


def test_what_has_no_content_is_left_out():
    empty = pa.struct([])
    found = storable(value(a=pa.null(), b=empty, c=pa.list_(empty), d=pa.map_(pa.string(), pa.null()), e=pa.int32()))
    assert found == value(e=pa.int32())
    assert storable(columns(v=pa.struct([("a", pa.null())]))) == NONE


def test_a_map_whose_values_grow_is_found():
    def nested(*fields):
        inner = pa.struct([("x", pa.int64()), *fields])
        return value(a=pa.list_(pa.struct([("m", pa.map_(pa.string(), inner))])), b=inner)

    assert evolution.grown_map("", NONE, nested()) is None
    assert evolution.grown_map("", nested(), nested()) is None
    assert evolution.grown_map("", nested(), nested(("y", pa.string()))) == "v.a.element.m"
    assert evolution.grown_map("", value(b=pa.int64()), nested()) is None


LEAVES = st.sampled_from(
    [pa.int8(), pa.int32(), pa.int64(), pa.float32(), pa.string(), pa.binary(), pa.decimal128(7, 3), pa.date32(),
     pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.bool_()]
)  # fmt: skip
KINDS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        inner.map(pa.list_),
        inner.map(lambda kind: pa.map_(pa.string(), kind)),
        st.dictionaries(st.sampled_from("abc"), inner, min_size=1).map(lambda found: pa.struct(list(found.items()))),
    ),
    max_leaves=6,
)


@given(KINDS, KINDS)
def test_a_merge_takes_both_and_is_not_merged_again(one, other):
    """Rows of either type fit the merged one, and a commit keeps that unchanged."""
    try:
        found = merged(columns(v=one), columns(v=other))
    except TableError:
        return
    assert merged(found, columns(v=other)) == merged(found, columns(v=one)) == found
    wide = widest(found)
    assert widest(wide) == wide
    assert merged(wide, columns(v=one)) == wide, "a table of the longest types never changes one"
    for columns_ in (found, wide):
        assert evolution.of_json(evolution.as_json(columns_)) == evolution.plain(columns_)
        for kind in (one, other):
            rows = pa.table({"v": pa.array([None], kind), "else": [1]})
            assert evolution.fitted(rows, columns_).schema == columns_


def test_rows_are_fitted():
    rows = pa.table({"v": pa.array([{"a": 1}, None], pa.struct([("a", pa.int32())]))})
    wanted = pa.schema([*value(a=pa.int64(), b=pa.string()), ("w", pa.string())])
    assert evolution.fitted(rows, wanted).to_pylist() == [{"v": {"a": 1, "b": None}, "w": None}, {"v": None, "w": None}]


def test_types_of_libraries_become_those_of_rows():
    theirs = value(
        a=pa.large_string(), b=pa.large_list(pa.string_view()), c=pa.timestamp("us", "+00:00"), d=pa.large_binary()
    )
    ours = value(a=pa.string(), b=pa.list_(pa.string()), c=pa.timestamp("us", "UTC"), d=pa.binary())
    assert evolution.plain(theirs) == ours
    assert evolution.beyond(pa.schema([("offset", pa.int64()), ("date", pa.date32()), *ours]), ("date",)) == ours
