"""Small objects that people may look at: a line of JSON with a checksum, and a body of bytes where a kind has one.

    <crc32c of the rest of the line, 8 hex digits> SPACE <JSON object> NEWLINE <body>

The object has `format` (1, or the one that its kind says), `kind`, `nonce` (32 hex digits, by which a writer knows its own bytes again) and the fields of its kind. With
a body it has `bytes` and `crc32c` (a number) of it; without one the line is all there is.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from crc32c import crc32c

from horolog.broker.bucket.names import NONCE_SIZE

FORMAT = 1
MAX_LINE_BYTES = 1 << 20
"""A longer line is refused unread."""

_SUM_SIZE = 8
_ID_SIZE = 16


class FormatError(ValueError):
    """The bytes are no object of ours, or are damaged."""


class NewerFormat(FormatError):
    """A later release wrote the object."""


class Sealed(NamedTuple):
    """The content of an object."""

    kind: str
    nonce: bytes
    fields: Mapping[str, Any]
    body: bytes = b""
    format: int = FORMAT


def encode(sealed: Sealed) -> bytes:
    if len(sealed.nonce) != NONCE_SIZE:
        raise ValueError(f"a nonce has {NONCE_SIZE} bytes, not {len(sealed.nonce)}")
    content = {"format": sealed.format, "kind": sealed.kind, "nonce": sealed.nonce.hex(), **sealed.fields}
    if sealed.body:
        content |= {"bytes": len(sealed.body), "crc32c": crc32c(sealed.body)}
    text = json.dumps(content, ensure_ascii=True, separators=(", ", ": ")).encode("ascii")
    if _SUM_SIZE + len(text) + 2 > MAX_LINE_BYTES:
        raise ValueError(f"a line of {len(text)} bytes is too long")
    return b"%08x %s\n%s" % (crc32c(text), text, sealed.body)


def decode(data: bytes, kind: str, newest: int = FORMAT) -> Sealed:
    """The content of an object of this kind, in a format up to the newest one that this release knows; raises FormatError."""
    line, newline, body = data[:MAX_LINE_BYTES].partition(b"\n")
    content = _content(line) if newline else None
    if content is None:
        raise FormatError("no line with a right checksum")
    found = content.get("format")
    if type(found) is not int or not FORMAT <= found <= newest:
        raise NewerFormat(f"format {found!r}; this release knows {newest}")
    if content.get("kind") != kind:
        raise FormatError(f"a {content.get('kind')!r}, and no {kind}")
    body = data[len(line) + 1 :]
    announced = content.pop("bytes", 0), content.pop("crc32c", 0)
    if announced != (len(body), crc32c(body) if body else 0):
        raise FormatError(f"a body of {len(body)} bytes that is not the one announced")
    fields = {name: value for name, value in content.items() if name not in {"format", "kind", "nonce"}}
    return Sealed(kind, parse_nonce(content.get("nonce")), fields, body, found)


def _content(line: bytes) -> dict[str, Any] | None:
    checksum, space, text = line[:_SUM_SIZE], line[_SUM_SIZE : _SUM_SIZE + 1], line[_SUM_SIZE + 1 :]
    if space != b" " or checksum != b"%08x" % crc32c(text):
        return None
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def parse_nonce(shown: object) -> bytes:
    """Raises FormatError."""
    if isinstance(shown, str) and len(shown) == 2 * NONCE_SIZE and shown.isascii():
        try:
            nonce = bytes.fromhex(shown)
        except ValueError:
            nonce = b""
        if nonce.hex() == shown:
            return nonce
    raise FormatError(f"{shown!r} is not a nonce")


def number_in(fields: Mapping[str, Any], name: str) -> int:
    """A field that is a whole number from 0; raises FormatError."""
    value = fields.get(name)
    if type(value) is not int or not 0 <= value < 2**63:
        raise FormatError(f"{name}: {value!r} is not a number")
    return value


def topic_id_in(fields: Mapping[str, Any]) -> bytes:
    """The topic id in the field of that name; raises FormatError."""
    shown = fields.get("topic")
    try:
        topic_id = bytes.fromhex(shown) if isinstance(shown, str) else b""
    except ValueError:
        topic_id = b""
    if len(topic_id) != _ID_SIZE or topic_id.hex() != shown:
        raise FormatError(f"{shown!r} is not a topic id")
    return topic_id
