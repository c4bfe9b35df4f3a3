"""Readers of Avro and Protobuf: by a schema that the options name, or by a registry that knows the schema of each record.

The driver determines the reader's schema, which travels with the reader, so that all tasks have the same columns. With a registry
tasks ask it once for each schema that records were written with. An id that the registry does not have is a
fault of the record; a registry that does not answer is not, and fails the task.
"""

import asyncio
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from horolog.client.decoding.avro import SINGLE_OBJECT, AvroSchema
from horolog.client.decoding.proto_types import Message
from horolog.client.decoding.protobuf import ProtobufSchema, message_path
from horolog.client.decoding.registry import Registry, RegistryUnavailable
from horolog.client.decoding.registry_access import RegistryAccess
from horolog.client.decoding.values import DecodingError
from horolog.pipeline.typed import avro_resolving, avro_schema, proto_kinds
from horolog.pipeline.typed.fitting import Column, Fit, read_rows
from horolog.pipeline.typed.readers import HEADER

DESCRIPTORS: Final = "descriptors:"
"""Before the base64 of what `protoc --descriptor_set_out` writes, where a text is expected."""
_SINGLE_OBJECT_HEADER: Final = 10

Read = Callable[[bytes], Any]


class NoRegistry(Exception):
    """The registry did not answer: no record is to blame."""


@dataclass(frozen=True, slots=True)
class SchemaText:
    """A schema and those that it refers to, by their names."""

    text: str = field(repr=False)
    references: Mapping[str, str] = field(default_factory=dict, repr=False)


class _BySchema:
    """A reader that is opened at its first read, and travels closed."""

    def __init__(self, kind: pa.DataType, schema: SchemaText, registry: RegistryAccess | None) -> None:
        self.kind = kind
        self._schema = schema
        self._registry = registry
        self._opened: Read | None = None

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"_opened": None}

    def read(self, values: pa.Array) -> Column:
        if self._opened is None:
            self._opened = self._open()
        return read_rows(values, self._opened, self.kind)

    def _open(self) -> Read:
        raise NotImplementedError


class AvroReader(_BySchema):
    """Avro, as the reader's schema has it. Raises DecodingError."""

    def __init__(self, schema: SchemaText, registry: RegistryAccess | None) -> None:
        AvroSchema(schema.text, schema.references)  # says what it does not take
        super().__init__(avro_schema.kind_of(_tree(schema)), schema, registry)

    def _open(self) -> Read:
        if self._registry is None:
            return _own_or_headed(_avro(self._schema, self._schema), _behind_head)
        return _ByWriter(self._registry, self._schema).read


def _tree(schema: SchemaText) -> avro_schema.Schema:
    return avro_schema.parse(schema.text, schema.references)


def _avro(writer: SchemaText, reader: SchemaText) -> Read:
    read = AvroSchema(writer.text, writer.references, tagged=True).read
    fit: Fit = avro_resolving.resolved(_tree(writer), _tree(reader))
    return lambda data: fit(read(data))


def _own_or_headed(read: Read, behind_head: Callable[[bytes], bytes | None]) -> Read:
    """Plain bytes of the schema; failing that, those after the header of a registry's clients, or after Avro's own."""

    def either(data: bytes) -> Any:
        try:
            return read(data)
        except DecodingError:
            rest = behind_head(data)
            if rest is None:
                raise
            return read(rest)

    return either


def _behind_head(data: bytes) -> bytes | None:
    if data[:2] == SINGLE_OBJECT:
        return data[_SINGLE_OBJECT_HEADER:]
    return data[HEADER:] if data[:1] == b"\x00" and len(data) >= HEADER else None


def number_of(data: bytes, what: str) -> int:
    """The id of the schema before a value of a registry's clients."""
    if len(data) < HEADER or data[0] != 0:
        raise DecodingError(f"not {what} of a registry: it does not begin with a zero byte and the id of a schema")
    return int.from_bytes(data[1:HEADER], "big")


class _ByWriter:
    """Reads each record with the schema of its writer."""

    def __init__(self, access: RegistryAccess, reader: SchemaText) -> None:
        self._registry = Registry(access)
        self._reader = reader
        self._known: dict[int, Read] = {}

    def read(self, data: bytes) -> Any:
        number = number_of(data, "Avro")
        known = self._known.get(number)
        if known is None:
            known = self._known[number] = self._made(number)
        return known(data[HEADER:])

    def _made(self, number: int) -> Read:
        try:
            found = asyncio.run(self._registry.schema(number))
        except RegistryUnavailable as error:
            raise NoRegistry(str(error)) from error
        try:
            if found.kind != "AVRO":
                raise DecodingError(f"it has the type {found.kind}, but the format is avro")
            return _avro(SchemaText(found.text, found.references), self._reader)
        except DecodingError as error:
            return _refusing(f"schema {number} of the registry cannot be read: {error}")


def _refusing(why: str) -> Read:
    def refuse(_: bytes) -> Any:
        raise DecodingError(why)

    return refuse


class ProtobufReader(_BySchema):
    """Protobuf by the fields of the reader's message: numbers identify them, whatever the writer's schema. Raises DecodingError."""

    def __init__(self, schema: SchemaText, message: str | None, *, headed: bool) -> None:
        self._message = message
        self._headed = headed
        super().__init__(proto_kinds.typed(_message(_protobuf(schema), message)).kind, schema, None)

    def _open(self) -> Read:
        protobuf = _protobuf(self._schema)
        message = _message(protobuf, self._message)
        fit = proto_kinds.typed(message).fit

        def read(data: bytes) -> Any:
            return fit(protobuf.read(data, message))

        if not self._headed:
            return _own_or_headed(read, _behind_path)
        return lambda data: read(_of_message(data, protobuf, message))


def _protobuf(schema: SchemaText) -> ProtobufSchema:
    if schema.text.startswith(DESCRIPTORS):
        return ProtobufSchema.of_descriptors(b64decode(schema.text.removeprefix(DESCRIPTORS)), "the schema")
    return ProtobufSchema.of_text(schema.text, "the schema", schema.references.get)


def _message(protobuf: ProtobufSchema, name: str | None) -> Message:
    if name is not None:
        return protobuf.types.find(name)
    return protobuf.types.only()


def _behind_path(data: bytes) -> bytes | None:
    if data[:1] != b"\x00" or len(data) < HEADER:
        return None
    return data[message_path(data, HEADER)[1] :]


def _of_message(data: bytes, protobuf: ProtobufSchema, message: Message) -> bytes:
    """The bytes after the header, if it names the message."""
    number_of(data, "Protobuf")
    path, at = message_path(data, HEADER)
    there = protobuf.types.at(path)
    if there is not message:
        raise DecodingError(f"it is a message {there.name}, but the columns are those of {message.name}")
    return data[at:]
