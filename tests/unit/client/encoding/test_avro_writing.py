"""Avro that is written is read again as it was, by our reader and by fastavro; what does not fit says where and why."""

import io
import json
from decimal import Decimal

import fastavro
import pytest

from horolog.client.decoding import DecodingError, plain
from horolog.client.decoding.avro import AvroSchema
from horolog.client.encoding import AvroWriter, EncodingError


def record(*fields, name="R"):
    return {"type": "record", "name": name, "fields": [dict(one) for one in fields]}


def field(name, kind, **more):
    return {"name": name, "type": kind, **more}


def logical(kind, means, **more):
    return {"type": kind, "logicalType": means, **more}


LIST = record(field("value", "int"), field("next", ["null", "R"], default=None))
COLOUR = {"type": "enum", "name": "shop.Colour", "symbols": ["red", "blue"]}
FIXED = {"type": "fixed", "name": "F", "size": 4}
CASES = [
    ("null", None),
    ("boolean", True),
    ("int", -(2**31)),
    ("long", 2**63 - 1),
    ("long", -(2**63)),
    ("double", 2.5),
    ("float", 3),
    ("double", "inf"),
    ("string", "grüße"),
    ("bytes", "text"),
    (["null", "string"], "x"),
    (["null", "string"], None),
    (["double", "long"], 5),
    ({"type": "array", "items": "int"}, [1, 2, 300]),
    ({"type": "array", "items": "int"}, []),
    ({"type": "map", "values": "long"}, {"a": 1}),
    (COLOUR, "blue"),
    (LIST, {"value": 1, "next": {"value": 2, "next": None}}),
    (record(field("c", COLOUR), field("again", "shop.Colour")), {"c": "red", "again": "blue"}),
    (logical("bytes", "decimal", precision=9, scale=2), "12.50"),
    (logical("bytes", "decimal", precision=9, scale=2), "-1.28"),
    (logical("fixed", "decimal", name="D", size=4, precision=9, scale=2), "-12.50"),
    (logical("int", "date"), "2026-11-17"),
    (logical("int", "time-millis"), "10:05:00.250"),
    (logical("long", "time-micros"), "10:05:00.250"),
    (logical("long", "timestamp-millis"), "2026-11-17T10:05:00.250Z"),
    (logical("long", "timestamp-micros"), "2026-11-17T10:05:00.000250Z"),
    (logical("long", "timestamp-nanos"), "2026-11-17T10:05:00.000000250Z"),
    (logical("long", "local-timestamp-millis"), "2026-11-17T10:05:00.250"),
    (logical("string", "uuid"), "6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
    (logical("fixed", "uuid", name="U", size=16), "6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
    (logical("fixed", "duration", name="P", size=12), {"months": 1, "days": 2, "milliseconds": 3}),
]


@pytest.mark.parametrize(("schema", "value"), CASES, ids=lambda one: json.dumps(one)[:40])
def test_what_is_written_is_read_again(schema, value):
    text = json.dumps(schema)
    data = AvroWriter(text).write(value)
    assert plain(AvroSchema(text).read(data)) == value
    fastavro.schemaless_reader(io.BytesIO(data), fastavro.parse_schema(schema))


@pytest.mark.parametrize(
    ("schema", "value", "read"),
    [
        ({"type": {"type": "int"}}, 7, 7),
        ("bytes", {"hex": "00ff"}, b"\x00\xff"),
        ("bytes", {"base64": "AP8="}, b"\x00\xff"),
        (FIXED, "00ff00ff", b"\x00\xff\x00\xff"),
        (FIXED, "text", b"text"),
        ("double", Decimal("2.5"), 2.5),
        (["null", "string"], {"string": "x"}, "x"),
        (["null", COLOUR], {"shop.Colour": "red"}, "red"),
        (["null", {"type": "map", "values": "int"}], {"map": 5}, {"map": 5}),
        (record(field("a", "int", default=3)), {}, {"a": 3}),
        (logical("bytes", "decimal", scale=2), 12, Decimal("12.00")),
    ],
)
def test_other_ways_to_say_it(schema, value, read):
    text = json.dumps(schema)
    assert AvroSchema(text).read(AvroWriter(text).write(value)) == read


def test_times_of_other_zones_and_as_numbers():
    text = json.dumps(logical("long", "timestamp-millis"))
    written = [
        AvroWriter(text).write(one) for one in ("2026-11-17T10:00:00+02:00", "2026-11-17T08:00:00", 1794902400000)
    ]
    assert len(set(written)) == 1


@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        ("null", 1, "1 is not null"),
        ("boolean", 1, "1 is not a boolean"),
        ("int", 2**31, "2147483648 is not a number of 32 bits"),
        ("long", 2.5, "2.5 is not a whole number"),
        ("long", True, "True is not a whole number"),
        ("double", "x", "'x' is not a number"),
        ("double", Decimal("NaN"), "NaN is not a finite number"),
        ("float", 1e300, "is not a number of this size"),
        ("string", 7, "7 is not a text"),
        ("bytes", 7, "7 is not bytes: text, or an object"),
        ("bytes", {"hex": "0"}, "is not hexadecimal digits or base64"),
        (COLOUR, "green", "'green' is not a symbol of shop.Colour: red, blue"),
        (FIXED, "x", "'x' is not of the 4 bytes of F"),
        ({"type": "array", "items": "int"}, 1, "1 is not an array"),
        ({"type": "array", "items": "int"}, [1, "x"], "field 1: 'x' is not a whole number"),
        ({"type": "map", "values": "int"}, 1, "1 is not an object"),
        ({"type": "map", "values": "int"}, {"a": "x"}, "field a: 'x' is not a whole number"),
        (record(field("a", "int")), 1, "1 is not an object with the fields of R"),
        (record(field("a", "int")), {}, "field a: it is missing, and has no default"),
        (record(field("a", "int")), {"a": 1, "b": 2}, "R has no field 'b'; it has a"),
        (record(field("a", record(field("b", "int"), name="I"))), {"a": {"b": "x"}}, "field a.b: 'x' is not a whole"),
        (["null", "int"], "x", "'x' is not a whole number"),
        (["null", "int", "boolean"], "x", "'x' is not of the union null, int, boolean"),
        (["null", "int"], {"int": "x"}, "'x' is not a whole number"),
        (["null", COLOUR], {"shop.Colour": "green"}, "is not a symbol"),
        (logical("int", "date"), "soon", "'soon' is not a date in ISO 8601"),
        (logical("long", "timestamp-millis"), "soon", "'soon' is not a timestamp in ISO 8601"),
        (logical("bytes", "decimal", scale=2), "1.234", "'1.234' is not a number of at most 2 digits behind the point"),
        (logical("bytes", "decimal", scale=2), "x", "'x' is not a decimal number"),
        (logical("bytes", "decimal", scale=2), True, "True is not a decimal number"),
        (logical("fixed", "uuid", name="U", size=16), "x", "'x' is not a UUID"),
    ],
)
def test_what_does_not_fit(schema, value, said):
    with pytest.raises(EncodingError) as refused:
        AvroWriter(json.dumps(schema)).write(value)
    assert said in str(refused.value)


def test_a_value_that_nests_too_deep_is_refused():
    value = None
    for _ in range(5000):
        value = {"value": 1, "next": value}
    with pytest.raises(EncodingError, match="nests too deeply"):
        AvroWriter(json.dumps(LIST)).write(value)


def test_types_of_other_schemas_and_those_that_do_not_exist():
    money = json.dumps(record(field("amount", "int"), name="shop.Money"))
    order = json.dumps({**record(field("price", "Money"), name="Order"), "namespace": "shop"})
    writer = AvroWriter(order, {"shop.Money": money})
    assert (writer.name, writer.takes_text) == ("shop.Order", False)
    assert AvroSchema(order, {"shop.Money": money}).read(writer.write({"price": {"amount": 5}})) == {
        "price": {"amount": 5}
    }
    assert AvroWriter("string").takes_text
    with pytest.raises(DecodingError):
        AvroWriter(order)
