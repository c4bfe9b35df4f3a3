"""A schema of a file or of a registry encodes JSON and texts, with a header if it has an id."""

import pytest

from horolog.client.decoding import DecodingError
from horolog.client.decoding.registry import RegisteredSchema
from horolog.client.encoding import EncodingError, SchemaEncoder, schema_of_file

RECORD = '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}'


def test_a_schema_of_a_file_has_no_header(tmp_path):
    path = tmp_path / "r.avsc"
    path.write_text(RECORD)
    encoder = SchemaEncoder(schema_of_file(path))
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


def test_other_kinds_are_refused(tmp_path):
    with pytest.raises(DecodingError, match="has the type PROTOBUF"):
        SchemaEncoder(RegisteredSchema(1, "PROTOBUF", ""))
    with pytest.raises(DecodingError, match="not as Protobuf"):
        schema_of_file(tmp_path / "r.proto")
    with pytest.raises(DecodingError, match="No such file"):
        schema_of_file(tmp_path / "none.avsc")
