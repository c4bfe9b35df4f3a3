"""A typed value becomes bytes by a schema of the registry, and such bytes become text that can be typed again."""

from typing import TYPE_CHECKING, NamedTuple

from horolog.client.decoding import DecodingError, plain_text
from horolog.console.visits import Refused, Visit

if TYPE_CHECKING:
    from horolog.client.encoding import SchemaEncoder

TYPED_FORMATS = frozenset({"avro", "json", "protobuf"})
"""The kinds of schemas by which a value can be encoded again."""
FIRST_MESSAGE = b"\0"
"""Behind the id: the first message of a Protobuf file, which is the one that an encoder takes."""
DIGITS_OF_AN_ID = 10


class Typed(NamedTuple):
    """A value as text, and the id of its schema; empty if it has none."""

    text: str
    schema: str = ""


async def encoder_of(visit: Visit, name: str) -> "SchemaEncoder | None":
    """The encoder for a subject's latest schema, or for that with an id; None without a name. Raises Refused."""
    if not name:
        return None
    from horolog.client.encoding import SchemaEncoder

    registry = visit.desk.decoder.registry
    if registry is None:
        raise Refused("this console has no schema registry; start it with --registry URL")
    try:
        return SchemaEncoder(await (registry.schema(int(name)) if _is_id(name) else registry.version(name)))
    except DecodingError as error:
        raise Refused(f"schema: {error}", field="schema") from error


def words_of(visit: Visit, name: str) -> list[str]:
    """The options of `horolog produce` for such a schema."""
    access = visit.desk.options.registry
    if not name or access is None:
        return []
    return ["--registry", access.name, "--schema-id" if _is_id(name) else "--subject", name]


async def typed(visit: Visit, content: bytes | None) -> Typed:
    """A value for the form. Raises Refused for bytes that are neither text nor of a schema that encodes."""
    part = await visit.desk.decoder.part(content, "auto")
    has_encoder = part.schema is not None and part.format in TYPED_FORMATS
    if content is not None and has_encoder and (part.format != "protobuf" or content[5:6] == FIRST_MESSAGE):
        return Typed(plain_text(part.value), str(int.from_bytes(content[1:5], "big")))
    try:
        return Typed("" if content is None else content.decode())
    except UnicodeDecodeError as error:
        raise Refused(
            "this record is neither text nor of the first message of a schema of the registry; it cannot be sent again from here",
            409,
        ) from error


def _is_id(name: str) -> bool:
    return name.isascii() and name.isdecimal() and len(name) <= DIGITS_OF_AN_ID
