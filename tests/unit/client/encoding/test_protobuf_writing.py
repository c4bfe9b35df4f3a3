"""Google's library reads the written bytes as it reads the same JSON itself."""

import json
from decimal import Decimal
from importlib.resources import files as resources

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from grpc_tools import protoc
from hypothesis import given
from hypothesis import strategies as st

from horolog.client.decoding.protobuf import ProtobufSchema, message_path
from horolog.client.decoding.values import DecodingError, plain_text
from horolog.client.encoding import EncodingError
from horolog.client.encoding.protobuf_writing import ProtobufWriter, path_bytes, path_of

SHOP = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/any.proto";
import "google/protobuf/field_mask.proto";
message Order {
  enum State { NEW = 0; DONE = 1; BAD = -1; }
  message Item { string sku = 1; int32 count = 2; Item inside = 3; message Deep { bool x = 1; } }
  int64 id = 1; int32 small = 2; uint32 u32 = 3; uint64 u64 = 4; sint32 s32 = 5; sint64 s64 = 6;
  fixed32 f32 = 7; fixed64 f64 = 8; sfixed32 sf32 = 9; sfixed64 sf64 = 10;
  float ratio = 11; double exact = 12; bool ok = 13; string name_of_it = 14; bytes data = 15;
  State state = 16; repeated Item items = 17; map<string, int64> counts = 18; map<int32, Item> by_id = 19;
  repeated int32 numbers = 20; repeated sint64 plain = 21 [packed = false]; repeated State states = 22;
  optional int32 maybe = 23;
  oneof pay { string card = 24; int32 cash = 25; Item swap = 26; }
  google.protobuf.Timestamp at = 27; google.protobuf.Int64Value wrapped = 28; google.protobuf.Struct loose = 29;
  google.protobuf.Any any = 30; google.protobuf.Duration took = 31; google.protobuf.FieldMask mask = 32;
  map<bool, string> flags = 33; google.protobuf.Value value = 34; repeated string words = 35;
  google.protobuf.ListValue list = 36;
}
message Other { Order.Item item = 1; }
"""
MONEY = """
syntax = "proto2";
package money;
message Money { required string currency = 1; optional int64 units = 2 [default = 5]; repeated group Part = 3 { optional int32 cents = 1; } }
"""


@pytest.fixture(scope="module")
def google(tmp_path_factory):
    """The classes of Google's library, by the names of the messages."""
    folder = tmp_path_factory.mktemp("protos")
    pool, found = descriptor_pool.DescriptorPool(), {}
    for name, text in (("shop", SHOP), ("money", MONEY)):
        (folder / f"{name}.proto").write_text(text)
        made = folder / f"{name}.desc"
        words = [f"-I{folder}", f"-I{resources('grpc_tools') / '_proto'}", "--include_imports"]
        assert protoc.main(["protoc", *words, f"--descriptor_set_out={made}", f"{name}.proto"]) == 0
        for one in descriptor_pb2.FileDescriptorSet.FromString(made.read_bytes()).file:
            pool.Add(one)
    for name in ("shop.Order", "shop.Order.Item", "money.Money"):
        found[name] = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
    found["pool"] = pool
    return found


def writer(name="shop.Order", text=SHOP):
    types = ProtobufSchema.of_text(text, "the text", lambda _: None).types
    return ProtobufWriter(types, types.find(name))


WRITER = writer()


def whole(bits, *, signed=True):
    low = -(1 << bits - 1) if signed else 0
    return st.integers(low, low + (1 << bits) - 1)


