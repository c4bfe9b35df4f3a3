"""Creates the readers of keys and values that options ask for: finds schemas in files, texts or the registry, once, on the driver."""

import asyncio
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path

from horolog.client.decoding.decoder import schema_bytes, schema_text
from horolog.client.decoding.registry import NotRegistered, Registry
from horolog.client.decoding.registry_access import RegistryAccess
from horolog.client.decoding.values import DecodingError
from horolog.pipeline.base.positions import OptionError
from horolog.pipeline.typed import ddl
from horolog.pipeline.typed.by_schema import DESCRIPTORS, AvroReader, ProtobufReader, SchemaText
from horolog.pipeline.typed.decoding import Decoding, EventTime
from horolog.pipeline.typed.options import PartOptions, TypedOptions
from horolog.pipeline.typed.readers import JsonReader, MsgpackReader, Reader, TextReader

_SUFFIXES = (".avsc", ".json", ".proto", ".ddl", ".desc", ".pb", ".fds", ".sql", ".txt")
_PROTO_DESCRIPTORS = (".desc", ".pb", ".fds")


class NoSchemaOfTopic(OptionError):
    """The registry has no schema for the keys or the values of the topic, or one of another format."""

    def __init__(self, part: str, said: str) -> None:
        super().__init__(f"registry: {said}")
        self.part = part


def prepare(options: TypedOptions, topics: Sequence[str], *, include_headers: bool) -> Decoding:
    """Raises OptionError. `topics` are the named ones, for the subjects of their schemas."""
    readers = {
        part.part: _reader(part, options.registry, topics) for part in (options.key, options.value) if part is not None
    }
    value = readers.get("value")
    event_time = None
    if options.time_field is not None and value is not None:
        event_time = EventTime.of(options.time_field, options.time_unit, value.kind)
    return Decoding(
        readers.get("key"),
        value,
        options.mode,
        event_time,
        options.dead_letters,
        include_headers,
        options.keeps_raw,
    )


def _reader(part: PartOptions, registry: RegistryAccess | None, topics: Sequence[str]) -> Reader:
    try:
        return _made(part, registry, topics)
    except DecodingError as error:
        where = f"{part.part}.schema" if part.schema is not None else "registry"
        raise OptionError(f"{where}: {error}") from error


def _made(part: PartOptions, registry: RegistryAccess | None, topics: Sequence[str]) -> Reader:
    if part.format == "string":
        return TextReader()
    option = f"{part.part}.schema"
    if part.format in {"json", "msgpack"}:
        kind = ddl.parse(option, _text_of(part.schema or ""))
        return JsonReader(kind) if part.format == "json" else MsgpackReader(kind)
    schema = _local(part) if part.schema is not None else _registered(part, registry, topics)
    if part.format == "avro":
        return AvroReader(schema, registry)
    return ProtobufReader(schema, part.message, headed=registry is not None)


def _registered(part: PartOptions, registry: RegistryAccess | None, topics: Sequence[str]) -> SchemaText:
    """The reader's schema: the named version, or the newest, of the topic's subject."""
    assert registry is not None, "checked with the options"
    subject = part.subject
    if subject is None:
        if len(topics) != 1:
            raise OptionError(
                f"set {part.part}.subject to choose the schema, because the read may have more than one topic"
            )
        subject = f"{topics[0]}-{part.part}"
    try:
        found = asyncio.run(Registry(registry).version(subject, part.version))
    except NotRegistered as error:
        raise NoSchemaOfTopic(part.part, str(error)) from error
    if found.kind.lower() != part.format:
        other = f"{subject} has the type {found.kind}, but {part.part}.format is {part.format}"
        raise NoSchemaOfTopic(part.part, other)
    return SchemaText(found.text, found.references)


def _local(part: PartOptions) -> SchemaText:
    given = part.schema or ""
    path = _file_of(given)
    if path is None:
        return SchemaText(given)
    if part.format == "protobuf" and path.suffix in _PROTO_DESCRIPTORS:
        return SchemaText(f"{DESCRIPTORS}{b64encode(schema_bytes(path)).decode()}")
    text = _text_in(path)
    return SchemaText(text, _imports(path, text) if part.format == "protobuf" else {})


def _imports(path: Path, text: str) -> dict[str, str]:
    """The files that a .proto file imports, and theirs: they travel to the tasks, which may not have them."""
    from horolog.client.decoding import proto_text

    found: dict[str, str] = {}
    waiting = list(proto_text.parse(text, str(path))["dependency"])
    while waiting:
        name = waiting.pop()
        place = _imported(path, name)
        if name in found or place is None:
            continue
        found[name] = _text_in(place)
        waiting += proto_text.parse(found[name], name)["dependency"]
    return found


def _imported(path: Path, name: str) -> Path | None:
    """From the file's folder, or one above it, as the root of the imports may be any of them."""
    if ".." in Path(name).parts or Path(name).is_absolute():
        return None
    return next((place for folder in path.absolute().parents if (place := folder / name).is_file()), None)


def _file_of(given: str) -> Path | None:
    """The file that is meant, if it is one: a name of a schema's file, or something that is there."""
    text = given.strip()
    if "\n" in text or len(text) > 1000 or set(text) & set("{<;"):
        return None
    path = Path(text.removeprefix("file:"))
    return path if text.startswith("file:") or path.suffix in _SUFFIXES or path.is_file() else None


def _text_of(given: str) -> str:
    path = _file_of(given)
    return given if path is None else _text_in(path)


def _text_in(path: Path) -> str:
    return schema_text(path, schema_bytes(path))
