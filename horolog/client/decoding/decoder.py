"""Decodes keys and values of records, each by its look, a format, a local schema or a registry's, as requested.

Clients of a registry write a zero byte and the id of a schema in four bytes; for Protobuf the place of the message in its file
follows. `auto` looks such bytes up in the registry if there is one; others are read by the schema file if one is given,
else JSON objects and lists become values, and the rest stays text, or hexadecimal digits.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from horolog.client.decoding import json_text
from horolog.client.decoding.registry_access import RegistryAccess
from horolog.client.decoding.values import DecodingError, plain_text, text_of
from horolog.client.values.types import ConsumerRecord

if TYPE_CHECKING:
    from horolog.client.decoding.protobuf import ProtobufSchema
    from horolog.client.decoding.registry import RegisteredSchema, Registry

FORMATS: Final = ("auto", "text", "json", "avro", "protobuf", "msgpack", "hex")
MAGIC: Final = 0
HEADER: Final = 5
MOST_SCHEMA_BYTES: Final = 10 << 20
DESCRIPTORS: Final = frozenset({".desc", ".pb", ".bin", ".fds"})
"""How names of descriptor sets of Protobuf end."""
_KINDS: Final = {"AVRO": "avro", "PROTOBUF": "protobuf", "JSON": "json"}

Read = Callable[[bytes], Any]


@dataclass(frozen=True, slots=True)
class Options:
    """How to decode."""

    value_format: str = "auto"
    key_format: str = "auto"
    schema_file: str | None = None
    """Of values: a .avsc, a .proto or a set of descriptors; a .json is Avro, too."""
    message: str | None = None
    """Of a Protobuf file with several."""
    registry: RegistryAccess | None = None
    key_schema_file: str | None = None
    key_message: str | None = None


class Part(NamedTuple):
    """A key or a value, decoded."""

    value: Any
    format: str
    """The format as which it was read; `text` or `hex` if that failed."""
    schema: str | None = None
    problem: str | None = None


_NULL = Part(None, "null")


class Decoded(NamedTuple):
    """A record's key and value, and how they were decoded; a problem is a sentence, and the value is then text or hexadecimal digits."""

    key: Any
    value: Any
    key_format: str
    value_format: str
    key_schema: str | None
    value_schema: str | None
    key_problem: str | None
    value_problem: str | None

    @property
    def key_text(self) -> str:
        """The key as readable text, on one line unless the text itself has several."""
        return plain_text(self.key)

    @property
    def value_text(self) -> str:
        return plain_text(self.value)


class _LocalSchema(NamedTuple):
    format: str
    name: str
    read: Read


