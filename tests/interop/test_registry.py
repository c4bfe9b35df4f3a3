"""Records of a real registry, Apicurio's with Confluent's interface, are decoded as they were written: Avro, Protobuf, JSON, with references."""

import base64
import io
import json
import socket
import urllib.request

import fastavro
import pytest
from google.protobuf import struct_pb2

from horolog.client.decoding import Decoder, Options, RegistryAccess
from horolog.client.values.types import ConsumerRecord
from tests.support import apicurio
from tests.support.command import run_typed
from tests.support.names import unique

pytestmark = [pytest.mark.java, pytest.mark.timeout(480)]

MONEY = {
    "type": "record",
    "name": "Money",
    "namespace": "shop",
    "fields": [
        {"name": "amount", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "currency", "type": "string"},
    ],
}
ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [{"name": "id", "type": "long"}, {"name": "price", "type": "shop.Money"}],
}
JSON_SCHEMA = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}
ITEM_PROTO = 'syntax = "proto3"; package shop; message Item { string sku = 1; int32 count = 2; }'
ORDER_PROTO = """syntax = "proto3";
package shop;
import "item.proto";
import "google/protobuf/struct.proto";
message Other { int32 x = 1; }
message Order {
  int64 id = 1;
  repeated Item items = 2;
  google.protobuf.Struct loose = 3;
  message Inside { string s = 1; }
}
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    try:
        apicurio.folder()
    except apicurio.NoRegistryError as error:
        pytest.skip(str(error))
    with apicurio.running(tmp_path_factory.mktemp("registry") / "log") as address:
        yield address


def register(url, subject, schema, kind="AVRO", references=()):
    """The id that the registry gives to a schema."""
    body = {"schema": schema if isinstance(schema, str) else json.dumps(schema), "schemaType": kind}
    if references:
        body["references"] = [{"name": name, "subject": other, "version": 1} for name, other in references]
    request = urllib.request.Request(
        f"{url}/subjects/{subject}/versions",
        json.dumps(body).encode(),
        {"Content-Type": "application/vnd.schemaregistry.v1+json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)["id"]


def framed(number, data):
    return b"\0" + number.to_bytes(4, "big") + data


@pytest.fixture(scope="module")
def ids(url):
    money, item = unique("money"), unique("item")
    register(url, money, MONEY)
    register(url, item, ITEM_PROTO, "PROTOBUF")
    return {
        "avro": register(url, unique("order"), ORDER, references=[("shop.Money", money)]),
        "protobuf": register(url, unique("order-proto"), ORDER_PROTO, "PROTOBUF", [("item.proto", item)]),
        "json": register(url, unique("order-json"), JSON_SCHEMA, "JSON"),
    }


@pytest.fixture(scope="module")
def avro():
    from decimal import Decimal

    parsed = fastavro.parse_schema([MONEY, ORDER])
    out = io.BytesIO()
    fastavro.schemaless_writer(out, parsed[1], {"id": 7, "price": {"amount": Decimal("12.50"), "currency": "EUR"}})
    return out.getvalue()


LOOSE = struct_pb2.Struct()
LOOSE.update({"a": [1, None]})
PROTOBUF = b"\x08\x07" + b"\x12\x05\x0a\x01s\x10\x02" + b"\x1a" + bytes([LOOSE.ByteSize()]) + LOOSE.SerializeToString()


@pytest.mark.long
async def test_each_kind_of_schema(url, ids, avro):
    decoder = Decoder(Options(registry=RegistryAccess(url)))

    async def read(value):
        return await decoder.decode(ConsumerRecord("t", 0, 0, 0, 0, value, value))

    found = await read(framed(ids["avro"], avro))
    assert found.value_problem is None
    assert found.value_text == '{"id":7,"price":{"amount":"12.50","currency":"EUR"}}'
    assert (found.value, found.value_schema) == (found.key, f"shop.Order ({ids['avro']})")
    found = await read(framed(ids["protobuf"], b"\x02\x02" + PROTOBUF))
    assert found.value_problem is None
    assert found.value == {"id": 7, "items": [{"sku": "s", "count": 2}], "loose": {"a": [1.0, None]}}
    assert (await read(framed(ids["protobuf"], b"\x00\x08\x05"))).value == {"x": 5}
    assert (await read(framed(ids["protobuf"], b"\x04\x02\x00\x0a\x01s"))).value == {"s": "s"}
    assert (await read(framed(ids["json"], b'{"id": 7}'))).value == {"id": 7}
    asked = decoder.registry.asked
    for _ in range(50):
        await read(framed(ids["avro"], avro))
    assert decoder.registry.asked == asked
    found = await read(framed(999_999, b"\x00"))
    assert found.value == "00000f423f00"
    assert found.value_problem == f"the registry {url} has no schema 999999"


def test_records_are_shown_and_chosen_by_it(url, ids, avro, session_broker, tmp_path, capsys):
    topic = unique("registered")
    at = ("--bootstrap", session_broker.address)
    assert run_typed(capsys, "topics", "create", topic, *at).code == 0
    path = tmp_path / "records"
    values = [
        framed(ids["avro"], avro),
        framed(ids["protobuf"], b"\x02\x02" + PROTOBUF),
        framed(ids["json"], b'{"id": 8}'),
    ]
    path.write_text("".join(json.dumps({"value_base64": base64.b64encode(one).decode()}) + "\n" for one in values))
    assert run_typed(capsys, "produce", topic, path, "--format", "json", *at).code == 0
    ended = run_typed(capsys, "consume", topic, "--registry", url, "-o", "json", *at)
    assert [one["value_format"] for one in ended.lines] == ["avro", "protobuf", "json"]
    assert [one["value"]["id"] for one in ended.lines] == [7, 7, 8]
    ended = run_typed(capsys, "consume", topic, "--registry", url, "--where", "value.price.amount > 12", *at)
    assert ended.out.endswith('@0  -  {"id":7,"price":{"amount":"12.50","currency":"EUR"}}\n')
    assert ended.out.count("\n") == 1


async def test_an_address_that_is_no_registry_is_told(url):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        access = RegistryAccess(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout_ms=200)
        found = await Decoder(Options(registry=access)).decode(ConsumerRecord("t", 0, 0, 0, 0, None, framed(1, b"")))
    assert found.value_problem.endswith("did not answer within 200 ms")
    access = RegistryAccess(url.partition("/apis")[0] + "/apis/nowhere")
    found = await Decoder(Options(registry=access)).decode(ConsumerRecord("t", 0, 0, 0, 0, None, framed(1, b"")))
    assert found.value_problem.endswith("has no schema 1")
