"""Reads a schema as Spark writes it, `id BIGINT, tags ARRAY<STRING>, at STRUCT<lat: DOUBLE>`, into Arrow's type; without a JVM."""

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from horolog.pipeline.base.positions import OptionError

TIMESTAMP = pa.timestamp("us", tz="UTC")
LOCAL_TIMESTAMP = pa.timestamp("us")
_SIMPLE = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "byte": pa.int8(),
    "smallint": pa.int16(),
    "short": pa.int16(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "real": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": TIMESTAMP,
    "timestamp_ltz": TIMESTAMP,
    "timestamp_ntz": LOCAL_TIMESTAMP,
}
_DECIMALS = ("decimal", "dec", "numeric")
_MOST_DIGITS = 38
_DEEPEST = 50
_TOKEN = re.compile(r"\s*(?:`((?:[^`]|``)*)`|(\w+)|('(?:[^'\\]|\\.|'')*')|([<>(),:])|(\S))")


def parse(option: str, text: str) -> pa.DataType:
    """The struct of the columns, each of which may be null. Raises OptionError."""
    parser = _Parser(option, text)
    if parser.is_lone_struct():
        found = parser.kind()
        parser.end()
        return found
    fields = parser.fields("")
    if not fields:
        raise OptionError(f"{option}: the schema has no column")
    return pa.struct(fields)


class _Parser:
    """Tokens, one after the other: (word, whether it was in backquotes)."""

    def __init__(self, option: str, text: str) -> None:
        self._option = option
        self._tokens = [_token(found) for found in _TOKEN.finditer(text)]
        self._at = 0
        self._depth = 0

    def _peek(self) -> str:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else ""

    def _next(self) -> tuple[str, bool]:
        if self._at == len(self._tokens):
            raise self._fault("it ends too early")
        self._at += 1
        return self._tokens[self._at - 1]

    def _take(self, wanted: str) -> None:
        found = self._next()
        if found[0] != wanted or found[1]:
            raise self._fault(f"{wanted!r} was expected, found {found[0]!r}")

    def _fault(self, why: str) -> OptionError:
        return OptionError(
            f"{self._option} is not a schema of Spark (id BIGINT, name STRING, tags ARRAY<STRING>): {why}"
        )

    def fields(self, closing: str) -> list[Any]:
        """Names and types up to the closing mark, or to the end of the text."""
        found: list[Any] = []
        while self._peek() != closing:
            if found:
                self._take(",")
            name, quoted = self._next()
            if not quoted and not name.replace("_", "a").isalnum():
                raise self._fault(f"{name!r} is not a name of a column")
            if any(one.name.lower() == name.lower() for one in found):
                raise self._fault(f"it has two columns {name}")
            if self._peek() == ":":
                self._next()
            found.append(pa.field(name, self.kind()))
            self._pass_remarks()
        if closing:
            self._take(closing)
        return found

    def is_lone_struct(self) -> bool:
        """`STRUCT<...>` instead of a list of columns."""
        first_two = [word.lower() for word, quoted in self._tokens[:2] if not quoted]
        return first_two == ["struct", "<"]

    def end(self) -> None:
        if self._at < len(self._tokens):
            raise self._fault(f"{self._peek()!r} is left over")

    def _pass_remarks(self) -> None:
        """`NOT NULL` and comments have no effect: a broken value is null."""
        if self._peek().lower() == "not":
            self._next()
            if self._next()[0].lower() != "null":
                raise self._fault("NOT is followed by NULL")
        if self._peek().lower() == "comment":
            self._next()
            self._next()

    def kind(self) -> pa.DataType:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._fault(f"it nests deeper than {_DEEPEST}")
        word = self._next()[0].lower()
        makers: dict[str, Callable[[], pa.DataType]] = {"array": self._array, "map": self._map, "struct": self._struct}
        if word in makers:
            made = makers[word]()
        elif word in _DECIMALS:
            made = self._decimal()
        elif word in _SIMPLE:
            made = _SIMPLE[word]
        else:
            raise self._fault(f"there is no type {word!r}")
        self._depth -= 1
        return made

    def _array(self) -> pa.DataType:
        self._take("<")
        item = self.kind()
        self._take(">")
        return pa.list_(item)

    def _map(self) -> pa.DataType:
        self._take("<")
        key = self.kind()
        if key != pa.string():
            raise self._fault("keys of maps are STRING")
        self._take(",")
        value = self.kind()
        self._take(">")
        return pa.map_(key, value)

    def _struct(self) -> pa.DataType:
        self._take("<")
        return pa.struct(self.fields(">"))

    def _decimal(self) -> pa.DataType:
        if self._peek() != "(":
            return pa.decimal128(10, 0)
        self._take("(")
        precision, scale = self._number(), 0
        if self._peek() == ",":
            self._next()
            scale = self._number()
        self._take(")")
        if not 1 <= precision <= _MOST_DIGITS or scale > precision:
            raise self._fault(f"a decimal has 1 to {_MOST_DIGITS} digits, including those after the point")
        return pa.decimal128(precision, scale)

    def _number(self) -> int:
        word = self._next()[0]
        if not word.isascii() or not word.isdigit():
            raise self._fault(f"{word!r} is not a number of digits")
        return int(word)


def _token(found: re.Match[str]) -> tuple[str, bool]:
    quoted = found[1]
    if quoted is not None:
        return quoted.replace("``", "`"), True
    return found[2] or found[3] or found[4] or found[5], False