TEXT = st.text(st.characters(codec="utf-8"), max_size=5)
ITEM = st.recursive(
    st.fixed_dictionaries({}, optional={"sku": TEXT, "count": whole(32)}),
    lambda inside: st.fixed_dictionaries({"inside": inside}, optional={"sku": TEXT}),
    max_leaves=3,
)
JSON = st.recursive(
    st.none() | st.booleans() | TEXT | st.floats(allow_nan=False, allow_infinity=False),
    lambda inside: st.lists(inside, max_size=2) | st.dictionaries(TEXT, inside, max_size=2),
    max_leaves=4,
)
ORDERS = st.fixed_dictionaries(
    {},
    optional={
        "id": whole(64), "small": whole(32), "u32": whole(32, signed=False), "u64": whole(64, signed=False) | whole(64, signed=False).map(str),
        "s32": whole(32), "s64": whole(64), "f32": whole(32, signed=False), "f64": whole(64, signed=False), "sf32": whole(32),
        "sf64": whole(64), "ratio": st.floats(width=32, allow_nan=False, allow_infinity=False) | st.just("-Infinity"),
        "exact": st.floats(allow_nan=False, allow_infinity=False), "ok": st.booleans(), "nameOfIt": TEXT,
        "state": st.sampled_from(["NEW", "DONE", "BAD", 0, 1, -1, 77]), "items": st.lists(ITEM, max_size=3),
        "counts": st.dictionaries(TEXT, whole(64), max_size=2), "by_id": st.dictionaries(whole(32).map(str), ITEM, max_size=2),
        "numbers": st.lists(whole(32)), "plain": st.lists(whole(64)), "states": st.lists(st.sampled_from(["NEW", "BAD", 1])),
        "maybe": st.none() | whole(32), "at": st.just("2026-11-17T10:05:20.000000005Z"), "wrapped": st.none() | whole(64),
        "loose": st.dictionaries(TEXT, JSON, max_size=2), "took": st.sampled_from(["-3.500s", "0s", "7.000000001s"]),
        "mask": st.sampled_from(["", "a,b.c"]), "flags": st.dictionaries(st.sampled_from(["true", "false"]), TEXT),
        "value": JSON, "words": st.lists(TEXT, max_size=2), "list": st.lists(JSON, max_size=2),
    },
)  # fmt: skip


@given(value=ORDERS, choice=st.sampled_from([{}, {"card": ""}, {"cash": 0}, {"cash": 9}, {"swap": {}}]))
def test_google_reads_the_same_message(google, value, choice):
    value |= choice
    expected = json_format.ParseDict(value, google["shop.Order"]())
    written = WRITER.write(json.loads(json.dumps(value), parse_float=Decimal))
    assert google["shop.Order"].FromString(written) == expected


@given(value=ORDERS)
def test_what_is_shown_can_be_written_again(google, value):
    """The decoder leaves no field out that the message has."""
    written = WRITER.write(value)
    shown = plain_text(ProtobufSchema(WRITER.types).read(written, WRITER.types.find("Order")))
    again = WRITER.write(json.loads(shown, parse_float=Decimal))
    assert google["shop.Order"].FromString(again) == google["shop.Order"].FromString(written)


def test_bytes_and_messages_of_any_type(google):
    written = WRITER.write(
        {"data": {"hex": "00ff"}, "any": {"@type": "type.googleapis.com/shop.Order.Item", "sku": "a"}, "wrapped": 0}
    )
    found = google["shop.Order"].FromString(written)
    assert (found.data, found.HasField("wrapped")) == (b"\x00\xff", True)
    inside = google["shop.Order.Item"]()
    assert found.any.Unpack(inside)
    assert inside.sku == "a"
    of_another = {"@type": "x/unknown.Type", "value": {"base64": "AP8="}}
    assert google["shop.Order"].FromString(WRITER.write({"any": of_another})).any.value == b"\x00\xff"
    timed = {"@type": "x/google.protobuf.Timestamp", "value": "1970-01-01T00:00:07Z"}
    assert google["shop.Order"].FromString(WRITER.write({"any": timed})).any.value == b"\x08\x07"


