"""Any record decodes: by its look, a format, a file or a registry; what cannot be read is text or hexadecimal digits, with the reason."""

import io
import json

import fastavro
import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.client.decoding import Decoder, DecodingError, Options, decoder
from horolog.client.values.types import ConsumerRecord
from tests.support.registry_server import registry_server

AVRO = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
PROTO = 'syntax = "proto3"; message First { int32 x = 1; } message Order { int64 id = 1; message In { string s = 1; } }'
FRAME = b"\0\0\0\0\x07"


def record(value, key=b"k"):
    return ConsumerRecord("t", 0, 0, 0, 0, key, value)


def avro(value) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(AVRO), value)
    return out.getvalue()


async def decoded(value, key=b"k", **options):
    return await Decoder(Options(**options)).decode(record(value, key))


@pytest.fixture
def schemas(tmp_path):
    (tmp_path / "order.avsc").write_text(json.dumps(AVRO))
    (tmp_path / "order.proto").write_text(PROTO)
    (tmp_path / "one.proto").write_text('import "shared/in.proto"; message One { optional shared.In in = 1; }')
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared/in.proto").write_text("package shared; message In { optional int32 x = 1; }")
    return tmp_path


@pytest.mark.parametrize(
    ("value", "expected", "kind"),
    [
        (None, None, "null"),
        (b'{"id": 7}', {"id": 7}, "json"),
        (b" [1]", [1], "json"),
        (b"42", "42", "text"),
        (b"plain", "plain", "text"),
        (b"{no json", "{no json", "text"),
        (b"\xff\x00", "ff00", "hex"),
        (b"", "", "text"),
        (b"ab", "ab", "text"),
        (b"\0\0\0\0\x07" + b'{"a":1}', {"a": 1}, "json"),
    ],
)
async def test_without_a_word_it_is_the_look(value, expected, kind):
    found = await decoded(value)
    assert (found.value, found.value_format, found.value_problem) == (expected, kind, None)
    assert (found.key, found.key_text, found.key_format) == ("k", "k", "text")


async def test_formats_that_are_named():
    assert (await decoded(b"42", value_format="json")).value == 42
    assert (await decoded(b"{}", value_format="text")).value == "{}"
    assert (await decoded(b"{}", value_format="hex")).value == "7b7d"
    assert (await decoded(FRAME + b"{}", value_format="json")).value == {}
    found = await decoded(msgpack.packb({"a": 1}), msgpack.packb(5), value_format="msgpack", key_format="msgpack")
    assert (found.value, found.value_text, found.key, found.key_text) == ({"a": 1}, '{"a":1}', 5, "5")
    found = await decoded(b"{", value_format="json")
    assert (found.value, found.value_format) == ("{", "text")
    assert found.value_problem.startswith("not JSON")
    found = await decoded(FRAME + b"{", value_format="json")
    assert found.value == "000000000" + "77b"


async def test_a_head_without_a_registry_says_what_is_missing():
    found = await decoded(FRAME + b"\x0e")
    assert (found.value, found.value_format) == ("00000000070e", "hex")
    assert found.value_problem == "it seems to have schema 7 of a registry, but no registry is given"


async def test_avro_of_a_file(schemas):
    path = str(schemas / "order.avsc")
    plain = avro({"id": 7})
    for data in (plain, FRAME + plain, b"\xc3\x01" + b"12345678" + plain):
        found = await decoded(data, schema_file=path)
        assert (found.value, found.value_format, found.value_schema) == ({"id": 7}, "avro", "Order")
    found = await decoded(b"\xff\xff", schema_file=path, value_format="avro")
    assert (found.value, found.value_problem) == ("ffff", "not Avro of this schema: it ends too early")
    assert (await decoded(FRAME, schema_file=path)).value_problem is not None


async def test_keys_have_a_file_of_their_own(schemas):
    avro_file, proto_file = str(schemas / "order.avsc"), str(schemas / "order.proto")
    plain = avro({"id": 7})
    found = await decoded(b'{"a": 1}', key=plain, key_schema_file=avro_file)
    assert (found.key, found.key_format, found.key_schema, found.value) == ({"id": 7}, "avro", "Order", {"a": 1})
    found = await decoded(
        plain, key=b"\x08\x05", key_schema_file=proto_file, key_message="Order", schema_file=avro_file
    )
    assert (found.key, found.key_format, found.value) == ({"id": 5}, "protobuf", {"id": 7})
    assert (await decoded(plain, key=plain, schema_file=avro_file)).key_schema is None
    found = await decoded(None, key=b"\xff\xff", key_schema_file=avro_file)
    assert (found.key, found.key_problem) == ("ffff", "not Avro of this schema: it ends too early")