class Decoder:
    """Decodes one record after the other; schemas are read once. Raises DecodingError for contradictory options."""

    def __init__(self, options: Options = Options()) -> None:
        self.options = options
        self.registry = None if options.registry is None else _registry(options.registry)
        self._readers: dict[tuple[int, str], Callable[[bytes], tuple[Any, str]]] = {}
        self._unusable: dict[int, str] = {}
        self._of_values = self._local_schema("value", options.value_format, options.schema_file, options.message)
        self._of_keys = self._local_schema("key", options.key_format, options.key_schema_file, options.key_message)

    def _local_schema(self, name: str, wanted: str, file: str | None, message: str | None) -> _LocalSchema | None:
        """The schema of a file; None if none is given, and none is needed."""
        if wanted not in FORMATS:
            raise DecodingError(f"there is no format {wanted!r}; the formats are {', '.join(FORMATS)}")
        if file is not None:
            local = _local_schema(Path(file), message, wanted)
            if wanted not in {"auto", local.format}:
                raise DecodingError(f"{file} is a schema of {local.format}, but the {name}'s format is {wanted}")
            return local
        if message is not None:
            raise DecodingError(f"a message is given for the {name}, but no schema file")
        if wanted in {"avro", "protobuf"} and self.registry is None:
            raise DecodingError(f"the {name}'s format {wanted} needs a schema: give a file or a registry")
        return None

    async def decode(self, record: ConsumerRecord) -> Decoded:
        """Never raises for the content of a record."""
        options = self.options
        key = _at_once(record.key, options.key_format, self._of_keys)
        if key is None:
            key = await self.part(record.key, options.key_format, self._of_keys)
        value = _at_once(record.value, options.value_format, self._of_values)
        if value is None:
            value = await self.part(record.value, options.value_format, self._of_values)
        return Decoded(
            key.value, value.value, key.format, value.format, key.schema, value.schema, key.problem, value.problem
        )

    async def part(self, data: bytes | None, wanted: str, local: _LocalSchema | None = None) -> Part:
        if data is None:
            return _NULL
        if wanted == "hex":
            return Part(data.hex(), "hex")
        if wanted == "text":
            return _as_text(data)
        try:
            return await self._by_schema(data, wanted, local) or _by_format(data, wanted)
        except DecodingError as error:
            return _as_text(data)._replace(problem=str(error))

    async def _by_schema(self, data: bytes, wanted: str, local: _LocalSchema | None) -> Part | None:
        """None if no schema is requested, or the bytes name none."""
        framed = len(data) >= HEADER and data[0] == MAGIC
        if local is not None:
            return _by_file(data, local, framed=framed)
        if wanted == "msgpack" or not framed:
            if wanted in {"avro", "protobuf"}:
                raise DecodingError(
                    f"not {wanted} of a registry: it does not begin with a zero byte and the id of a schema"
                )
            return None
        number = int.from_bytes(data[1:HEADER], "big")
        if self.registry is None:
            return _without_registry(data, wanted, number)
        schema = await self.registry.schema(number)
        kind = _KINDS.get(schema.kind)
        if kind is None:
            raise DecodingError(f"schema {number} has the type {schema.kind}, which is not supported")
        if wanted not in {"auto", kind}:
            raise DecodingError(f"schema {number} has the type {schema.kind}, but the format is {wanted}")
        value, name = self._read_by(schema, data)
        return Part(value, kind, f"{name} ({number})" if name else str(number))

    def _read_by(self, schema: "RegisteredSchema", data: bytes) -> tuple[Any, str]:
        """The value, and the name of its type."""
        if schema.id in self._unusable:
            raise DecodingError(self._unusable[schema.id])
        key = (schema.id, schema.kind)
        reader = self._readers.get(key)
        if reader is None:
            try:
                reader = _READERS[schema.kind](schema)
            except DecodingError as error:
                self._unusable[schema.id] = f"schema {schema.id} of the registry cannot be used: {error}"
                raise DecodingError(self._unusable[schema.id]) from error
            self._readers[key] = reader
        return reader(data)


def _registry(access: RegistryAccess) -> "Registry":
    from horolog.client.decoding.registry import Registry

    return Registry(access)


def _as_text(data: bytes) -> Part:
    text = text_of(data)
    return Part(data.hex(), "hex") if text is None else Part(text, "text")


def _at_once(data: bytes | None, wanted: str, local: _LocalSchema | None) -> Part | None:
    """Decode without awaiting, as most keys and values are: no schema is given, and they name none. None for the others."""
    if data is None:
        return _NULL
    return None if wanted != "auto" or local is not None or data[:1] == b"\0" else _by_its_look(data)


def _by_its_look(data: bytes) -> Part:
    if json_text.looks_like_it(data):
        try:
            return Part(json_text.read(data), "json")
        except DecodingError:  # it only looked like JSON
            return _as_text(data)
    return _as_text(data)


def _by_format(data: bytes, wanted: str) -> Part:
    if wanted == "msgpack":
        from horolog.client.decoding import msgpack

        return Part(msgpack.read(data), "msgpack")
    if wanted == "json":
        return Part(json_text.read(data), "json")
    return _by_its_look(data)


def _without_registry(data: bytes, wanted: str, number: int) -> Part:
    """Read JSON after the id, which needs no schema."""
    try:
        return Part(json_text.read(data[HEADER:]), "json", str(number))
    except DecodingError as error:
        if wanted == "json":
            raise
        raise DecodingError(f"it seems to have schema {number} of a registry, but no registry is given") from error


def _by_file(data: bytes, local: _LocalSchema, *, framed: bool) -> Part:
    """Read the bytes by the schema; failing that, those after the header of a registry's clients, or after Avro's own."""
    try:
        return Part(local.read(data), local.format, local.name)
    except DecodingError:
        rest = _behind_head(data, local.format, framed=framed)
        if rest is None:
            raise
        return Part(local.read(rest), local.format, local.name)


