"""Avro of another library becomes columns as `from_avro` has them; schemas that grew are joined by Avro's rules, or refused."""

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

import fastavro
import pyarrow as pa
import pytest

from horolog.client.decoding.values import DecodingError
from horolog.pipeline.typed import avro_schema
from horolog.pipeline.typed.avro_resolving import resolved
from horolog.pipeline.typed.by_schema import AvroReader, SchemaText

MOMENT = datetime(2026, 11, 17, 10, 0, 0, 123000, UTC)
WIDE = {
    "type": "record",
    "name": "shop.Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "ms", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "us", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
        {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-millis"}},
        {"name": "uuid", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "DONE"]}},
        {"name": "next", "type": "State"},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "counts", "type": {"type": "map", "values": ["null", "int"]}},
        {"name": "either", "type": ["null", "string", {"type": "record", "name": "P", "fields": [{"name": "x", "type": "int"}]}]},
        {"name": "number", "type": ["int", "long"]},
        {"name": "hash", "type": {"type": "fixed", "name": "H", "size": 2}},
        {"name": "inner", "type": {"type": "record", "name": "I", "fields": [{"name": "ok", "type": "boolean"}]}},
    ],
}  # fmt: skip
ORDER = {
    "id": 5, "price": Decimal("12.30"), "day": date(2026, 11, 17), "ms": MOMENT, "us": None, "local": MOMENT.replace(tzinfo=None),
    "uuid": UUID(int=7), "state": "NEW", "next": "DONE", "tags": ["a", "b"], "counts": {"a": 1, "b": None},
    "either": ("shop.P", {"x": 3}), "number": 2**40, "hash": b"\x01\x02", "inner": {"ok": True},
}  # fmt: skip


def written(schema, *values):
    parsed = fastavro.parse_schema(schema)
    found = []
    for value in values:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, value)
        found.append(out.getvalue())
    return pa.array(found, pa.binary())


def text(schema):
    return SchemaText(json.dumps(schema))


def test_types_and_values():
    reader = AvroReader(text(WIDE), None)
    kinds = {one.name: str(one.type) for one in reader.kind}
    assert kinds["price"] == "decimal128(10, 2)"
    assert (kinds["ms"], kinds["local"], kinds["day"]) == ("timestamp[us, tz=UTC]", "timestamp[us]", "date32[day]")
    assert kinds["either"] == "struct<member0: string, member1: struct<x: int32>>"
    assert (kinds["number"], kinds["counts"]) == ("int64", "map<string, int32>")
    column = reader.read(written(WIDE, ORDER, ORDER | {"either": "text", "us": MOMENT}))
    assert not column.problems
    first, second = column.values.to_pylist()
    expected = ORDER | {"uuid": str(UUID(int=7)), "counts": [("a", 1), ("b", None)]}
    assert first == expected | {"either": {"member0": None, "member1": {"x": 3}}}
    assert second["either"] == {"member0": "text", "member1": None}
    assert second["us"] == MOMENT


def test_broken_bytes_are_null_with_a_reason():
    good = written(WIDE, ORDER)[0].as_py()
    headed = [b"\x00\x00\x00\x00\x07" + good, b"\xc3\x01" + bytes(8) + good]
    column = AvroReader(text(WIDE), None).read(pa.array([good, good[:-1], b"", None, good + b"x", *headed]))
    assert column.problems.keys() == {1, 2, 4}
    assert [row is None for row in column.values.to_pylist()] == [False, True, True, True, True, False, False]


def fields(*given, name="R"):
    return {"type": "record", "name": name, "fields": list(given)}


def read_as(writer, reader, value):
    fit = resolved(avro_schema.parse(json.dumps(writer)), avro_schema.parse(json.dumps(reader)))
    from horolog.client.decoding.avro import AvroSchema

    read = AvroSchema(json.dumps(writer), tagged=True).read(written(writer, value)[0].as_py())
    return pa.array([fit(read)], avro_schema.kind_of(avro_schema.parse(json.dumps(reader))))[0].as_py()


LONG_MS = {"type": "long", "logicalType": "timestamp-millis"}
LONG_US = {"type": "long", "logicalType": "timestamp-micros"}
SMALL = {"type": "enum", "name": "E", "symbols": ["A", "B"], "default": "A"}
LARGE = {"type": "enum", "name": "E", "symbols": ["A", "B", "C"]}


@pytest.mark.parametrize(
    ("writer", "reader", "value", "expected"),
    [
        ("int", "double", 5, 5.0),
        ("int", "long", 5, 5),
        ("string", "bytes", "ä", "ä".encode()),
        ("bytes", "string", b"a", "a"),
        ("long", ["null", "long"], 5, 5),
        (["null", "long"], "long", 5, 5),
        (["null", "long"], ["long", "string"], 5, {"member0": 5, "member1": None}),
        (["int", "string"], ["null", "string"], "x", "x"),
        ("int", ["string", "double"], 5, {"member0": None, "member1": 5.0}),
        (LONG_MS, LONG_US, MOMENT, MOMENT),
        (LONG_US, "long", MOMENT, int(MOMENT.timestamp() * 1000) * 1000),
        ("long", LONG_MS, int(MOMENT.timestamp() * 1000), MOMENT),
        (LARGE, SMALL, "C", "A"),
        ({"type": "array", "items": "int"}, {"type": "array", "items": "long"}, [1, 2], [1, 2]),
        ({"type": "map", "values": "int"}, {"type": "map", "values": ["null", "int"]}, {"a": 1}, [("a", 1)]),
    ],
)
def test_what_one_schema_wrote_another_reads(writer, reader, value, expected):
    assert read_as(writer, reader, value) == expected