async def test_protobuf_of_files(schemas):
    path = str(schemas / "order.proto")
    for data in (b"\x08\x07", FRAME + b"\x02\x02" + b"\x08\x07"):
        assert (await decoded(data, schema_file=path, message="Order")).value == {"id": 7}
    assert (await decoded(b"\x0a\x02\x08\x05", schema_file=str(schemas / "one.proto"))).value == {"in": {"x": 5}}
    from grpc_tools import protoc

    assert (
        protoc.main(
            ["protoc", f"-I{schemas}", "--include_imports", f"--descriptor_set_out={schemas}/one.desc", "one.proto"]
        )
        == 0
    )
    found = await decoded(b"\x0a\x02\x08\x05", schema_file=str(schemas / "one.desc"))
    assert (found.value, found.value_schema) == ({"in": {"x": 5}}, "One")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"value_format": "xml"}, "there is no format 'xml'"),
        ({"key_format": "avro"}, "the key's format avro needs a schema"),
        ({"value_format": "protobuf"}, "the value's format protobuf needs a schema"),
        ({"message": "Order"}, "but no schema file"),
        ({"schema_file": "gone.avsc"}, "gone.avsc: No such file"),
        ({"schema_file": "order.proto"}, r"several messages \(First, Order\)"),
        ({"schema_file": "order.proto", "message": "Gone"}, "has no message Gone"),
        ({"schema_file": "order.avsc", "message": "Order"}, "is an Avro schema"),
        ({"schema_file": "order.avsc", "value_format": "json"}, "is a schema of avro, but the value's format is json"),
        ({"key_schema_file": "order.avsc", "key_format": "json"}, "is a schema of avro, but the key's format is json"),
        ({"key_message": "Order"}, "a message is given for the key, but no schema file"),
        ({"schema_file": "order.avsc", "key_format": "avro"}, "the key's format avro needs a schema"),
        ({"key_schema_file": "order.proto"}, r"several messages \(First, Order\)"),
        ({"schema_file": "bad.avsc"}, "not UTF-8 text"),
        ({"schema_file": "bad.bin"}, "cannot be read as a Protobuf descriptor set"),
        ({"schema_file": "away.proto"}, "x.y.Z, which is not defined"),
    ],
)
def test_options_that_cannot_be_met_are_refused(schemas, options, said):
    (schemas / "bad.avsc").write_bytes(b"\xff")
    (schemas / "bad.bin").write_bytes(b"\xff\xfe")
    (schemas / "away.proto").write_text(
        'import "../x.proto"; import "/etc/passwd"; message A { optional x.y.Z z = 1; }'
    )
    options = {key: str(schemas / value) if key.endswith("schema_file") else value for key, value in options.items()}
    with pytest.raises(DecodingError, match=said):
        Decoder(Options(**options))


def test_a_file_that_is_too_large_is_no_schema(schemas, monkeypatch):
    monkeypatch.setattr(decoder, "MOST_SCHEMA_BYTES", 5)
    with pytest.raises(DecodingError, match="larger than"):
        Decoder(Options(schema_file=str(schemas / "order.avsc")))


ANSWERS = {
    "/schemas/ids/7": {"schema": json.dumps(AVRO)},
    "/schemas/ids/8": {"schema": PROTO, "schemaType": "PROTOBUF"},
    "/schemas/ids/9": {"schema": "{}", "schemaType": "JSON"},
    "/schemas/ids/10": {"schema": "?", "schemaType": "THRIFT"},
    "/schemas/ids/11": {"schema": '{"type": "enum"}'},
}


def framed(number, data):
    return b"\0" + number.to_bytes(4, "big") + data


async def test_schemas_of_a_registry():
    async with registry_server(ANSWERS) as server:
        options = {"registry": server.access()}
        found = await decoded(framed(7, avro({"id": 5})), framed(8, b"\x04\x02\x00\x0a\x01s"), **options)
        assert (found.value, found.value_format, found.value_schema) == ({"id": 5}, "avro", "Order (7)")
        assert (found.key, found.key_format, found.key_schema) == ({"s": "s"}, "protobuf", "Order.In (8)")
        found = await decoded(framed(9, b'{"a":1}'), framed(8, b"\x00\x08\x07"), **options)
        assert (found.value, found.value_schema, found.key) == ({"a": 1}, "9", {"x": 7})
        for data, said in (
            (framed(10, b""), "schema 10 has the type THRIFT, which is not supported"),
            (framed(11, b""), "schema 11 of the registry cannot be used: the schema has an enum without a name"),
            (framed(12, b""), "has no schema 12"),
            (framed(8, b"\x02\x20"), r"has no message at [16]"),
            (framed(7, b""), "ends too early"),
        ):
            found = await decoded(data, **options)
            assert said in found.value_problem
            assert (found.value, found.value_format) == (data.hex(), "hex")
        assert (await decoded(b'{"a":1}', **options)).value == {"a": 1}
        assert (await decoded(framed(7, avro({"id": 5})), value_format="msgpack", **options)).value_problem is not None
        problem = (await decoded(framed(7, b"\x02"), value_format="protobuf", **options)).value_problem
        assert problem == "schema 7 has the type AVRO, but the format is protobuf"
        assert "does not begin with a zero byte" in (await decoded(b"{}", value_format="avro", **options)).value_problem


async def test_a_schema_is_made_ready_once():
    async with registry_server(ANSWERS) as server:
        one = Decoder(Options(registry=server.access()))
        for number in (7, 11):
            for _ in range(3):
                await one.decode(record(framed(number, avro({"id": 5}))))
        assert len(server.asked) == 2
        assert len(one._readers) == 1


@given(st.binary(), st.sampled_from(["auto", "json", "msgpack", "text", "hex"]))
async def test_any_bytes_decode(data, kind):
    found = await decoded(data, data, value_format=kind, key_format=kind)
    assert isinstance(found.value_text, str)
    assert found.value == found.key