def test_groups_and_defaults_of_proto2(google):
    of_money = writer("money.Money", MONEY)
    found = google["money.Money"].FromString(of_money.write({"currency": "", "units": 0, "part": [{"cents": 7}, {}]}))
    assert (found.currency, found.units, found.HasField("units")) == ("", 0, True)
    assert [one.cents for one in found.part] == [7, 0]
    with pytest.raises(EncodingError, match=r"^field currency: it is required$"):
        of_money.write({"units": 1})


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ([], r"\[\] is not an object"),
        ({"nothing": 1}, "message shop.Order has no field nothing"),
        ({"name_of_it": "a", "nameOfIt": "b"}, "field name_of_it: it is given twice"),
        ({"card": "a", "cash": 1}, "fields card and cash: only one of them can be set"),
        ({"small": 2**31}, "field small: 2147483648 is not a number of 32 bits"),
        ({"u32": -1}, "field u32: -1 is not a number of 32 bits without a sign"),
        ({"small": 1.5}, "field small: 1.5 is not a whole number"),
        ({"small": Decimal("1e999999999")}, "is not a whole number"),
        ({"small": "1_0"}, "is not a whole number"),
        ({"small": True}, "is not a whole number"),
        ({"exact": Decimal("1e400")}, "field exact: 1E[+]400 is not a number of this size"),
        ({"exact": 10**400}, "is not a number of this size"),
        ({"ratio": 1e300}, "is not a number of this size"),
        ({"ratio": "x"}, "is not a number"),
        ({"ok": 1}, "field ok: 1 is not a boolean"),
        ({"name_of_it": 1}, "is not a text"),
        ({"name_of_it": "\ud800"}, "is not a text of Unicode"),
        ({"data": {"hex": "x"}}, "is not hexadecimal digits or base64"),
        ({"state": "OLD"}, "field state: 'OLD' is not one of BAD, DONE, NEW"),
        ({"items": {}}, "field items: {} is not a list"),
        ({"items": [{"inside": {"count": "x"}}]}, "field items.inside.count: 'x' is not a whole number"),
        ({"counts": []}, "field counts: .* is not an object"),
        ({"counts": {"a": None}}, "field counts: None is not a value of a map"),
        ({"by_id": {"x": {}}}, "field by_id.key: 'x' is not a whole number"),
        ({"flags": {"maybe": ""}}, "field flags.key: 'maybe' is not a boolean"),
        ({"at": "noon"}, "field at: 'noon' is not a time in ISO 8601"),
        ({"at": 5}, "is not a time in ISO 8601"),
        ({"took": "1"}, "is not a duration in seconds"),
        ({"took": "1e999999999s"}, "is not a duration in seconds"),
        ({"took": "nans"}, "is not a duration in seconds"),
        ({"mask": 5}, "is not names of fields"),
        ({"loose": 5}, "field loose.fields: 5 is not an object"),
        ({"any": {}}, 'is not an object with an "@type"'),
        ({"any": {"@type": "x/unknown.Type", "a": 1}}, "the schema has no message x/unknown.Type"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(value, reason):
    with pytest.raises(EncodingError, match=reason):
        WRITER.write(value)


def test_nesting_has_a_bound():
    value = {"sku": "x"}
    for _ in range(101):
        value = {"inside": value}
    with pytest.raises(EncodingError, match="nests too deeply"):
        WRITER.write({"items": [value]})


def test_decimals_of_registries():
    text = 'syntax = "proto3"; import "confluent/type/decimal.proto"; message M { confluent.type.Decimal price = 1; }'
    types = ProtobufSchema.of_text(text, "the text", lambda _: None).types
    made = ProtobufWriter(types, types.find("M"))
    for price in (Decimal("12.30"), Decimal(-128), Decimal(0), 7, "1.5"):
        read = ProtobufSchema(types).read(made.write({"price": price}), types.find("M"))
        assert read == {"price": Decimal(price)}
    fields = {"value": {"hex": "07"}, "scale": 1, "precision": 2}
    assert ProtobufSchema(types).read(made.write({"price": fields}), types.find("M")) == {"price": Decimal("0.7")}
    for wrong in ("x", None.__class__, Decimal("NaN"), True):
        with pytest.raises(EncodingError, match="is not a decimal number"):
            made.write({"price": wrong})


@pytest.mark.parametrize("name", ["shop.Order", "shop.Other", "shop.Order.Item", "shop.Order.Item.Deep"])
def test_the_place_of_a_message_is_read_again(name):
    types = WRITER.types
    path = path_of(types, types.find(name))
    written = path_bytes(path)
    assert types.at(path).name == name
    assert message_path(written + b"rest", 0) == (path, len(written))


def test_a_message_of_an_import_has_no_place():
    with pytest.raises(DecodingError, match="in an import of it"):
        path_of(WRITER.types, WRITER.types.find("google.protobuf.Timestamp"))
