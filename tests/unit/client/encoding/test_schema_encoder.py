"""A schema of a file or of a registry encodes JSON and texts, with a header if it has an id."""

import pytest
from grpc_tools import protoc

from horolog.client.decoding import DecodingError
from horolog.client.decoding.registry import RegisteredSchema
from horolog.client.encoding import EncodingError, SchemaEncoder, encoder_of_file

RECORD = '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}'


def test_a_schema_of_a_file_has_no_header(tmp_path):
    path = tmp_path / "r.avsc"
    path.write_text(RECORD)
    encoder = encoder_of_file(path)
    assert encoder.encode(b'{"id": 7}') == b"\x0e"
    assert encoder.encode(None) is None
    assert (encoder.name, repr(encoder)) == ("R", "<SchemaEncoder of R>")
    with pytest.raises(EncodingError, match="it is not JSON"):
        encoder.encode(b"{")
    with pytest.raises(EncodingError, match="field id: 'x' is not a whole number"):
        encoder.encode(b'{"id": "x"}')


def test_a_schema_of_a_registry_has_one():
    encoder = SchemaEncoder(RegisteredSchema(258, "AVRO", RECORD))
    assert (encoder.encode(b'{"id": 7}'), encoder.name) == (b"\0\0\0\x01\x02\x0e", "R (258)")
    json = SchemaEncoder(RegisteredSchema(3, "JSON", "{}"))
    assert (json.encode(b'{"a":1}'), json.name) == (b'\0\0\0\0\x03{"a":1}', "JSON (3)")
    with pytest.raises(EncodingError, match="it is not JSON"):
        json.encode(b"text")


def test_texts_need_no_quotes():
    encoder = SchemaEncoder(RegisteredSchema(1, "AVRO", '"string"'))
    assert encoder.encode(b"7") == b"\0\0\0\0\x01\x027"
    with pytest.raises(EncodingError, match="it is not text"):
        encoder.encode(b"\xff")


PROTO = """
syntax = "proto3"; package p; import "other.proto";
message First { int64 id = 1; message Deep { string x = 1; } }
message Second { p.Other other = 1; }
"""


def test_a_message_of_protobuf_is_the_first_or_a_named_one(tmp_path):
    (tmp_path / "other.proto").write_text('syntax = "proto3"; package p; message Other { bool ok = 1; }')
    path = tmp_path / "r.proto"
    path.write_text(PROTO)
    assert encoder_of_file(path).encode(b'{"id": 7}') == b"\x08\x07"
    second = encoder_of_file(path, "Second")
    assert (second.encode(b'{"other": {"ok": true}}'), second.name) == (b"\x0a\x02\x08\x01", "p.Second")
    registered = RegisteredSchema(3, "PROTOBUF", PROTO, {"other.proto": (tmp_path / "other.proto").read_text()})
    header = b"\0\0\0\0\x03"
    assert SchemaEncoder(registered).encode(b'{"id": 7}') == header + b"\0\x08\x07"
    assert SchemaEncoder(registered, "Second").encode(b"{}") == header + b"\x02\x02"
    assert SchemaEncoder(registered, "First.Deep").encode(b'{"x": "a"}') == header + b"\x04\0\0\x0a\x01a"
    for name, reason in (("Third", "has no message Third"), ("Other", "in an import of it")):
        with pytest.raises(DecodingError, match=reason):
            SchemaEncoder(registered, name)


def test_a_descriptor_set_is_a_schema(tmp_path):
    (tmp_path / "m.proto").write_text('syntax = "proto3"; message M { int64 id = 1; }')
    made = tmp_path / "m.desc"
    assert protoc.main(["protoc", f"-I{tmp_path}", f"--descriptor_set_out={made}", "m.proto"]) == 0
    assert encoder_of_file(made).encode(b'{"id": 7}') == b"\x08\x07"


def test_other_kinds_are_refused(tmp_path):
    with pytest.raises(DecodingError, match="has the type XML, which horolog cannot encode"):
        SchemaEncoder(RegisteredSchema(1, "XML", ""))
    with pytest.raises(DecodingError, match="a message type is given, but the schema has the type AVRO"):
        SchemaEncoder(RegisteredSchema(1, "AVRO", RECORD), "M")
    with pytest.raises(DecodingError, match="No such file"):
        encoder_of_file(tmp_path / "none.avsc")
