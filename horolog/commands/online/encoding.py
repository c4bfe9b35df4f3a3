"""Encodes the keys and values that a command sends, by a schema of a file or of a registry.

Without these options nothing is encoded, and no encoder is imported.
"""

import argparse
from typing import TYPE_CHECKING, NamedTuple

from horolog.commands.arguments import whole_number
from horolog.commands.errors import UsageError
from horolog.commands.online.decoding import registry_access

if TYPE_CHECKING:
    from collections.abc import Callable

    from horolog.client.decoding.registry import RegisteredSchema, Registry
    from horolog.client.encoding import SchemaEncoder
    from horolog.commands.online.record_text import Line


def add_encoding(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("encoding")
    group.add_argument(
        "--schema",
        metavar="FILE",
        help="the schema of values (.avsc, .proto or a Protobuf descriptor set); values are written without a schema id",
    )
    message = "the message type of a Protobuf schema, for {} (default: the first of the file)"
    group.add_argument("--message", metavar="NAME", help=message.format("values"))
    group.add_argument("--subject", metavar="NAME", help="the subject of values (default with --registry: TOPIC-value)")
    group.add_argument("--schema-id", type=whole_number, metavar="N", help="the id of the schema of values")
    group.add_argument("--key-schema", metavar="FILE", help="the schema of keys")
    group.add_argument("--key-message", metavar="NAME", help=message.format("keys"))
    group.add_argument("--key-subject", metavar="NAME", help="the subject of keys")
    group.add_argument("--key-schema-id", type=whole_number, metavar="N", help="the id of the schema of keys")
    group.add_argument("--registry", metavar="URL", help="the schema registry (default: `registry` of the profile)")


async def encoders_of(arguments: argparse.Namespace) -> "tuple[SchemaEncoder | None, SchemaEncoder | None]":
    """The encoders of keys and of values; None: they are sent as they are. Raises UsageError."""
    usual = f"{arguments.topic}-value" if arguments.registry is not None else None
    subject = arguments.subject or (usual if arguments.schema is None and arguments.schema_id is None else None)
    _check_one(arguments, "")
    _check_one(arguments, "key-")
    _check_registry(arguments)
    of_keys = _Schema(arguments.key_schema, arguments.key_subject, arguments.key_schema_id, arguments.key_message)
    keys = await _encoder(arguments, of_keys, "--key-")
    of_values = _Schema(arguments.schema, subject, arguments.schema_id, arguments.message)
    return keys, await _encoder(arguments, of_values, "--")


def _check_one(arguments: argparse.Namespace, prefix: str) -> None:
    """Refuse several schemas for one part of the record."""
    options = [f"{prefix}{name}" for name in ("schema", "subject", "schema-id")]
    given = [f"--{one}" for one in options if getattr(arguments, one.replace("-", "_")) is not None]
    if len(given) > 1:
        raise UsageError(f"{given[0]} and {given[1]} both name a schema", "give only one of them")


def _check_registry(arguments: argparse.Namespace) -> None:
    """A registry that no option uses would suggest that values get an id."""
    uses_it = (arguments.subject, arguments.schema_id, arguments.key_subject, arguments.key_schema_id)
    if arguments.registry is not None and arguments.schema is not None and uses_it == (None,) * 4:
        raise UsageError(
            "--registry has no effect beside --schema", "give --subject or --schema-id instead of --schema"
        )


class _Schema(NamedTuple):
    """How the options name a schema."""

    file: str | None
    subject: str | None
    number: int | None
    message: str | None


async def _encoder(arguments: argparse.Namespace, named: _Schema, prefix: str) -> "SchemaEncoder | None":
    if named[:3] == (None, None, None):
        if named.message is not None:
            raise UsageError(
                f"{prefix}message needs a schema", f"give {prefix}schema, {prefix}subject or {prefix}schema-id"
            )
        return None
    from horolog.client.decoding import DecodingError
    from horolog.client.encoding import SchemaEncoder, encoder_of_file

    try:
        if named.file is not None:
            return encoder_of_file(named.file, named.message)
        registered = await _registered(_registry(arguments), named.subject, named.number)
        return SchemaEncoder(registered, named.message)
    except DecodingError as error:
        raise UsageError(str(error)) from error


def _registry(arguments: argparse.Namespace) -> "Registry":
    from horolog.client.decoding.registry import Registry

    access = registry_access(arguments)
    if access is None:
        raise UsageError("a subject or an id of a schema needs a registry", "give --registry URL")
    return Registry(access)


async def _registered(registry: "Registry", subject: str | None, number: int | None) -> "RegisteredSchema":
    return await (registry.schema(number) if number is not None else registry.version(subject or ""))


def encoding(
    read: "Callable[[bytes], Line]", keys: "SchemaEncoder | None", values: "SchemaEncoder | None"
) -> "Callable[[bytes], Line]":
    """The reader of lines, with encoded keys and values. What does not fit its schema is a RecordTextError."""
    if keys is None and values is None:
        return read
    from horolog.client.encoding import EncodingError
    from horolog.commands.online.record_text import RecordTextError

    def encoded(text: bytes) -> "Line":
        line = read(text)
        try:
            key = line.key if keys is None else keys.encode(line.key)
            value = line.value if values is None else values.encode(line.value)
        except EncodingError as error:
            raise RecordTextError(str(error)) from error
        return line._replace(key=key, value=value)

    return encoded
