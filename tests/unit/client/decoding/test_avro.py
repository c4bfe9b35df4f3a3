"""Avro of another library is read by its schema; logical types are what they mean; broken and hostile bytes end in a sentence, in time."""

import contextlib
import datetime as dt
import io
import json
import random
import time
from decimal import Decimal
from uuid import UUID

import fastavro
import pytest
from fastavro import utils
from hypothesis import given
from hypothesis import strategies as st

from horolog.client.decoding.avro import AvroSchema
from horolog.client.decoding.values import DecodingError, Instant, as_json

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop.v1",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "small", "type": "int"},
        {"name": "ok", "type": "boolean"},
        {"name": "f", "type": "float"},
        {"name": "d", "type": "double"},
        {"name": "data", "type": "bytes"},
        {"name": "name", "type": "string"},
        {"name": "nothing", "type": "null"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "other", "type": "Kind"},
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 4}},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "counts", "type": {"type": "map", "values": "long"}},
        {"name": "next", "type": ["null", "Order"]},
    ],
}


def written(schema, value) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def read(schema, value):
    return AvroSchema(json.dumps(schema)).read(written(schema, value))


@pytest.mark.parametrize("seed", range(20))
def test_what_another_library_writes(seed):
    random.seed(seed)
    parsed = fastavro.parse_schema(ORDER)
    value = utils.generate_one(parsed)
    data = written(ORDER, value)
    schema = AvroSchema(json.dumps(ORDER))
    assert schema.name == "shop.v1.Order"
    assert schema.read(data) == fastavro.schemaless_reader(io.BytesIO(data), parsed)
    for cut in range(len(data)):
        with pytest.raises(DecodingError):
            schema.read(data[:cut])


@given(st.integers(-(2**63), 2**63 - 1))
def test_numbers(number):
    assert read("long", number) == number


UTC = dt.UTC


@pytest.mark.parametrize(
    ("schema", "given", "expected"),
    [
        ({"type": "int", "logicalType": "date"}, dt.date(2026, 11, 23), "2026-11-23"),
        ({"type": "int", "logicalType": "time-millis"}, dt.time(10, 5, 0, 7000), "10:05:00.007"),
        ({"type": "long", "logicalType": "time-micros"}, dt.time(10, 5, 0, 7), "10:05:00.000007"),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
            Instant.of_ms(1000),
        ),
        (
            {"type": "long", "logicalType": "timestamp-micros"},
            dt.datetime(1970, 1, 1, 0, 0, 1, 1, tzinfo=UTC),
            Instant(1_000_001_000),
        ),
        ({"type": "long", "logicalType": "timestamp-nanos"}, 5, Instant(5)),
        ({"type": "long", "logicalType": "timestamp-millis"}, 2**62, Instant.of_ms(2**62)),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, 1000, "1970-01-01T00:00:01.000"),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, 1000, "1970-01-01T00:00:00.001"),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 40, "scale": 2},
            Decimal("12345678901234567890123456789012345.67"),
            None,
        ),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, Decimal("-1.50"), None),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, Decimal(7), None),
        (
            {"type": "fixed", "name": "D", "size": 8, "logicalType": "decimal", "precision": 9, "scale": 3},
            Decimal("-0.001"),
            None,
        ),
        ({"type": "string", "logicalType": "uuid"}, UUID(int=5), str(UUID(int=5))),
        ({"type": "fixed", "name": "U", "size": 16, "logicalType": "uuid"}, UUID(int=5).bytes, str(UUID(int=5))),
        (
            {"type": "fixed", "name": "L", "size": 12, "logicalType": "duration"},
            b"\1\0\0\0\2\0\0\0\3\0\0\0",
            {"months": 1, "days": 2, "milliseconds": 3},
        ),
        ({"type": "string", "logicalType": "unheard-of"}, "x", "x"),
    ],
)
def test_logical_types(schema, given, expected):
    found = read(schema, given)
    assert found == (given if expected is None else expected)
    if isinstance(given, Decimal):
        assert str(found) == str(given)


def test_a_decimal_is_exact_and_a_huge_one_stays_bytes():
    schema = AvroSchema('{"type": "bytes", "logicalType": "decimal", "precision": 9000, "scale": 0}')
    assert schema.read(b"\xc8\x01" + b"\x7f" * 100) == int.from_bytes(b"\x7f" * 100, "big")
    assert schema.read(b"\xa0\x1f" + b"\x7f" * 2000) == b"\x7f" * 2000


def test_types_of_other_schemas_are_known():
    other = json.dumps(
        {
            "type": "fixed",
            "name": "Price",
            "namespace": "shop",
            "size": 2,
            "logicalType": "decimal",
            "scale": 1,
            "precision": 4,
        }
    )
    main = {
        "type": "record",
        "name": "Item",
        "namespace": "shop",
        "fields": [{"name": "a", "type": "Price"}, {"name": "b", "type": "shop.Price"}],
    }
    assert AvroSchema(json.dumps(main), {"Price": other}).read(b"\0\x0f\0\x10") == {
        "a": Decimal("1.5"),
        "b": Decimal("1.6"),
    }
    with pytest.raises(DecodingError, match=r"does not define the type shop\.Price"):
        AvroSchema(json.dumps(main))


