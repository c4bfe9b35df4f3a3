"""A reader's schema resolves a writer's as Avro's specification says."""

import pytest

from horolog.testing.avro_compatibility import AvroTypes, incompatibilities


def record(name="R", *fields, **more):
    return {"type": "record", "name": name, "fields": [dict(one) for one in fields], **more}


def field(name, kind, **more):
    return {"name": name, "type": kind, **more}


LIST = record("List", field("value", "int"), field("next", ["null", "List"]))
LONG_LIST = record("List", field("value", "long"), field("next", ["null", "List"]))
TEXT_LIST = record("List", field("value", "string"), field("next", ["null", "List"]))
COLOURS = {"type": "enum", "name": "Colour", "symbols": ["red", "blue"]}


def faults(reader, writer, *referenced):
    return incompatibilities(AvroTypes(reader, referenced), AvroTypes(writer, referenced))


@pytest.mark.parametrize(
    ("reader", "writer"),
    [
        ("long", "int"),
        ("double", "float"),
        ("string", "bytes"),
        ("bytes", "string"),
        ({"type": "int"}, {"type": {"type": "int"}}),
        (["null", "string"], "string"),
        (["null", "long"], ["null", "int"]),
        ("long", ["int", "long"]),
        ({"type": "array", "items": "long"}, {"type": "array", "items": "int"}),
        ({"type": "map", "values": "string"}, {"type": "map", "values": "string"}),
        (record("R", field("a", "int")), record("R", field("a", "int"), field("b", "string"))),
        (record("R", field("a", "int"), field("b", "string", default="")), record("R", field("a", "int"))),
        (record("R", field("b", "int", aliases=["a"])), record("R", field("a", "int"))),
        (record("New", field("a", "int"), aliases=["x.Old"]), record("Old", field("a", "int"))),
        (record("x.R", field("a", "int")), record("y.R", field("a", "int"))),
        ({**COLOURS, "symbols": ["red", "blue", "green"]}, COLOURS),
        ({**COLOURS, "symbols": ["red"], "default": "red"}, COLOURS),
        ({"type": "fixed", "name": "F", "size": 4}, {"type": "fixed", "name": "F", "size": 4}),
        (LONG_LIST, LIST),
        (
            record("R", field("a", "R2"), field("r", record("R2"))),
            record("R", field("a", "R2"), field("r", record("R2"))),
        ),
    ],
)
def test_what_a_reader_reads(reader, writer):
    assert faults(reader, writer) == []


@pytest.mark.parametrize(
    ("reader", "writer", "said"),
    [
        ("int", "long", "/: the reader expects int, and the writer has long"),
        ("string", "null", "/: the reader expects string, and the writer has null"),
        ("int", ["int", "string"], "/: the reader expects int, and the writer has string"),
        (["null", "int"], "string", "/: the reader's union has no branch for string"),
        (
            record("R", field("a", "int"), field("b", "string")),
            record("R", field("a", "int")),
            "/b: the writer has no such field, and the reader has no default for it",
        ),
        (
            record("R", field("a", record("I", field("x", "int")))),
            record("R", field("a", record("I", field("x", "string")))),
            "/a/x: the reader expects int, and the writer has string",
        ),
        (
            {"type": "array", "items": "int"},
            {"type": "array", "items": "string"},
            "/items: the reader expects int, and the writer has string",
        ),
        (record("A"), record("B"), "/: the reader expects A, and the writer has B"),
        ({**COLOURS, "symbols": ["red"]}, COLOURS, "/: the reader's enum Colour has no symbol blue"),
        (
            {"type": "fixed", "name": "F", "size": 4},
            {"type": "fixed", "name": "F", "size": 8},
            "/: the reader's fixed F has another size",
        ),
        (TEXT_LIST, LIST, "/value: the reader expects string, and the writer has int"),
        (["null", TEXT_LIST], LIST, "/: the reader's union has no branch for record"),
    ],
)
def test_what_it_does_not(reader, writer, said):
    assert faults(reader, writer) == [said]


def test_types_of_other_schemas_are_known_by_their_names():
    money = record("shop.Money", field("amount", "int"))
    order = record("Order", field("price", "Money"), namespace="shop")
    assert faults(order, order, money) == []
    assert AvroTypes(order, (money,)).named.keys() == {"shop.Money", "shop.Order"}