def _behind_head(data: bytes, kind: str, *, framed: bool) -> bytes | None:
    if kind == "avro" and data[:2] == b"\xc3\x01":
        return data[10:]
    if not framed:
        return None
    if kind == "protobuf":
        from horolog.client.decoding.protobuf import message_path

        return data[message_path(data, HEADER)[1] :]
    return data[HEADER:]


# -- schemas of a registry


def _json_reader(_: "RegisteredSchema") -> Callable[[bytes], tuple[Any, str]]:
    return lambda data: (json_text.read(data[HEADER:]), "")


def _avro_reader(schema: "RegisteredSchema") -> Callable[[bytes], tuple[Any, str]]:
    from horolog.client.decoding.avro import AvroSchema

    avro = AvroSchema(schema.text, schema.references)
    return lambda data: (avro.read(data[HEADER:]), avro.name)


def _protobuf_reader(schema: "RegisteredSchema") -> Callable[[bytes], tuple[Any, str]]:
    from horolog.client.decoding.protobuf import ProtobufSchema, message_path

    protobuf = ProtobufSchema.of_text(schema.text, "its text", schema.references.get)

    def read(data: bytes) -> tuple[Any, str]:
        path, at = message_path(data, HEADER)
        message = protobuf.types.at(path)
        return protobuf.read(data[at:], message), message.name

    return read


_READERS: Final = {"AVRO": _avro_reader, "PROTOBUF": _protobuf_reader, "JSON": _json_reader}


# -- schemas of files


def _local_schema(path: Path, message: str | None, wanted: str) -> _LocalSchema:
    data = schema_bytes(path)
    if path.suffix == ".proto" or (wanted == "protobuf" and path.suffix not in DESCRIPTORS):
        return _of_message(_proto_file(path, data), message)
    if path.suffix in {".avsc", ".json"} or wanted == "avro" or data[:1] in {b"{", b"["}:
        from horolog.client.decoding.avro import AvroSchema

        if message is not None:
            raise DecodingError(f"a message type is given, but {path} is an Avro schema")
        avro = AvroSchema(schema_text(path, data))
        return _LocalSchema("avro", avro.name, avro.read)
    return _of_message(protobuf_of_file(path, data), message)


def protobuf_of_file(path: Path, data: bytes) -> "ProtobufSchema":
    """The schema of a .proto file or of a descriptor set. Raises DecodingError."""
    from horolog.client.decoding.protobuf import ProtobufSchema

    if path.suffix == ".proto":
        return _proto_file(path, data)
    try:
        return ProtobufSchema.of_descriptors(data, str(path))
    except DecodingError as error:
        raise DecodingError(f"{path} cannot be read as a Protobuf descriptor set: {error}") from error


def schema_bytes(path: Path) -> bytes:
    """The content of a schema file. Raises DecodingError, as `schema_text` does."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_SCHEMA_BYTES + 1)
    except OSError as error:
        raise DecodingError(f"{path}: {error.strerror or error}") from error
    if len(data) > MOST_SCHEMA_BYTES:
        raise DecodingError(f"{path} is larger than {MOST_SCHEMA_BYTES >> 20} MiB: it is not a schema")
    return data


def schema_text(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DecodingError(f"{path} is not UTF-8 text") from error


def _proto_file(path: Path, data: bytes) -> "ProtobufSchema":
    """Imports are looked up from the file's folder and those above it, since any of them may be the root."""
    from horolog.client.decoding.protobuf import ProtobufSchema

    def imported(name: str) -> str | None:
        if ".." in Path(name).parts or Path(name).is_absolute():
            return None
        places = [folder / name for folder in path.absolute().parents]
        found = next((place for place in places if place.is_file()), None)
        return None if found is None else schema_text(found, schema_bytes(found))

    return ProtobufSchema.of_text(schema_text(path, data), str(path), imported)


def _of_message(schema: Any, name: str | None) -> _LocalSchema:
    message = schema.types.only() if name is None else schema.types.find(name)
    return _LocalSchema("protobuf", message.name, lambda data: schema.read(data, message))
