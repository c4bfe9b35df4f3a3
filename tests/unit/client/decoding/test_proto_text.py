"""The text of a .proto file becomes its descriptor, or an error names the line and what was expected there."""

import json

import pytest

from horolog.client.decoding import proto_known, proto_text
from horolog.client.decoding.values import DecodingError


def parsed(text):
    return proto_text.parse(text, "x.proto")


def only_message(text):
    (message,) = parsed(text)["message_type"]
    return message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("message", "x.proto:1: expected the name of a message, but the text ends"),
        ("\n\nmessage A {", "x.proto:3: the name of a field|expected more|the type of a field"),
        ("foo bar;", "syntax, package, import, option, message, enum"),
        ("message A { int32 = 1; }", "expected the name of a field, found '='"),
        ("message A { int32 a 1; }", "expected '='"),
        ("message A { int32 a = x; }", "expected a whole number"),
        ("import x;", "a text in quotes"),
        ("message A { map<int32> m = 1; }", "expected ','"),
        ("message A { int32 a = 1 [x = 1; }", "expected more"),
        ("message A " * 1 + "{ message B " * 200, "a shallower nesting"),
        ("= 5;", "a statement such as"),
        ("message A { § }", "unexpected '§"),
        ("enum E { A = 1 }", "expected ';'"),
    ],
)
def test_texts_that_are_no_schema(text, said):
    with pytest.raises(DecodingError, match=said):
        proto_text.parse(text, "x.proto")


def test_odd_texts():
    parsed = proto_text.parse(
        "syntax = 'proto3'; ; message A { ; int32 message = 0x10; /* x */ int32 b = 010; oneof o { ; int32 c = 3; group G = 4 { int32 d = 1; } } }"
        " enum E { option = 1; ; N = -3; }",
        "x",
    )
    (message,) = parsed["message_type"]
    assert [(one["name"], one["number"]) for one in message["field"]] == [("message", 16), ("b", 8), ("c", 3), ("g", 4)]
    assert parsed["enum_type"][0]["value"] == [{"name": "option", "number": 1}, {"name": "N", "number": -3}]


def test_a_file_says_what_it_is_and_what_it_needs():
    found = parsed(
        """
        syntax = "proto3";
        package shop.v1; ;
        import public "a.proto"; import "b." 'proto';
        option java_package = "x";
        service Buying { rpc Buy (Order) returns (Order) { option (x) = { a: "}" }; } }
        extend google.protobuf.FieldOptions { string unit = 5; }
        // the end
        """
    )
    assert (found["name"], found["syntax"], found["package"]) == ("x.proto", "proto3", "shop.v1")
    assert found["dependency"] == ["a.proto", "b.proto"]
    assert (found["message_type"], found["enum_type"], found["options"]) == ([], [], {})
    assert parsed("")["syntax"] == "proto2"


def test_fields_have_labels_types_and_numbers():
    message = only_message(
        "message A { required int32 a = 1; optional x.Y b = 2; repeated string c = 3 [packed = true]; .z.Z d = 4; }"
    )
    assert [(one["name"], one["number"], one["label"], one["explicit"]) for one in message["field"]] == [
        ("a", 1, "LABEL_REQUIRED", False),
        ("b", 2, "LABEL_OPTIONAL", True),
        ("c", 3, "LABEL_REPEATED", False),
        ("d", 4, "LABEL_OPTIONAL", False),
    ]
    assert [one.get("type") or one["type_name"] for one in message["field"]] == [
        "TYPE_INT32",
        "x.Y",
        "TYPE_STRING",
        ".z.Z",
    ]


def test_a_map_is_a_list_of_entries():
    message = only_message("message A { map<string, B> by_name = 7; }")
    (field,) = message["field"]
    (entry,) = message["nested_type"]
    assert (field["label"], field["type"], field["type_name"]) == ("LABEL_REPEATED", "TYPE_MESSAGE", "ByNameEntry")
    assert (entry["name"], entry["options"]) == ("ByNameEntry", {"map_entry": True})
    assert [(one["name"], one.get("type") or one["type_name"]) for one in entry["field"]] == [
        ("key", "TYPE_STRING"),
        ("value", "B"),
    ]


def test_what_lies_inside_a_message():
    message = only_message(
        """message A {
            reserved 5, 7 to 9; extensions 100 to max; option deprecated = true;
            message B { enum C { reserved 3; option allow_alias = true; X = 0 [deprecated = true]; } }
            enum D { Y = 0; }
            oneof which { option x = 1; int32 one = 1; string two = 2; }
            repeated group Inside = 3 { optional int32 x = 1; }
            extend A { optional int32 y = 101; }
            int32 optionally = 4;
        }"""
    )
    assert [one["name"] for one in message["nested_type"]] == ["B", "Inside"]
    assert message["nested_type"][0]["enum_type"] == [{"name": "C", "value": [{"name": "X", "number": 0}]}]
    assert [one["name"] for one in message["enum_type"]] == ["D"]
    assert message["oneof_decl"] == [{"name": "which"}]
    assert [(one["name"], one.get("oneof_index")) for one in message["field"]] == [
        ("one", 0),
        ("two", 0),
        ("inside", None),
        ("optionally", None),
    ]
    assert message["field"][2]["type"] == "TYPE_GROUP"


def test_features_of_editions_are_kept():
    found = parsed(
        """edition = "2023"; option features.field_presence = IMPLICIT;
        message A { int32 a = 1 [deprecated = true, features.field_presence = EXPLICIT]; B b = 2 [x = {y: 1}]; }"""
    )
    assert found["syntax"] == "editions"
    assert found["options"] == {"features": {"field_presence": "IMPLICIT"}}
    assert [one["options"] for one in found["message_type"][0]["field"]] == [
        {"features": {"field_presence": "EXPLICIT"}},
        {},
    ]


def test_numbers_have_a_base_and_a_sign():
    (enum,) = parsed("enum E { A = -0x1F; B = 017; C = 0; D = 42; }")["enum_type"]
    assert [one["number"] for one in enum["value"]] == [-31, 15, 0, 42]


@pytest.mark.parametrize("name", sorted(proto_known.FILES))
def test_files_that_come_along_can_be_read(name):
    found = proto_text.parse(proto_known.FILES[name], name)
    assert json.dumps(found)
    assert found["package"].startswith(("google.protobuf", "google.type", "confluent"))
