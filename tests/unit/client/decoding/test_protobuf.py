"""Protobuf that Google's library writes is read as it was meant, by texts and by descriptors that protoc makes of the same texts."""

import base64
import contextlib
import json
import random
import time
from decimal import Decimal

import pytest
from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    json_format,
    message_factory,
    struct_pb2,
    wrappers_pb2,
)
from grpc_tools import protoc
from hypothesis import given
from hypothesis import strategies as st

from horolog.client.decoding import proto_known, proto_text, proto_types, protobuf
from horolog.client.decoding.protobuf import ProtobufSchema, message_path
from horolog.client.decoding.values import DecodingError, Instant

SHOP = """
// orders
syntax = "proto3";
package shop.v1;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/any.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/field_mask.proto";
import public "common.proto";
option java_package = "x.y";
option (common.about) = { text: "a;b}" };
message Order {
  option deprecated = true;
  reserved 100 to 200, 300 to max;
  reserved "old";
  enum State { option allow_alias = true; NEW = 0; DONE = 1; ENDED = 1; reserved 5; BAD = -1 [deprecated = true]; }
  message Item { string sku = 1; int32 count = 2; Item inside = 3; }
  int64 id = 1; int32 small = 2; uint32 u32 = 3; uint64 u64 = 4; sint32 s32 = 5; sint64 s64 = 6;
  fixed32 f32 = 7; fixed64 f64 = 8; sfixed32 sf32 = 9; sfixed64 sf64 = 10;
  float ratio = 11; double exact = 12; bool ok = 13; string name = 14; bytes data = 15;
  State state = 16; repeated Item items = 17; map<string, int64> counts = 18; map<int32, Item> by_id = 19;
  repeated int32 numbers = 20; repeated sint64 plain = 21 [packed = false]; repeated State states = 22;
  optional int32 maybe = 23;
  oneof pay { option (common.flag) = true; string card = 24; int32 cash = 25; Item swap = 26; }
  google.protobuf.Timestamp at = 27; google.protobuf.Int64Value wrapped = 28; google.protobuf.Struct loose = 29;
  google.protobuf.Any any = 30; google.protobuf.Duration took = 31; google.protobuf.FieldMask mask = 32;
  common.Money price = 33; .common.Kind kind = 34; map<bool, string> flags = 35;
}
message Other { Order.Item item = 1; .shop.v1.Order.State state = 2; message Deep { message Deeper { int32 x = 1; } } };
service Orders { rpc Get (Order) returns (stream Other) { option (common.about) = { text: "x" }; } }
extend google.protobuf.MessageOptions { optional string about = 50007; }
"""
COMMON = """
syntax = "proto2";
package common;
import "google/protobuf/descriptor.proto";
import public "kind.proto";
extend google.protobuf.FileOptions { optional About about = 50001; }
extend google.protobuf.OneofOptions { optional bool flag = 50002; }
extend google.protobuf.MethodOptions { optional About about2 = 50003; }
message About { optional string text = 1; }
message Money {
  required string currency = 1; optional int64 units = 2 [default = 5]; repeated group Part = 3 { optional int32 cents = 1; }
  extensions 100 to max;
  optional Kind kind = 4;
  extend Money { optional int32 more = 100; }
}
"""
KIND = 'syntax = "proto3"; package common; enum Kind { PLAIN = 0; ODD = 7; }'
EDITION = """
edition = "2023";
package ed;
option features.field_presence = IMPLICIT;
message E { int32 a = 1; int32 b = 2 [features.field_presence = EXPLICIT]; E c = 3 [features.message_encoding = DELIMITED]; }
"""
TEXTS = {"common.proto": COMMON, "kind.proto": KIND}
SHOP = SHOP.replace('option (common.about) = { text: "x" };', "").replace(
    "extend google.protobuf.MessageOptions { optional string about = 50007; }\n", ""
)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The texts, and what protoc makes of them."""
    folder = tmp_path_factory.mktemp("protos")
    for name, text in (
        ("shop.proto", SHOP),
        ("common.proto", COMMON),
        ("edition.proto", EDITION),
        ("kind.proto", KIND),
    ):
        (folder / name).write_text(text)
    from importlib.resources import files as resources

    well_known = resources("grpc_tools") / "_proto"
    for name in ("shop", "edition"):
        words = [
            "protoc",
            f"-I{folder}",
            f"-I{well_known}",
            "--include_imports",
            f"--descriptor_set_out={folder}/{name}.desc",
            f"{name}.proto",
        ]
        assert protoc.main(words) == 0
    return folder


@pytest.fixture(scope="module")
def classes(files):
    pool = descriptor_pool.DescriptorPool()
    found = {}
    for name in ("shop", "edition"):
        for one in descriptor_pb2.FileDescriptorSet.FromString((files / f"{name}.desc").read_bytes()).file:
            pool.Add(one)
    for name in ("shop.v1.Order", "shop.v1.Order.Item", "shop.v1.Other", "common.Money", "ed.E"):
        found[name] = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
    return found


@pytest.fixture(scope="module", params=["text", "descriptors"])
def shop(request, files):
    if request.param == "text":
        return ProtobufSchema.of_text(SHOP, "shop.proto", TEXTS.get)
    return ProtobufSchema.of_descriptors((files / "shop.desc").read_bytes(), "shop.desc")


def read(schema, message, name=None):
    return schema.read(message.SerializeToString(), schema.types.find(name or message.DESCRIPTOR.full_name))


def order(classes):
    return classes["shop.v1.Order"](
        id=-5,
        small=-7,
        u32=2**32 - 1,
        u64=2**64 - 1,
        s32=-9,
        s64=-(2**62),
        f32=1,
        f64=2,
        sf32=-3,
        sf64=-4,
        ratio=1.5,
        exact=0.1,
        ok=True,
        name="ä",
        data=b"\xff\x00",
        state=1,
        items=[{"sku": "a", "count": 2, "inside": {"sku": "b"}}],
        counts={"x": -1},
        by_id={3: {"sku": "c"}},
        numbers=[1, -2, 300],
        plain=[-1, 2],
        states=[0, 1, -1],
        maybe=0,
        cash=0,
        wrapped={"value": 0},
        kind=7,
        flags={True: "yes"},
        price={"currency": "EUR", "part": [{"cents": 7}]},
        at={"seconds": 1_700_000_000, "nanos": 5},
        took={"seconds": -3, "nanos": -500_000_000},
        mask={"paths": ["a", "b.c"]},
    )


EXPECTED = {
    "id": -5,
    "small": -7,
    "u32": 2**32 - 1,
    "u64": 2**64 - 1,
    "s32": -9,
    "s64": -(2**62),
    "f32": 1,
    "f64": 2,
    "sf32": -3,
    "sf64": -4,
    "ratio": 1.5,
    "exact": 0.1,
    "ok": True,
    "name": "ä",
    "data": b"\xff\x00",
    "items": [{"sku": "a", "count": 2, "inside": {"sku": "b", "count": 0}}],
    "counts": {"x": -1},
    "by_id": {"3": {"sku": "c", "count": 0}},
    "numbers": [1, -2, 300],
    "plain": [-1, 2],
    "maybe": 0,
    "cash": 0,
    "at": Instant(1_700_000_000_000_000_005),
    "wrapped": 0,
    "took": "-3.500s",
    "mask": "a,b.c",
    "price": {"currency": "EUR", "part": [{"cents": 7}]},
    "kind": "ODD",
    "flags": {"true": "yes"},
}


def test_all_kinds_of_fields(shop, classes):
    found = read(shop, order(classes))
    assert found.pop("state") in {"DONE", "ENDED"}
    assert found.pop("states")[::2] == ["NEW", "BAD"]
    assert found == EXPECTED
    assert next(iter(found)) == "id"


def test_fields_that_are_not_there(shop, classes):
    found = read(shop, classes["shop.v1.Order"]())
    assert found["id"] == 0
    assert found["name"] == ""
    assert found["data"] == b""
    assert found["state"] == "NEW"
    assert found["items"] == []
    assert found["counts"] == {}
    assert not {"maybe", "card", "cash", "swap", "at", "price"} & found.keys()
    assert read(shop, classes["common.Money"](currency="x")) == {"currency": "x", "part": []}


def test_of_a_oneof_the_last_counts(shop, classes):
    both = classes["shop.v1.Order"](card="x").SerializeToString() + classes["shop.v1.Order"](cash=3).SerializeToString()
    found = shop.read(both, shop.types.find("Order"))
    assert "card" not in found
    assert found["cash"] == 3


def test_values_of_google(shop, classes):
    loose = struct_pb2.Struct()
    loose.update({"a": [1, "x", None, {"b": True}]})
    message = classes["shop.v1.Order"](loose=loose)
    message.any.type_url = "type.googleapis.com/shop.v1.Order.Item"
    message.any.value = classes["shop.v1.Order.Item"](sku="s").SerializeToString()
    found = read(shop, message)
    assert found["loose"] == {"a": [1.0, "x", None, {"b": True}]}
    assert found["any"] == {"@type": "type.googleapis.com/shop.v1.Order.Item", "sku": "s", "count": 0}
    message.any.type_url = "x/unknown.Type"
    assert read(shop, message)["any"]["value"] == message.any.value
    message.any.type_url = "x/google.protobuf.Int64Value"
    message.any.value = wrappers_pb2.Int64Value(value=7).SerializeToString()
    assert read(shop, message)["any"] == {"@type": "x/google.protobuf.Int64Value", "value": 7}
    message.any.type_url = "x/google.protobuf.Any"
    for _ in range(6):
        message.any.value = message.any.SerializeToString()
    assert "@type" in read(shop, message)["any"]


def test_editions_say_what_is_known_to_be_absent(files, classes):
    for schema in (
        ProtobufSchema.of_text(EDITION, "edition.proto", lambda _: None),
        ProtobufSchema.of_descriptors((files / "edition.desc").read_bytes(), "edition.desc"),
    ):
        assert read(schema, classes["ed.E"]()) == {"a": 0}
        assert read(schema, classes["ed.E"](b=0, c={"a": 1})) == {"a": 0, "b": 0, "c": {"a": 1}}


def test_a_text_says_what_protoc_says_of_it(files):
    """Names, numbers, labels and kinds of all messages."""
    for name, text in (("shop.proto", SHOP), ("common.proto", COMMON)):
        given = descriptor_pb2.FileDescriptorSet.FromString((files / "shop.desc").read_bytes()).file
        said = json_format.MessageToDict(
            next(one for one in given if one.name == name), preserving_proto_field_name=True
        )
        ours = proto_text.parse(text, name)
        assert (ours["package"], ours["dependency"]) == (said["package"], said["dependency"])
        assert shapes(ours) == shapes(said)


def shapes(level, scope=""):
    found = {}
    for message in level.get("message_type", level.get("nested_type", ())):
        name = f"{scope}.{message['name']}"
        found[name] = {(one["name"], one["number"], one["label"]) for one in message.get("field", ())}
        found |= shapes(message, name)
    for enum in level.get("enum_type", ()):
        found[f"{scope}.{enum['name']}"] = {(one["name"], one["number"]) for one in enum["value"]}
    return found


def test_unknown_fields_stay_under_their_numbers(shop, classes):
    full = order(classes).SerializeToString()
    found = shop.read(full, shop.types.find("Deeper"))
    assert found["x"] == -5
    assert found["14"] == "ä".encode()
    assert found["7"] == 1
    assert found["8"] == 2
    assert len(found["21"]) == 2
    assert shop.read(
        classes["common.Money"](currency="x", part=[{"cents": 7}, {"cents": 8}]).SerializeToString(),
        shop.types.find("Deep"),
    ) == {
        "1": b"x",
        "3": [{"1": 7}, {"1": 8}],
    }
    for count in (2, 5, 100, 100_000):
        assert shop.read(b"\x08\x01" * count, shop.types.find("Deep")) == {"1": [1] * count}
    assert shop.read(b"\x08\x01", shop.types.find("Item")) == {"sku": "", "count": 0, "1": 1}


def test_strings_that_are_no_text_stay_bytes(shop):
    assert shop.read(b"\x0a\x01\xff", shop.types.find("Item")) == {"sku": b"\xff", "count": 0}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\x0a\x05a", "ends too early"),
        (b"\x0a", "ends too early"),
        (b"\x00", "the number 0"),
        (b"\x80" * 11, "more than ten bytes"),
        (b"\x0c", "ends that has not begun"),
        (b"\x0e", "no wire type 6"),
        (b"\x0d\x00", "ends too early"),
        (b"\x4b", "ends too early"),
        (b"\x3a\x01\x00", None),
    ],
)
def test_broken_bytes_end_in_a_sentence(shop, data, said):
    item = shop.types.find("Item")
    if said is None:
        assert shop.read(data, item)["7"] == b"\0"
        return
    with pytest.raises(DecodingError, match=said):
        shop.read(data, item)


def test_broken_numbers_of_fixed_size_and_packed_ones(shop):
    whole = shop.types.find("Order")
    for data in (b"\x3d\x00", b"\xa2\x01\x05\x01", b"\xa2\x01\x01\x80\x01"):
        with pytest.raises(DecodingError, match="ends too early"):
            shop.read(data, whole)


def test_deep_nesting_ends_in_a_sentence(shop):
    data = b""
    for _ in range(150):
        data = b"\x1a" + varint(len(data)) + data
    began = time.process_time()
    with pytest.raises(DecodingError, match="nests deeper than 100"):
        shop.read(data, shop.types.find("Item"))
    with pytest.raises(DecodingError, match="nests deeper than 100"):
        shop.read(b"\x4b" * 100_000, shop.types.find("Item"))
    assert time.process_time() - began < 2


def varint(number):
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


ORDERS = ProtobufSchema.of_text(SHOP, "shop.proto", TEXTS.get)


@given(st.binary(), st.sampled_from(["Order", "Item", "google.protobuf.Struct", "google.protobuf.Any"]))
def test_any_bytes_end(data, name):
    with contextlib.suppress(DecodingError):
        ORDERS.read(data, ORDERS.types.find(name))


def test_flipped_bytes_end(classes):
    good = order(classes).SerializeToString()
    chosen = random.Random(1)
    for _ in range(500):
        data = bytearray(good)
        data[chosen.randrange(len(data))] = chosen.randrange(256)
        with contextlib.suppress(DecodingError):
            ORDERS.read(bytes(data), ORDERS.types.find("Order"))


def test_places_of_messages():
    assert message_path(b"\x00rest", 0) == ([0], 1)
    assert message_path(b"\x02\x02", 0) == ([1], 2)
    assert message_path(b"\x06\x02\x00\x00", 0) == ([1, 0, 0], 4)
    assert ORDERS.types.at([1, 0, 0]).name == "shop.v1.Other.Deep.Deeper"
    assert ORDERS.types.at([0, 0]).name == "shop.v1.Order.Item"
    for data, said in ((b"\x01", "is not valid"), (b"\x04\x02", "too early"), (b"\xfe\x01", "is not valid")):
        with pytest.raises(DecodingError, match=said):
            message_path(data, 0)
    for path in ([5], [0, 9], [-1], []):
        with pytest.raises(DecodingError, match=r"shop\.proto"):
            ORDERS.types.at(path)


def test_registries_may_have_descriptors_in_base64(files, classes):
    one = descriptor_pb2.FileDescriptorSet.FromString((files / "shop.desc").read_bytes()).file
    texts = {each.name: base64.b64encode(each.SerializeToString()).decode() for each in one}
    schema = ProtobufSchema.of_text(texts["shop.proto"], "shop.proto", texts.get)
    assert read(schema, order(classes))["kind"] == "ODD"
    with pytest.raises(DecodingError, match=r"neither a \.proto file nor a descriptor"):
        ProtobufSchema.of_text("AAAA", "x", lambda _: None)
    with pytest.raises(DecodingError, match="not a Protobuf descriptor set"):
        ProtobufSchema.of_descriptors(b"", "x.desc")


def test_damaged_descriptors_are_refused_or_read(files):
    good = (files / "shop.desc").read_bytes()
    chosen = random.Random(2)
    for _ in range(150):
        data = bytearray(good)
        for _ in range(3):
            data[chosen.randrange(len(data))] = chosen.randrange(256)
        with contextlib.suppress(DecodingError):
            schema = ProtobufSchema.of_descriptors(bytes(data), "shop.desc")
            for message in schema.types.by_name.values():
                with contextlib.suppress(DecodingError):
                    schema.read(chosen.randbytes(12), message)
    with pytest.raises(DecodingError, match="a name that is not UTF-8"):
        ProtobufSchema.of_descriptors(b"\x0a\x06\x0a\x01x\x12\x01\xff", "x.desc")


def test_decimals_of_confluent():
    schema = ProtobufSchema.of_text(
        'syntax = "proto3"; import "confluent/type/decimal.proto"; message A { confluent.type.Decimal d = 1; }',
        "a",
        lambda _: None,
    )
    a = schema.types.find("A")
    assert schema.read(b"\x0a\x06\x0a\x02\xff\x6a\x18\x02", a) == {"d": Decimal("-1.50")}
    assert isinstance(schema.read(b"\x0a\x03\x18\xff\x7f", a)["d"], dict)


def test_the_files_that_come_along_can_be_read():
    for name in proto_known.FILES:
        proto_types.Types(proto_types.known_file(name), lambda _: None)
    assert protobuf.read_message(protobuf._descriptor("FileDescriptorProto"), b"") == {
        "dependency": [],
        "message_type": [],
        "enum_type": [],
    }
    assert json.dumps(proto_text.parse(proto_known.DESCRIPTORS, "d"))
