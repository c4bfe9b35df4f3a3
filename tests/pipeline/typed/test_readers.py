"""Values read together are the same as read one by one; each fits its column or has a reason."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.client.decoding.values import Instant
from horolog.pipeline.typed import ddl, readers
from horolog.pipeline.typed.fitting import column_of, fitter, read_rows
from horolog.pipeline.typed.readers import JsonReader, MsgpackReader, TextReader

QUICK = ddl.parse(
    "o", "id BIGINT, small INT, name STRING, x DOUBLE, ok BOOLEAN, at TIMESTAMP, l ARRAY<STRUCT<n: BIGINT>>"
)
SLOW = ddl.parse("o", "d DECIMAL(6,2), day DATE, b BINARY, m MAP<STRING, INT>, n TIMESTAMP_NTZ, f FLOAT")

_NUMBERS = st.one_of(st.integers(-(2**70), 2**70), st.floats(), st.sampled_from([0, 1, 2**31, -0.0, 1.0]))
_TIMES = st.sampled_from(
    ["2026-11-17T10:00:00Z", "2026-11-17 10:00:00", "2026-11-17", "2026-11-17T10:00:00.123456+02:00", "17.11.2026", "x"]
)
_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), _NUMBERS, st.text(max_size=5), _TIMES),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["n", "id", "z"]), inner, max_size=2),
    max_leaves=4,
)
_DOCUMENTS = st.dictionaries(st.sampled_from([*QUICK.names, "other"]), _VALUES, max_size=4).map(
    lambda value: json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
)
_BROKEN = st.sampled_from(
    [
        None, b"", b"{", b"{}{}", b"{}\n{}", b"null", b"[]", b'{"id":1', b'{"id":1,"id":2}', b'{"name":"\n"}', b"{\xff}",
        b'{"name":"\xff"}', b'{"x":NaN}', b'{"x":-Infinity}', b"\xef\xbb\xbf{}", b" {}", b"{} ", b'{"id":1e2}', b'{"id":01}',
        b'{"name":"\\ud800"}', b'{"x":1e999}', b'"}', b'{"',
    ]
)  # fmt: skip


@given(st.lists(st.one_of(_DOCUMENTS, _BROKEN), max_size=80))
def test_many_json_documents_together_are_what_they_are_one_by_one(documents):
    reader = JsonReader(QUICK)
    values = pa.array([b"before", *documents], pa.binary()).slice(1)
    together, one_by_one = reader.read(values), read_rows(values, reader._one(), QUICK)
    assert str(together.values.to_pylist()) == str(one_by_one.values.to_pylist())  # NaN is not itself
    assert together.problems == one_by_one.problems
    assert all(together.values[row].as_py() is None for row in together.problems)


def test_json_that_cannot_be_read_has_its_reason_and_its_neighbours_are_there():
    documents = [b'{"id":%d}' % n for n in range(200)]
    documents[77] = b'{"id":"x"}'
    documents[150] = b"{"
    column = JsonReader(QUICK).read(pa.array(documents))
    assert column.problems.keys() == {77, 150}
    assert column.problems[77] == "field id: 'x' is not a whole number"
    assert [row["id"] for row in column.values.to_pylist() if row] == [n for n in range(200) if n not in {77, 150}]


def test_a_registrys_head_before_json_is_passed_over():
    assert JsonReader(QUICK).read(pa.array([b'\x00\x00\x00\x00\x07{"id":5}'])).values[0].as_py()["id"] == 5


def one(kind, value):
    return fitter(kind)(value)


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("d", 1.005, Decimal("1.01")),
        ("d", "12.5", Decimal("12.50")),
        ("d", 7, Decimal("7.00")),
        ("day", "2026-11-17", date(2026, 11, 17)),
        ("b", "aGk=", b"hi"),
        ("b", b"\xff", b"\xff"),
        ("m", {"a": 1}, [("a", 1)]),
        ("n", "2026-11-17T10:00:00", datetime(2026, 11, 17, 10)),  # noqa: DTZ001
        ("f", 3, 3.0),
        ("f", "Infinity", float("inf")),
        ("f", None, None),
    ],
)
def test_what_fits(field, value, expected):
    found = column_of([one(SLOW, {field: value})], SLOW, {}).values[0].as_py()
    assert found[field] == expected


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("d", 99999),
        ("d", 9999.999),
        ("d", "x"),
        ("d", True),
        ("d", "NaN"),
        ("day", "today"),
        ("day", 5),
        ("b", "-"),
        ("b", 5),
        ("m", []),
        ("m", {"a": 1.5}),
        ("n", "2026-11-17T10:00:00Z"),
        ("n", 5),
        ("f", "x"),
        ("f", 10**400),
        ("f", True),
    ],
)
def test_what_does_not_fit(field, value):
    with pytest.raises(ValueError, match=f"^field {field}: .* is not "):
        one(SLOW, {field: value})


def test_what_is_no_text_is_its_json():
    kind = ddl.parse("o", "s STRING")
    given_ = [{"s": 5}, {"s": {"a": [1, None]}}, {"s": True}, {"s": "t"}, {"s": None}]
    assert [one(kind, each)["s"] for each in given_] == ["5", '{"a":[1,null]}', "true", "t", None]
    assert one(kind, {"s": Instant(0)})["s"] == "1970-01-01T00:00:00.000Z"


@pytest.mark.parametrize("ticks", [1, 10**3, 10**6, 10**9])
def test_numbers_are_times_by_their_size(ticks):
    found = one(ddl.TIMESTAMP, 1_763_000_000 * ticks)
    assert found == 1_763_000_000 * 10**6
    assert pa.scalar(found, ddl.TIMESTAMP).as_py() == datetime.fromtimestamp(1_763_000_000, UTC)


def test_times_that_are_none():
    for value in (True, 1.5, 2**100, "soon", [], Instant(2**80)):
        with pytest.raises(ValueError, match="is not a time"):
            one(ddl.TIMESTAMP, value)


def test_what_arrow_does_not_take_after_all_is_a_fault_of_its_row():
    column = column_of(["a", "\ud800", None], pa.string(), {2: "before"})
    assert column.values.to_pylist() == ["a", None, None]
    assert column.problems.keys() == {1, 2}


def test_text_and_message_pack():
    column = TextReader().read(pa.array([b"a", b"\xff", None]))
    assert (column.values.to_pylist(), column.problems) == (["a", None, None], {1: "byte 1 is not UTF-8"})
    assert TextReader().read(pa.array([b"a", None])).values.to_pylist() == ["a", None]
    packed = MsgpackReader(ddl.parse("o", "a INT")).read(pa.array([b"\x81\xa1a\x05", b"\xc1", None]))
    assert packed.values.to_pylist() == [{"a": 5}, None, None]
    assert packed.problems.keys() == {1}


GOOD = [b'{"id":%d,"name":"n"}' % n for n in range(20)]


@pytest.mark.parametrize(
    "values",
    [
        GOOD,
        [None, *GOOD, None, b'{"id":7}'],
        [None] * 20,
        [],
        [*GOOD, b'{"name":"\xff"}'],
        [b"{}\n{}", *GOOD],
        [*GOOD, b"{}{}"],
        [*GOOD, b'{"id":"x"}', b"[1]", b"{"],
        [*GOOD, b"{"],
    ],
)
def test_together_they_are_what_they_are_one_by_one(values):
    reader = JsonReader(QUICK)
    given = pa.array(values, pa.binary())
    found, alone = reader.read(given), read_rows(given, reader._one(), QUICK)
    assert found.values.to_pylist() == alone.values.to_pylist()
    assert found.problems == alone.problems


def test_batches_that_are_too_large_are_halved(monkeypatch):
    monkeypatch.setattr(readers, "_LARGEST", 100)
    reader = JsonReader(QUICK)
    found = reader.read(pa.array(GOOD, pa.binary()))
    assert [row["id"] for row in found.values.to_pylist()] == list(range(20))
    assert found.problems == {}


def test_types_that_arrow_reads_by_other_rules_are_read_one_by_one():
    for text, quick in (
        ("id BIGINT", True),
        ("m MAP<STRING, INT>", False),
        ("l ARRAY<DATE>", False),
        ("d DECIMAL(6,2)", False),
    ):
        assert JsonReader(ddl.parse("o", text))._is_quick is quick
    found = JsonReader(SLOW).read(pa.array([b'{"d":1.25,"day":"2026-11-17"}'], pa.binary())).values.to_pylist()
    assert (found[0]["d"], found[0]["day"]) == (Decimal("1.25"), date(2026, 11, 17))