def test_fields_come_and_go():
    old = fields({"name": "a", "type": "int"}, {"name": "gone", "type": "string"}, {"name": "was", "type": "int"})
    new = fields(
        {"name": "a", "type": "long"},
        {"name": "now", "type": "int", "aliases": ["was"]},
        {"name": "b", "type": ["null", "string"], "default": None},
        {"name": "c", "type": "bytes", "default": "\u00ff"},
        {"name": "d", "type": {"type": "array", "items": "int"}, "default": []},
        {"name": "e", "type": fields({"name": "x", "type": "int", "default": 3}, name="X"), "default": {}},
        {"name": "f", "type": LONG_MS, "default": 1000},
        {"name": "g", "type": {"type": "map", "values": "int"}, "default": {"k": 1}},
    )
    assert read_as(old, new, {"a": 1, "gone": "x", "was": 7}) == {
        "a": 1, "now": 7, "b": None, "c": b"\xff", "d": [], "e": {"x": 3}, "f": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), "g": [("k", 1)]
    }  # fmt: skip


@pytest.mark.parametrize(
    ("writer", "reader", "said"),
    [
        ("string", "long", "string is no long"),
        ("long", "int", "long is no int"),
        (fields(), fields({"name": "b", "type": "int"}), "field b: it is not in the schema .* no default"),
        (fields({"name": "b", "type": "string"}), fields({"name": "b", "type": "int"}), "field b: string is no int"),
        ("null", "int", "null, which the reader's schema does not have"),
        ("int", ["null", "string"], "int is not one of string"),
        (LONG_MS, "string", "timestamp-millis is no string"),
        ({"type": "fixed", "name": "F", "size": 1}, {"type": "fixed", "name": "F", "size": 2}, "1 bytes in one schema"),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 1},
            {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2},
            "1 digits after the point, and 2",
        ),
        (fields(), fields({"name": "b", "type": {"type": "int", "logicalType": "date"}, "default": 1}), "default of date"),
        (fields(), fields({"name": "b", "type": ["int", "string"], "default": 1}), "default of a union"),
        (fields(), fields({"name": "b", "type": "bytes", "default": 1}), "its default does not have its type"),
    ],
)  # fmt: skip
def test_schemas_that_do_not_go_together(writer, reader, said):
    with pytest.raises(DecodingError, match=said):
        resolved(avro_schema.parse(json.dumps(writer)), avro_schema.parse(json.dumps(reader)))


@pytest.mark.parametrize(
    ("writer", "reader", "value", "said"),
    [
        (["null", "int"], "int", None, "null, which"),
        (["int", "string"], "int", "x", "string is no int"),
        (LARGE, SMALL | {"default": None}, "C", "'C' is not a symbol of E"),
        ("bytes", "string", b"\xff", "not UTF-8"),
    ],
)
def test_a_branch_or_a_symbol_that_comes_decides(writer, reader, value, said):
    with pytest.raises(DecodingError, match=said):
        read_as(
            writer, {key: each for key, each in reader.items() if each} if isinstance(reader, dict) else reader, value
        )


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (fields({"name": "me", "type": ["null", "R"]}), "the record R is recursive"),
        (fields(), "has no field"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 40}, "40 digits"),
        ({"type": "record"}, "without a name"),
    ],
)
def test_what_spark_has_no_type_for_is_refused(schema, said):
    with pytest.raises(DecodingError, match=said):
        AvroReader(text(schema), None)


def test_a_primitive_type_may_be_its_bare_name():
    assert avro_schema.kind_of(avro_schema.parse("long")) == pa.int64()
    assert avro_schema.kind_of(avro_schema.parse(' "string" ')) == pa.string()
    assert avro_schema.kind_of(avro_schema.parse('{"type": {"type": "long"}}')) == pa.int64()


def test_a_schema_may_use_the_names_of_others():
    other = '{"type": "record", "name": "Money", "fields": [{"name": "cents", "type": "long"}]}'
    schema = avro_schema.parse(
        '{"type": "record", "name": "Order", "fields": [{"name": "price", "type": "Money"}]}', {"m": other}
    )
    assert avro_schema.kind_of(schema) == pa.struct([("price", pa.struct([("cents", pa.int64())]))])


def test_a_decimal_that_is_none_is_bytes():
    given = '{"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 5}'
    assert avro_schema.kind_of(avro_schema.parse(given)) == pa.binary()
    assert avro_schema.kind_of(avro_schema.parse('{"type": "long", "logicalType": "no-such-type"}')) == pa.int64()


def test_a_union_of_null_alone_is_null():
    assert avro_schema.kind_of(avro_schema.parse('["null"]')) == pa.null()
