"""Encodes a key or a value as a schema says, with the header of a registry's clients if the schema has an id there."""

from decimal import Decimal
from json import JSONDecodeError, loads
from pathlib import Path
from typing import TYPE_CHECKING, Any

from horolog.client.decoding import DecodingError
from horolog.client.decoding.decoder import DESCRIPTORS, MAGIC, protobuf_of_file, schema_bytes, schema_text
from horolog.client.decoding.registry import RegisteredSchema
from horolog.client.encoding.avro_writing import AvroWriter
from horolog.client.encoding.fitting import EncodingError

if TYPE_CHECKING:
    from horolog.client.decoding.protobuf import ProtobufSchema
    from horolog.client.encoding.protobuf_writing import ProtobufWriter

AVRO, JSON, PROTOBUF = "AVRO", "JSON", "PROTOBUF"
NO_ID = -1
"""The id of a schema that is in no registry: its values have no header."""


def encoder_of_file(path: str | Path, message: str | None = None) -> "SchemaEncoder":
    """The encoder for the Avro or Protobuf schema of a file; `message` is one of Protobuf, without it the first of the file is taken.

    Raises DecodingError.
    """
    file = Path(path)
    if file.suffix == ".proto" or file.suffix in DESCRIPTORS:
        schema = protobuf_of_file(file, schema_bytes(file))
        return SchemaEncoder(RegisteredSchema(NO_ID, PROTOBUF, ""), message, schema)
    return SchemaEncoder(RegisteredSchema(NO_ID, AVRO, schema_text(file, schema_bytes(file))), message)


class SchemaEncoder:
    """Raises DecodingError for a schema that cannot be used. Of a Protobuf file the first message is taken, unless one is named."""

    def __init__(
        self, schema: RegisteredSchema, message: str | None = None, protobuf: "ProtobufSchema | None" = None
    ) -> None:
        if schema.kind not in (AVRO, JSON, PROTOBUF):
            raise DecodingError(f"schema {schema.id} has the type {schema.kind}, which horolog cannot encode")
        if message is not None and schema.kind != PROTOBUF:
            raise DecodingError(f"a message type is given, but the schema has the type {schema.kind}")
        self.schema = schema
        self._header = b"" if schema.id == NO_ID else bytes([MAGIC]) + schema.id.to_bytes(4, "big")
        self._writer: AvroWriter | ProtobufWriter | None = None
        if schema.kind == AVRO:
            self._writer = AvroWriter(schema.text, schema.references)
        elif schema.kind == PROTOBUF:
            self._writer, path = _protobuf_writer(schema, message, protobuf)
            self._header += path if self._header else b""

    def __repr__(self) -> str:
        return f"<SchemaEncoder of {self.name}>"

    @property
    def name(self) -> str:
        """For messages: the type and the id."""
        kind = "JSON" if self._writer is None else self._writer.name
        return kind if self.schema.id == NO_ID else f"{kind} ({self.schema.id})"

    def encode(self, data: bytes | None) -> bytes | None:
        """The bytes for JSON, or for a text where the schema is one; null stays null. Raises EncodingError."""
        if data is None:
            return None
        if self._writer is None:
            _value_of(data)
            return self._header + data
        takes_text = isinstance(self._writer, AvroWriter) and self._writer.takes_text
        return self._header + self._writer.write(_text_of(data) if takes_text else _value_of(data))


def _protobuf_writer(
    schema: RegisteredSchema, name: str | None, found: "ProtobufSchema | None"
) -> "tuple[ProtobufWriter, bytes]":
    """The writer, and the place of its message in the file as a registry's clients write it."""
    from horolog.client.decoding.protobuf import ProtobufSchema
    from horolog.client.encoding.protobuf_writing import ProtobufWriter, path_bytes, path_of

    types = (found or ProtobufSchema.of_text(schema.text, "its text", schema.references.get)).types
    message = types.at([0]) if name is None else types.find(name)
    return ProtobufWriter(types, message), path_bytes(path_of(types, message))


def _text_of(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise EncodingError("it is not text") from error


def _value_of(data: bytes) -> Any:
    """Fractions keep their digits, for decimals."""
    try:
        return loads(data, parse_float=Decimal)
    except (JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise EncodingError(f"it is not JSON: {error}") from error
