"""Decodes the records that a command shows, leaves out those that `--where` does not select, and writes the rest.

Without these options nothing is decoded, and no decoder is imported.
"""

import argparse
from collections import Counter
from typing import TYPE_CHECKING, Any

from horolog.commands.console import Console
from horolog.commands.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from horolog.client.decoding import Decoded, Decoder, RegistryAccess
    from horolog.client.decoding.where import Where
    from horolog.client.values.types import ConsumerRecord

    Writer = Callable[[ConsumerRecord], bytes]
    DecodedWriter = Callable[[ConsumerRecord, Decoded], bytes]

FORMATS = ("auto", "text", "json", "avro", "protobuf", "msgpack", "hex")
"""The same as in `horolog.client.decoding`, which is not imported for a help page."""
MOST_WARNINGS = 5
MOST_REASONS = 1000
"""At most this many different reasons are kept: most contain a position in the bytes."""


def add_decoding(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("decoding")
    group.add_argument(
        "--where",
        metavar="EXPR",
        help="only records for which this is true: \"value.customer.id = 7 and headers.trace ~ '^7f'\"",
    )
    group.add_argument(
        "--value-format", choices=FORMATS, help="the format of values (default: auto if a decoding option is given)"
    )
    group.add_argument("--key-format", choices=FORMATS, help="the format of keys (default: auto)")
    group.add_argument(
        "--schema", metavar="FILE", help="the schema of values: .avsc, .proto, or a Protobuf descriptor set"
    )
    group.add_argument("--message", metavar="NAME", help="the message type in the .proto file, for values")
    group.add_argument("--key-schema", metavar="FILE", help="the schema of keys")
    group.add_argument("--key-message", metavar="NAME", help="the message type in the .proto file, for keys")
    group.add_argument("--registry", metavar="URL", help="the schema registry (default: `registry` of the profile)")


class Lens:
    """Decodes and filters records; not a dataclass, since every help page would wait for that module."""

    def __init__(
        self,
        where: "Where | None",
        decoder: "Decoder | None",
        warn: "Callable[[str], None]",
        *,
        shows_decoded: bool,
    ) -> None:
        self.where = where
        self.decoder = decoder
        self.warn = warn
        self.shows_decoded = shows_decoded
        self.problems: Counter[str] = Counter()
        """How often each reason prevented decoding."""

    async def decoded(self, record: "ConsumerRecord") -> "tuple[bool, Decoded | None]":
        """Whether the record is wanted, and the decoded record if it is to be shown."""
        found = None
        if self.decoder is not None:
            found = await self.decoder.decode(record)
            if found.key_problem is not None or found.value_problem is not None:
                self._note(record, found)
        return self.where is None or self.where(record, found), found if self.shows_decoded else None

    async def line(
        self, record: "ConsumerRecord", write: "Writer", write_decoded: "DecodedWriter | None"
    ) -> bytes | None:
        """The record as output; None if it is not wanted."""
        wanted, decoded = await self.decoded(record)
        if not wanted:
            return None
        return write(record) if decoded is None or write_decoded is None else write_decoded(record, decoded)

    def _note(self, record: "ConsumerRecord", found: "Decoded") -> None:
        for name, problem in (("key", found.key_problem), ("value", found.value_problem)):
            if problem is not None:
                if problem not in self.problems and len(self.problems) < MOST_WARNINGS:
                    self.warn(
                        f"the {name} of {record.topic}-{record.partition}@{record.offset} could not be decoded: {problem}"
                    )
                known = problem in self.problems or len(self.problems) < MOST_REASONS
                self.problems[problem if known else "other reasons"] += 1

    def report(self) -> None:
        """Report how many could not be decoded, if more than were warned about."""
        total = sum(self.problems.values())
        if total > min(len(self.problems), MOST_WARNINGS):
            self.warn(f"{total} keys and values could not be decoded, for {_reasons(len(self.problems))}")


def _reasons(count: int) -> str:
    return "the reason above" if count == 1 else f"{count} reasons"


def lens_of(arguments: argparse.Namespace, console: Console) -> Lens | None:
    """None if nothing is to be decoded or left out. Raises UsageError."""
    access = registry_access(arguments)
    shows = access is not None or any(
        getattr(arguments, name) is not None
        for name in ("value_format", "key_format", "schema", "message", "key_schema", "key_message")
    )
    where = _where(arguments, console)
    if where is None and not shows:
        return None
    decodes = shows or (where is not None and where.needs_decoding)
    return Lens(where, decoder_of(arguments, access) if decodes else None, console.warn, shows_decoded=shows)


def decoder_of(arguments: argparse.Namespace, access: "RegistryAccess | None") -> "Decoder":
    from horolog.client.decoding import Decoder, DecodingError, Options

    try:
        return Decoder(
            Options(
                arguments.value_format or "auto",
                arguments.key_format or "auto",
                arguments.schema,
                arguments.message,
                access,
                arguments.key_schema,
                arguments.key_message,
            )
        )
    except DecodingError as error:
        raise UsageError(str(error)) from error


def registry_access(arguments: argparse.Namespace) -> "RegistryAccess | None":
    """The registry of the command line, or of the profile."""
    settings = arguments.client_settings
    if arguments.registry is None and not any("registry" in name for name in settings):
        return None
    from horolog.client.decoding.registry_access import RegistryAccess, RegistryUrlError

    try:
        return RegistryAccess.of(settings, arguments.registry, max(arguments.timeout, 1))
    except RegistryUrlError as error:
        raise UsageError(f"--registry: {error}" if arguments.registry else str(error)) from error


def _where(arguments: argparse.Namespace, console: Console) -> "Where | None":
    if arguments.where is None:
        return None
    from horolog.client.decoding.where import WhereError, compile_where

    try:
        return compile_where(arguments.where, console.now_ms(), console.zone)
    except WhereError as error:
        raise UsageError(f"--where: {error}") from error


# -- writing


def in_text(record: "ConsumerRecord", decoded: "Decoded") -> "ConsumerRecord":
    """The record with its decoded key and value as text."""
    key = None if record.key is None else decoded.key_text.encode(errors="surrogateescape")
    value = None if record.value is None else decoded.value_text.encode(errors="surrogateescape")
    return record._replace(key=key, value=value)


def as_text(write: "Writer") -> "DecodedWriter":
    """Wrap a writer of records into one that writes their decoded keys and values."""
    return lambda record, decoded: write(in_text(record, decoded))


def in_json(record: "ConsumerRecord", decoded: "Decoded") -> dict[str, Any]:
    """The record with decoded values instead of text, and how they were read."""
    from horolog.client.decoding import plain
    from horolog.commands.online.record_text import as_json

    found = as_json(record._replace(key=None, value=None))
    found |= {"key": plain(decoded.key), "value": plain(decoded.value)}
    for name in ("key_format", "value_format", "key_schema", "value_schema", "key_problem", "value_problem"):
        said = getattr(decoded, name)
        if said is not None:
            found[name] = said
    return found


def json_writer(record: "ConsumerRecord", decoded: "Decoded") -> bytes:
    from horolog.commands.online.record_text import line_of

    return line_of(in_json(record, decoded))
