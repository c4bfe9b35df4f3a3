"""Messages and enums are found by their names, over files and scopes; a missing one is named."""

import pytest

from horolog.client.decoding import proto_known, proto_text, proto_types
from horolog.client.decoding.proto_types import Types, known_file
from horolog.client.decoding.values import DecodingError

SHOP = """
syntax = "proto3";
package shop;
import "money.proto";
message Order {
  message Item { Kind kind = 1; }
  enum Kind { PLAIN = 0; ODD = 1; ALSO_ODD = 1; }
  Item first = 1;
  repeated Item items = 2;
  map<string, common.Money> prices = 3;
  optional string note = 4;
  string name = 5;
  oneof paid { bool cash = 6; common.Money card = 7; }
  bytes data = 8;
  double weight = 9;
}
message Other { message Deep { message Deeper {} } Order.Kind kind = 1; }
"""
MONEY = (
    "package common; message Money { required int64 cents = 1; optional group Details = 2 { optional int32 x = 1; } }"
)


def types(text=SHOP, **others):
    files = {name.replace("_", "."): each for name, each in (others or {"money_proto": MONEY}).items()}
    return Types(
        proto_text.parse(text, "shop.proto"),
        lambda name: (name in files and proto_text.parse(files[name], name)) or None,
    )


def field(message, name):
    (found,) = [each for each in message.fields.values() if each.name == name]
    return found


def test_names_are_found_in_the_innermost_scope():
    order = types().find("shop.Order")
    item = types().find("shop.Order.Item")
    assert field(order, "first").message.name == item.name
    assert field(item, "kind").names == {0: "PLAIN", 1: "ODD"}, "of an alias the first name counts"
    assert field(types().find("shop.Other"), "kind").kind == "enum"
    assert field(order, "card").message.name == "common.Money"


def test_what_an_absent_field_is():
    order = types().find("Order")
    assert {name: field(order, name).default() for name in ("items", "prices", "name", "data", "weight", "cash")} == {
        "items": [],
        "prices": {},
        "name": "",
        "data": b"",
        "weight": 0.0,
        "cash": False,
    }
    assert field(types().find("Item"), "kind").default() == "PLAIN"
    fills = {name: field(order, name).fills for name in ("items", "prices", "name", "note", "first", "cash")}
    assert fills == {"items": True, "prices": True, "name": True, "note": False, "first": False, "cash": False}
    assert field(order, "prices").is_map
    assert field(types().find("common.Money"), "cents").fills is False


def test_editions_say_how_absence_and_nesting_are_written():
    found = types(
        """edition = "2023"; option features.field_presence = IMPLICIT;
        message A { int32 a = 1; int32 b = 2 [features.field_presence = EXPLICIT]; A c = 3 [features.message_encoding = DELIMITED]; }"""
    ).only()
    assert (field(found, "a").fills, field(found, "b").fills) == (True, False)
    assert field(found, "c").kind == "group"
    assert field(types().find("common.Money"), "details").kind == "group"


def test_places_are_counted_without_the_entries_of_maps():
    shop = types()
    assert [one.name for one in shop.top] == ["shop.Order", "shop.Other"]
    assert shop.at([0, 0]).name == "shop.Order.Item"
    assert shop.at([1, 0, 0]).name == "shop.Other.Deep.Deeper"
    for path in ([5], [0, 9], [-1], []):
        with pytest.raises(DecodingError, match=r"shop\.proto"):
            shop.at(path)


@pytest.mark.parametrize(
    ("text", "call", "said"),
    [
        (SHOP, lambda one: one.find("Gone"), "has no message Gone; it has common.Money, "),
        (SHOP, lambda one: one.only(), "has several messages (shop.Order, shop.Other); choose one"),
        (
            "message A { message X {} } message B { message X {} }",
            lambda one: one.find("X"),
            "more than one message X; it has A.X, B.X",
        ),
        ("enum A { X = 0; }", lambda one: one.only(), "shop.proto has no message"),
        ("enum A { X = 0; }", lambda one: one.find("B"), "shop.proto has no message B"),
    ],
)
def test_a_message_that_is_not_meant_clearly(text, call, said):
    with pytest.raises(DecodingError) as caught:
        call(types(text))
    assert said in str(caught.value)


def test_a_lone_message_need_not_be_named():
    assert types("message A { message B {} }").only().name == "A"


def test_a_type_that_nothing_says_is_named_with_the_imports_that_are_missing():
    with pytest.raises(DecodingError) as caught:
        types(SHOP, other="message X {}")
    assert "shop.Order has a field of the type common.Money, which is not defined; money.proto could not" in str(
        caught.value
    )
    with pytest.raises(DecodingError, match=r"the type \.x\.Y, which is not defined$"):
        types("message A { optional .x.Y y = 1; }")


def test_imports_end(monkeypatch):
    monkeypatch.setattr(proto_types, "MOST_FILES", 20)
    with pytest.raises(DecodingError, match="imports more than 20 files"):
        Types(proto_text.parse('import "0";', "a"), lambda name: proto_text.parse(f'import "{int(name) + 1}";', name))
    assert Types(proto_text.parse('import "a";', "a"), lambda name: proto_text.parse('import "a";', name)).top == []


def test_files_that_come_along_need_nothing_else():
    for name in proto_known.FILES:
        assert Types(known_file(name), lambda _: None).by_name or "enum" in proto_known.FILES[name]
    assert known_file("own.proto") is None
