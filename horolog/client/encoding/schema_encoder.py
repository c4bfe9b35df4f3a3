"""Encodes a key or a value as a schema says, with the header of a registry's clients if the schema has an id there."""

from decimal import Decimal
from json import JSONDecodeError, loads
from pathlib import Path
from typing import Any

from horolog.client.decoding import DecodingError
from horolog.client.decoding.decoder import MAGIC, schema_bytes, schema_text
from horolog.client.decoding.registry import RegisteredSchema
from horolog.client.encoding.avro_writing import AvroWriter, EncodingError

AVRO, JSON = "AVRO", "JSON"
NO_ID = -1
"""The id of a schema that is in no registry: its values have no header."""


def schema_of_file(path: str | Path) -> RegisteredSchema:
    """The Avro schema of a file. Raises DecodingError."""
    file = Path(path)
    if file.suffix in (".proto", ".desc", ".pb", ".fds"):
        raise DecodingError(f"{file}: records can be encoded as Avro, but not as Protobuf")
    return RegisteredSchema(NO_ID, AVRO, schema_text(file, schema_bytes(file)))


class SchemaEncoder:
    """Raises DecodingError for a schema that cannot be used."""

    def __init__(self, schema: RegisteredSchema) -> None:
        if schema.kind not in (AVRO, JSON):
            raise DecodingError(
                f"schema {schema.id} has the type {schema.kind}; records can be encoded only as Avro or JSON"
            )
        self.schema = schema
        self._avro = AvroWriter(schema.text, schema.references) if schema.kind == AVRO else None
        self._header = b"" if schema.id == NO_ID else bytes([MAGIC]) + schema.id.to_bytes(4, "big")

    def __repr__(self) -> str:
        return f"<SchemaEncoder of {self.name}>"

    @property
    def name(self) -> str:
        """For messages: the type and the id."""
        kind = "JSON" if self._avro is None else self._avro.name
        return kind if self.schema.id == NO_ID else f"{kind} ({self.schema.id})"

    def encode(self, data: bytes | None) -> bytes | None:
        """The bytes for JSON, or for a text where the schema is one; null stays null. Raises EncodingError."""
        if data is None:
            return None
        if self._avro is None:
            _value_of(data)
            return self._header + data
        value = _text_of(data) if self._avro.takes_text else _value_of(data)
        return self._header + self._avro.write(value)


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