def test_a_type_may_be_wrapped_in_another():
    assert AvroSchema('{"type": {"type": {"type": "string"}}}').read(b"\x02a") == "a"


def test_blocks_may_say_their_sizes():
    assert AvroSchema('{"type": "array", "items": "long"}').read(b"\x03\x04\x02\x04\x02\x06\x00") == [1, 2, 3]
    assert AvroSchema('{"type": "map", "values": "long"}').read(b"\x01\x06\x02a\x08\x00") == {"a": 4}


def test_names_of_schemas():
    assert AvroSchema("string").name == "string"
    assert AvroSchema('["null", "string"]').name == "union"
    assert AvroSchema('{"type": "array", "items": "long"}').name == "array"
    assert AvroSchema('{"type": "enum", "name": "a.B", "symbols": []}').name == "a.B"


@pytest.mark.parametrize(
    ("schema", "data", "said"),
    [
        ("long", b"", "ends too early"),
        ("long", b"\x80" * 11, "more than ten bytes"),
        ("long", b"\x02\x02", "1 bytes are left over"),
        ("float", b"\0\0\0", "ends too early"),
        ("double", b"\0\0\0", "ends too early"),
        ("boolean", b"\2", "neither 0 nor 1"),
        ("string", b"\x01", "a length is negative"),
        ("string", b"\x10a", "ends too early"),
        ("string", b"\x02\xff", "not UTF-8"),
        ('{"type": "enum", "name": "E", "symbols": ["A"]}', b"\x02", "has no symbol 1"),
        ('["null"]', b"\x02", "a union has no branch 1"),
        ('{"type": "fixed", "name": "F", "size": 5}', b"\0", "ends too early"),
        ('{"type": "array", "items": "long"}', b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", "ends too early"),
        ('{"type": "map", "values": "null"}', b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", "ends too early"),
        (
            '{"type": "array", "items": "null"}',
            b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00",
            "items that take no bytes",
        ),
        (
            '{"type": "record", "name": "L", "fields": [{"name": "n", "type": ["null", "L"]}]}',
            b"\x02" * 100_000,
            "nests deeper",
        ),
    ],
)
def test_broken_bytes_end_in_a_sentence(schema, data, said):
    began = time.process_time()
    with pytest.raises(DecodingError, match=said):
        AvroSchema(schema).read(data)
    assert time.process_time() - began < 2


@pytest.mark.parametrize("depth", [100, 150, 250, 300, 350, 400, 440, 460, 480, 500, 1000])
def test_what_nests_is_read_or_refused_and_what_is_read_can_be_written(depth):
    schema = AvroSchema('{"type": "record", "name": "L", "fields": [{"name": "n", "type": ["null", "L"]}]}')
    data = b"\x02" * depth + b"\x00"
    if depth <= 150:
        assert as_json(schema.read(data)).count("n") == depth + 2
    else:
        with pytest.raises(DecodingError, match="nests deeper than 200"):
            schema.read(data)


def test_records_of_nothing_do_not_multiply():
    inner = "null"
    for number in range(40):
        inner = {
            "type": "record",
            "name": f"R{number}",
            "fields": [
                {"name": "a", "type": inner},
                {"name": "b", "type": inner if isinstance(inner, str) else inner["name"]},
            ],
        }
    with pytest.raises(DecodingError, match="take no bytes"):
        AvroSchema(json.dumps(inner)).read(b"")
    assert AvroSchema('{"type": "array", "items": "null"}').read(b"\x06\x00") == [None] * 3


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ("{", "not JSON"),
        ("no type", "not JSON"),
        ("[" * 100_000, "cannot be read"),
        ("5", "expected a type"),
        ("{}", "expected a type"),
        ('"unknown"', "does not define the type unknown"),
        ('{"type": "record"}', "a record without a name"),
        ('{"type": "enum"}', "an enum without a name"),
        ('{"type": "record", "name": "R"}', "no list of fields"),
        ('{"type": "record", "name": "R", "fields": [{}]}', "a field without a name"),
        ('{"type": "enum", "name": "E"}', "no list of symbols"),
        ('{"type": "fixed", "name": "F"}', "has no size"),
        ('{"type": ' * 300 + '"null"' + "}" * 300, "nests deeper"),
    ],
)
def test_schemas_that_are_none(schema, said):
    with pytest.raises(DecodingError, match=said):
        AvroSchema(schema)


SCHEMAS = [
    AvroSchema(json.dumps(ORDER)),
    AvroSchema('{"type": "array", "items": ["null", {"type": "map", "values": "null"}]}'),
]


@given(st.sampled_from(SCHEMAS), st.binary())
def test_any_bytes_end(schema, data):
    with contextlib.suppress(DecodingError):
        schema.read(data)


def test_branches_of_unions_may_be_told():
    """Only where there is a choice beside null."""
    schema = '["null", "int", "string"]'
    assert AvroSchema(schema, tagged=True).read(b"\x02\x0a") == (1, 5)
    assert AvroSchema(schema, tagged=True).read(b"\x00") == (0, None)
    assert AvroSchema(schema).read(b"\x02\x0a") == 5
    assert AvroSchema('["null", "int"]', tagged=True).read(b"\x02\x0a") == 5
