"""Reads a line of Kafka's console producer as a record, pure: `parse.key`, `parse.headers`, their separators, `null.marker`.

[headers TAB] [key TAB] value          headers: name:value,name:value
"""

from collections.abc import Mapping

from horolog.client.cli.kafka_scripts.options import is_true
from horolog.commands.errors import UsageError
from horolog.commands.online.record_text import Line, RecordTextError

KNOWN = frozenset(
    {
        *("parse.key", "key.separator", "parse.headers", "headers.delimiter", "headers.separator"),
        *("headers.key.separator", "ignore.error", "null.marker"),
    }
)


class LineReader:
    def __init__(self, given: Mapping[str, str]) -> None:
        unknown = sorted(set(given) - KNOWN - {"topic"})
        if unknown:
            raise UsageError(f"there is no --property {unknown[0]}", f"use {', '.join(sorted(KNOWN))}")
        own = dict(given)
        self.ignores_errors = is_true(own, "ignore.error")
        self._parses_key = is_true(own, "parse.key")
        self._parses_headers = is_true(own, "parse.headers")
        self._key_separator = own.get("key.separator", "\t").encode()
        self._headers_delimiter = own.get("headers.delimiter", "\t").encode()
        self._headers_separator = own.get("headers.separator", ",").encode()
        self._header_separator = own.get("headers.key.separator", ":").encode()
        self._null = own["null.marker"].encode() if own.get("null.marker") else None

    def read(self, line: bytes) -> Line:
        """Raises RecordTextError."""
        headers: tuple[tuple[bytes, bytes | None], ...] = ()
        key: bytes | None = None
        if self._parses_headers:
            text, line = self._split(line, self._headers_delimiter, "headers")
            headers = () if text is None or text == self._null else tuple(map(self._header, self._parts(text)))
        if self._parses_key:
            key, line = self._split(line, self._key_separator, "key")
        return Line(self._or_null(line), None if key is None else self._or_null(key), headers)

    def _split(self, line: bytes, separator: bytes, what: str) -> tuple[bytes | None, bytes]:
        before, found, behind = line.partition(separator)
        if found:
            return before, behind
        if self.ignores_errors:
            return None, line
        raise RecordTextError(f"No {what} separator found: there is no {separator.decode()!r} in it")

    def _parts(self, text: bytes) -> list[bytes]:
        return text.split(self._headers_separator) if text else []

    def _header(self, text: bytes) -> tuple[bytes, bytes | None]:
        name, found, value = text.partition(self._header_separator)
        if not found and not self.ignores_errors:
            raise RecordTextError(f"there is no {self._header_separator.decode()!r} in header {text!r}")
        return name, self._or_null(value) if found else None

    def _or_null(self, data: bytes) -> bytes | None:
        return None if data == self._null else data
