"""Reads Avro by the writer's schema: the schema is compiled to functions, one per type, that take bytes and a position in them.

Logical types: decimals stay exact, instants are `Instant`, dates, times of day and local times are ISO 8601, durations an object. A union
is its branch's value alone. Items that take no bytes (nulls, empty records) are counted, since six bytes may claim a billion of them.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from json import JSONDecodeError, loads
from struct import Struct
from typing import Any
from uuid import UUID

from horolog.client.decoding.values import DEEPEST, DecodingError, Instant, clock, day, deeper_than

Read = Callable[[bytes, int], tuple[Any, int]]
"""From bytes and a position to the value there and the position after it."""

MOST_EMPTY_ITEMS = 10_000
LONGEST_DECIMAL = 1000
SINGLE_OBJECT = b"\xc3\x01"
"""Precedes a fingerprint of eight bytes, in the single-object encoding."""
_TOO_EARLY = "not Avro of this schema: it ends too early"
_FLOAT = Struct("<f")
_DOUBLE = Struct("<d")
_DURATION = Struct("<III")


class AvroSchema:
    """A compiled schema. Raises DecodingError.

    With `tagged` a value of a union with several non-null branches is the number of the branch and the value.
    """

    def __init__(self, text: str, references: Mapping[str, str] | None = None, *, tagged: bool = False) -> None:
        self._compiling = _Compiling(tagged=tagged)
        for name, other in (references or {}).items():
            self._compiling.compile(_parsed(other, f"the referenced schema {name}"))
        schema = _parsed(text, "the schema")
        self._read = self._compiling.compile(schema)
        self.name = _shown_name(schema)

    def read(self, data: bytes) -> Any:
        """Decode the bytes as one value. Raises DecodingError."""
        self._compiling.empty_items = 0
        try:
            value, end = self._read(data, 0)
        except IndexError as error:
            raise DecodingError(_TOO_EARLY) from error
        except RecursionError as error:
            raise DecodingError(f"the Avro nests deeper than {DEEPEST}") from error
        if end != len(data):
            raise DecodingError(f"not Avro of this schema: {len(data) - end} bytes are left over")
        if self._compiling.is_recursive and deeper_than(value, DEEPEST):
            raise DecodingError(f"the Avro nests deeper than {DEEPEST}")
        return value


def _parsed(text: str, what: str) -> Any:
    try:
        return loads(text)
    except JSONDecodeError as error:
        if text.strip().isidentifier():  # a primitive type without its quotes
            return text.strip()
        raise DecodingError(f"{what} is not JSON: {error.msg} at character {error.pos + 1}") from error
    except (RecursionError, ValueError) as error:
        raise DecodingError(f"{what} cannot be read") from error


def _shown_name(schema: Any) -> str:
    if isinstance(schema, dict):
        name = schema.get("name")
        if not isinstance(name, str):
            return _shown_name(schema.get("type"))
        space = schema.get("namespace")
        return name if "." in name or not isinstance(space, str) or not space else f"{space}.{name}"
    return "union" if isinstance(schema, list) else str(schema)


# -- numbers and texts


def _null(_: bytes, at: int) -> tuple[Any, int]:
    return None, at


def _boolean(data: bytes, at: int) -> tuple[Any, int]:
    if data[at] > 1:
        raise DecodingError("not Avro of this schema: a boolean is neither 0 nor 1")
    return data[at] == 1, at + 1


def _long(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    at += 1
    if byte < 128:
        return (byte >> 1) ^ -(byte & 1), at
    number = byte & 127
    shift = 7
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return (number >> 1) ^ -(number & 1), at
        shift += 7
        if shift > 63:
            raise DecodingError("not Avro of this schema: a number has more than ten bytes")


def _float(data: bytes, at: int) -> tuple[Any, int]:
    if at + 4 > len(data):
        raise IndexError
    return _FLOAT.unpack_from(data, at)[0], at + 4


def _double(data: bytes, at: int) -> tuple[Any, int]:
    if at + 8 > len(data):
        raise IndexError
    return _DOUBLE.unpack_from(data, at)[0], at + 8


def _bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = _long(data, at)
    if size < 0:
        raise DecodingError("not Avro of this schema: a length is negative")
    end = at + size
    if end > len(data):
        raise IndexError
    return data[at:end], end


def _string(data: bytes, at: int) -> tuple[Any, int]:
    found, at = _bytes(data, at)
    try:
        return found.decode(), at
    except UnicodeDecodeError as error:
        raise DecodingError("not Avro of this schema: a string is not UTF-8") from error


_PRIMITIVES: dict[str, Read] = {
    "null": _null,
    "boolean": _boolean,
    "int": _long,
    "long": _long,
    "float": _float,
    "double": _double,
    "bytes": _bytes,
    "string": _string,
}


# -- logical types


def _decimal(data: bytes, scale: int) -> Any:
    if len(data) > LONGEST_DECIMAL:
        return data
    sign, digits, _ = Decimal(int.from_bytes(data, "big", signed=True)).as_tuple()
    return Decimal((sign, digits, -scale))


def _uuid(value: Any) -> Any:
    return str(UUID(bytes=value)) if isinstance(value, bytes) else value


def _duration(value: bytes) -> Any:
    months, days, ms = _DURATION.unpack(value)
    return {"months": months, "days": days, "milliseconds": ms}


def _local(ns: int) -> str:
    return str(Instant(ns)).removesuffix("Z")


_LOGICAL: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("int", "date"): day,
    ("int", "time-millis"): lambda value: clock(value * 1_000_000),
    ("long", "time-micros"): lambda value: clock(value * 1000),
    ("long", "timestamp-millis"): Instant.of_ms,
    ("long", "timestamp-micros"): lambda value: Instant(value * 1000),
    ("long", "timestamp-nanos"): Instant,
    ("long", "local-timestamp-millis"): lambda value: _local(value * 1_000_000),
    ("long", "local-timestamp-micros"): lambda value: _local(value * 1000),
    ("long", "local-timestamp-nanos"): _local,
    ("string", "uuid"): _uuid,
    ("fixed16", "uuid"): _uuid,
    ("fixed12", "duration"): _duration,
}
"""By type and logical type; others are read as their type, as Avro requires."""


# -- schemas


class _Compiling:
    """Compiles schemas to functions; names stay known from one schema to the next."""

    def __init__(self, *, tagged: bool = False) -> None:
        self.tagged = tagged
        self.named: dict[str, Read] = {}
        self.empty_items = 0
        """Of the message that is read."""
        self.is_recursive = False
        """Whether a record may contain one of its own type: only then may values nest deeper than their schema."""
        self.open: set[str] = set()
        self.depth = 0

    def compile(self, schema: Any, space: str = "") -> Read:
        self.depth += 1
        if self.depth > DEEPEST:
            raise DecodingError(f"the schema nests deeper than {DEEPEST}")
        try:
            if isinstance(schema, list):
                return self._union(schema, space)
            if isinstance(schema, dict):
                return self._logical(schema, space)
            return self._name(schema, space)
        finally:
            self.depth -= 1

    def _name(self, name: Any, space: str) -> Read:
        if not isinstance(name, str):
            raise DecodingError(f"expected a type in the schema, found {str(name)[:40]!r}")
        if name in _PRIMITIVES:
            return _PRIMITIVES[name]
        full = _full(name, space)
        found = full if full in self.named else name
        if found not in self.named:
            raise DecodingError(f"the schema does not define the type {full}")
        self.is_recursive = self.is_recursive or found in self.open
        return self.named[found]

    def _logical(self, schema: dict[str, Any], space: str) -> Read:
        kind = schema.get("type")
        logical = schema.get("logicalType")
        if isinstance(kind, (dict, list)):
            return self.compile(kind, space)
        read = self._complex(schema, kind, space)
        convert = None
        if logical == "decimal" and kind in {"bytes", "fixed"}:
            scale = schema.get("scale", 0)
            if isinstance(scale, int) and 0 <= scale <= LONGEST_DECIMAL * 3:
                convert = lambda value: _decimal(value, scale)  # noqa: E731
        elif isinstance(logical, str):
            convert = _LOGICAL.get((f"fixed{schema.get('size')}" if kind == "fixed" else str(kind), logical))
        if convert is None:
            return read
        if kind == "fixed":
            self.named[_full(schema["name"], _space(schema, space))] = _converted(read, convert)
        return _converted(read, convert)

    def _complex(self, schema: dict[str, Any], kind: Any, space: str) -> Read:
        if kind in {"record", "error", "enum", "fixed"}:
            name = schema.get("name")
            if not isinstance(name, str):
                raise DecodingError(f"the schema has {'an' if kind[0] == 'e' else 'a'} {kind} without a name")
            full = _full(name, _space(schema, space))
            maker = {"enum": self._enum, "fixed": self._fixed}.get(kind, self._record)
            return maker(schema, full)
        if kind == "array":
            return self._blocks(self.compile(schema.get("items"), space), _may_be_empty(schema.get("items")))
        if kind == "map":
            return self._map(self.compile(schema.get("values"), space))
        return self._name(kind, space)

    def _record(self, schema: dict[str, Any], full: str) -> Read:
        fields: list[tuple[str, Read]] = []

        def read(data: bytes, at: int) -> tuple[Any, int]:
            found = {}
            before = at
            for name, field in fields:
                found[name], at = field(data, at)
            if at == before:  # records of empty records, forty deep and two wide, would never end
                self._count_empty()
            return found, at

        self.named[full] = read
        given = schema.get("fields")
        if not isinstance(given, list):
            raise DecodingError(f"the record {full} has no list of fields")
        self.open.add(full)
        for one in given:
            if not isinstance(one, dict) or not isinstance(one.get("name"), str):
                raise DecodingError(f"the record {full} has a field without a name")
            fields.append((one["name"], self.compile(one.get("type"), full.rpartition(".")[0])))
        self.open.discard(full)
        return read

    def _enum(self, schema: dict[str, Any], full: str) -> Read:
        symbols = schema.get("symbols")
        if not isinstance(symbols, list):
            raise DecodingError(f"the enum {full} has no list of symbols")

        def read(data: bytes, at: int) -> tuple[Any, int]:
            number, at = _long(data, at)
            if not 0 <= number < len(symbols):
                raise DecodingError(f"not Avro of this schema: the enum {full} has no symbol {number}")
            return symbols[number], at

        self.named[full] = read
        return read

    def _fixed(self, schema: dict[str, Any], full: str) -> Read:
        size = schema.get("size")
        if not isinstance(size, int) or size < 0:
            raise DecodingError(f"the fixed {full} has no size")

        def read(data: bytes, at: int) -> tuple[Any, int]:
            end = at + size
            if end > len(data):
                raise IndexError
            return data[at:end], end

        self.named[full] = read
        return read

    def _union(self, branches: list[Any], space: str) -> Read:
        readers = [self.compile(branch, space) for branch in branches]
        tagged = self.tagged and sum(each is not _null for each in readers) > 1

        def read(data: bytes, at: int) -> tuple[Any, int]:
            number, at = _long(data, at)
            if not 0 <= number < len(readers):
                raise DecodingError(f"not Avro of this schema: a union has no branch {number}")
            if not tagged:
                return readers[number](data, at)
            value, at = readers[number](data, at)
            return (number, value), at

        return read

    def _count(self, data: bytes, at: int) -> tuple[int, int]:
        """How many items follow; a negative count is followed by the size of its block."""
        count, at = _long(data, at)
        if count < 0:
            _, at = _long(data, at)
            count = -count
        return count, at

    def _blocks(self, item: Read, may_be_empty: bool) -> Read:
        def read(data: bytes, at: int) -> tuple[Any, int]:
            found = []
            count, at = self._count(data, at)
            while count:
                if not may_be_empty and count > len(data) - at:
                    raise IndexError
                for _ in range(count):
                    before = at
                    value, at = item(data, at)
                    if at == before:
                        self._count_empty()
                    found.append(value)
                count, at = self._count(data, at)
            return found, at

        return read

    def _count_empty(self) -> None:
        self.empty_items += 1
        if self.empty_items > MOST_EMPTY_ITEMS:
            raise DecodingError(f"the Avro claims more than {MOST_EMPTY_ITEMS} items that take no bytes")

    def _map(self, value: Read) -> Read:
        def read(data: bytes, at: int) -> tuple[Any, int]:
            found = {}
            count, at = self._count(data, at)
            while count:
                if count > len(data) - at:
                    raise IndexError
                for _ in range(count):
                    key, at = _string(data, at)
                    found[key], at = value(data, at)
                count, at = self._count(data, at)
            return found, at

        return read


def _may_be_empty(items: Any) -> bool:
    """Whether an item may take no bytes; of primitive types only null does."""
    return not (isinstance(items, str) and items in _PRIMITIVES and items != "null")


def _converted(read: Read, convert: Callable[[Any], Any]) -> Read:
    def converted(data: bytes, at: int) -> tuple[Any, int]:
        value, at = read(data, at)
        return convert(value), at

    return converted


def _space(schema: Mapping[str, Any], space: str) -> str:
    given = schema.get("namespace")
    return given if isinstance(given, str) else space


def _full(name: str, space: str) -> str:
    return name if "." in name or not space else f"{space}.{name}"
