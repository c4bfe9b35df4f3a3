"""Writes Avro by a schema: the schema is compiled to functions, one per type, that take a value and add its bytes to a buffer.

Values are those that `decoding` shows. A union takes a value of its first fitting branch, or, as in Avro's JSON, an object with the
branch's name as its only key. Times and dates are ISO 8601 or numbers, decimals are numbers or texts, bytes are text, or objects
`{"hex": "00ff"}` and `{"base64": "AP8="}`. A missing field has its default.
"""

from collections.abc import Callable, Mapping
from datetime import date, time
from decimal import Decimal, InvalidOperation
from json import JSONDecodeError, loads
from math import isfinite
from struct import Struct
from typing import Any
from uuid import UUID

from horolog.client.decoding.avro import AvroSchema
from horolog.client.encoding.fitting import EPOCH, EncodingError, as_bytes, instant_ns, no_fit, within
from horolog.protocol.primitives import encode_varint

Write = Callable[[Any, bytearray], None]
"""Adds the size of a value in bytes. Raises EncodingError."""

INT_BITS, LONG_BITS = 32, 64
_FLOAT, _DOUBLE = Struct("<f"), Struct("<d")
_DURATION = Struct("<III")
_MISSING = object()
_TIMES = {"millis": 1_000_000, "micros": 1_000, "nanos": 1}
"""Nanoseconds of a logical type's unit."""


class AvroWriter:
    """A compiled schema. Raises DecodingError for one that cannot be used."""

    def __init__(self, text: str, references: Mapping[str, str] | None = None) -> None:
        self.name = AvroSchema(text, references).name
        compiling = _Compiling()
        for other in (references or {}).values():
            compiling.compile(loads(other), "")
        schema = _parsed(text)
        self.takes_text = schema in ("string", {"type": "string"})
        """Whether values are texts, which need no quotes."""
        self._write = compiling.compile(schema, "")

    def write(self, value: Any) -> bytes:
        """Encode a value. Raises EncodingError."""
        out = bytearray()
        try:
            self._write(value, out)
        except RecursionError as error:
            raise EncodingError("the value nests too deeply") from error
        return bytes(out)


def _parsed(text: str) -> Any:
    try:
        return loads(text)
    except JSONDecodeError:
        return text.strip()  # a primitive type without its quotes, as AvroSchema has accepted it


# -- numbers and texts


def _null(value: Any, _: bytearray) -> None:
    if value is not None:
        raise no_fit(value, "null")


def _boolean(value: Any, out: bytearray) -> None:
    if not isinstance(value, bool):
        raise no_fit(value, "a boolean")
    out.append(value)


def _whole(bits: int) -> Write:
    highest = 1 << (bits - 1)

    def write(value: Any, out: bytearray) -> None:
        if isinstance(value, bool) or not isinstance(value, int):
            raise no_fit(value, "a whole number")
        if not -highest <= value < highest:
            raise no_fit(value, f"a number of {bits} bits")
        out += encode_varint(value)

    return write


def _fraction(shape: Struct) -> Write:
    def write(value: Any, out: bytearray) -> None:
        if isinstance(value, str) and value.lower() in ("nan", "inf", "-inf"):
            value = float(value)
        elif isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            raise no_fit(value, "a number")
        elif not isfinite(value):
            raise no_fit(value, "a finite number")
        try:
            out += shape.pack(value)
        except (OverflowError, ValueError) as error:
            raise no_fit(value, "a number of this size") from error

    return write


def _put_bytes(data: bytes, out: bytearray) -> None:
    out += encode_varint(len(data))
    out += data


def _bytes(value: Any, out: bytearray) -> None:
    _put_bytes(as_bytes(value), out)


def _string(value: Any, out: bytearray) -> None:
    if not isinstance(value, str):
        raise no_fit(value, "a text")
    _put_bytes(value.encode(errors="surrogatepass"), out)


_PRIMITIVES: dict[str, Write] = {
    "null": _null,
    "boolean": _boolean,
    "int": _whole(INT_BITS),
    "long": _whole(LONG_BITS),
    "float": _fraction(_FLOAT),
    "double": _fraction(_DOUBLE),
    "bytes": _bytes,
    "string": _string,
}


# -- logical types: texts become numbers of the underlying type


def _instant(unit: int, *, is_local: bool) -> Callable[[str], int]:
    return lambda text: instant_ns(text, is_local=is_local) // unit


def _clock(unit: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        found = time.fromisoformat(text)
        seconds = found.hour * 3600 + found.minute * 60 + found.second
        return (seconds * 1_000_000_000 + found.microsecond * 1000) // unit

    return number


def _day(text: str) -> int:
    return date.fromisoformat(text).toordinal() - EPOCH.toordinal()


def _of_text(logical: str) -> Callable[[str], int] | None:
    """What reads a text of a logical type as a number."""
    kind, _, unit = logical.rpartition("-")
    if logical == "date":
        return _day
    if unit not in _TIMES:
        return None
    if kind == "time":
        return _clock(_TIMES[unit])
    return _instant(_TIMES[unit], is_local=kind == "local-timestamp") if kind.endswith("timestamp") else None


def _converted(write: Write, number: Callable[[str], int], what: str) -> Write:
    def converted(value: Any, out: bytearray) -> None:
        if isinstance(value, str):
            try:
                value = number(value)
            except ValueError as error:
                raise no_fit(value, f"{what} in ISO 8601") from error
        write(value, out)

    return converted


def _unscaled(value: Any, scale: int) -> bytes:
    """A decimal as the bytes of a whole number."""
    try:
        number = Decimal(value) if isinstance(value, str | int | Decimal) and not isinstance(value, bool) else None
    except InvalidOperation:
        number = None
    if number is None or not number.is_finite():
        raise no_fit(value, "a decimal number")
    shifted = number.scaleb(scale)
    if shifted != shifted.to_integral_value():
        raise no_fit(value, f"a number of at most {scale} digits behind the point")
    whole = int(shifted)
    return whole.to_bytes((whole + (whole < 0)).bit_length() // 8 + 1, "big", signed=True)


# -- schemas


class _Compiling:
    """Compiles schemas to functions; names stay known from one schema to the next."""

    def __init__(self) -> None:
        self.named: dict[str, Write] = {}

    def compile(self, schema: Any, space: str) -> Write:
        if isinstance(schema, list):
            return self._union(schema, space)
        if isinstance(schema, str):
            full = f"{space}.{schema}" if space and "." not in schema else schema
            return _PRIMITIVES.get(schema) or self.named.get(full) or self.named[schema]
        kind = schema["type"]
        if isinstance(kind, dict | list):
            return self.compile(kind, space)
        if kind in ("record", "error", "enum", "fixed"):
            return self._named(schema, kind, _full(schema, space))
        if kind == "array":
            return _array(self.compile(schema["items"], space))
        if kind == "map":
            return _map(self.compile(schema["values"], space))
        return self._logical(schema, kind, space)

    def _logical(self, schema: Mapping[str, Any], kind: str, space: str) -> Write:
        logical, write = schema.get("logicalType"), self.compile(kind, space)
        if kind == "bytes" and logical == "decimal":
            scale = int(schema.get("scale", 0))
            return lambda value, out: _put_bytes(_unscaled(value, scale), out)
        number = _of_text(logical) if isinstance(logical, str) and kind in ("int", "long") else None
        return write if number is None else _converted(write, number, f"a {str(logical).partition('-')[0]}")

    def _named(self, schema: Mapping[str, Any], kind: str, full: str) -> Write:
        if kind == "enum":
            self.named[full] = _enum(full, schema["symbols"])
        elif kind == "fixed":
            self.named[full] = _fixed(schema, full)
        else:
            fields: list[tuple[str, Write, Any]] = []
            self.named[full] = _record(full, fields)
            for one in schema["fields"]:
                write = self.compile(one["type"], full.rpartition(".")[0])
                fields.append((one["name"], write, one.get("default", _MISSING)))
        return self.named[full]

    def _union(self, branches: list[Any], space: str) -> Write:
        names = [_branch_name(one, space) for one in branches]
        writers = [self.compile(one, space) for one in branches]
        numbers = {"int": 0, "long": 1, "float": 2, "double": 3}
        order = sorted(range(len(branches)), key=lambda at: numbers.get(names[at], -1))

        def write(value: Any, out: bytearray) -> None:
            tagged = next(iter(value)) if isinstance(value, dict) and len(value) == 1 else None
            if tagged in names:
                try:
                    return _put_branch(names.index(tagged), writers, value[tagged], out)
                except EncodingError:
                    if not any(name not in _PRIMITIVES for name in names):
                        raise
            reasons = []
            for at in order:
                try:
                    return _put_branch(at, writers, value, out)
                except EncodingError as error:
                    reasons.append(str(error))
            raise (
                no_fit(value, f"of the union {', '.join(names)}") if len(reasons) != 2 else EncodingError(reasons[-1])
            )

        return write


def _put_branch(at: int, writers: list[Write], value: Any, out: bytearray) -> None:
    tried = bytearray()
    tried += encode_varint(at)
    writers[at](value, tried)
    out += tried


def _branch_name(schema: Any, space: str) -> str:
    if isinstance(schema, str):
        return schema
    kind = schema["type"]
    return _full(schema, space) if kind in ("record", "error", "enum", "fixed") else str(kind)


def _full(schema: Mapping[str, Any], space: str) -> str:
    name, own = str(schema["name"]), schema.get("namespace", space)
    return name if "." in name or not own else f"{own}.{name}"


def _record(full: str, fields: list[tuple[str, Write, Any]]) -> Write:
    def write(value: Any, out: bytearray) -> None:
        if not isinstance(value, dict):
            raise no_fit(value, f"an object with the fields of {full}")
        names = [name for name, *_ in fields]
        unknown = next((name for name in value if name not in names), None)
        if unknown is not None:
            raise EncodingError(f"{full} has no field {unknown!r}; it has {', '.join(names) or 'none'}")
        for name, each, default in fields:
            part = value.get(name, default)
            if part is _MISSING:
                raise EncodingError(f"field {name}: it is missing, and has no default")
            try:
                each(part, out)
            except EncodingError as error:
                raise within(name, error) from error

    return write


def _enum(full: str, symbols: list[str]) -> Write:
    def write(value: Any, out: bytearray) -> None:
        if value not in symbols:
            raise no_fit(value, f"a symbol of {full}: {', '.join(symbols)}")
        out += encode_varint(symbols.index(value))

    return write


def _fixed(schema: Mapping[str, Any], full: str) -> Write:
    size, logical = int(schema["size"]), schema.get("logicalType")

    def content(value: Any) -> bytes:
        if logical == "decimal":
            return _widened(_unscaled(value, int(schema.get("scale", 0))), size)
        if logical == "uuid" and size == 16 and isinstance(value, str):
            return _uuid(value)
        if logical == "duration" and isinstance(value, dict) and value.keys() == {"months", "days", "milliseconds"}:
            return _DURATION.pack(value["months"], value["days"], value["milliseconds"])
        data = as_bytes(value)
        return bytes.fromhex(value) if len(data) == 2 * size and _is_hex(value) else data

    def write(value: Any, out: bytearray) -> None:
        data = content(value)
        if len(data) != size:
            raise no_fit(value, f"of the {size} bytes of {full}")
        out += data

    return write


def _is_hex(value: Any) -> bool:
    return isinstance(value, str) and all(one in "0123456789abcdefABCDEF" for one in value)


def _widened(data: bytes, size: int) -> bytes:
    return (b"\xff" if data[0] > 127 else b"\0") * (size - len(data)) + data


def _uuid(text: str) -> bytes:
    try:
        return UUID(text).bytes
    except ValueError as error:
        raise no_fit(text, "a UUID") from error


def _array(item: Write) -> Write:
    def write(value: Any, out: bytearray) -> None:
        if not isinstance(value, list):
            raise no_fit(value, "an array")
        if value:
            out += encode_varint(len(value))
        for number, one in enumerate(value):
            try:
                item(one, out)
            except EncodingError as error:
                raise within(str(number), error) from error
        out.append(0)

    return write


def _map(item: Write) -> Write:
    def write(value: Any, out: bytearray) -> None:
        if not isinstance(value, dict):
            raise no_fit(value, "an object")
        if value:
            out += encode_varint(len(value))
        for name, one in value.items():
            _string(name, out)
            try:
                item(one, out)
            except EncodingError as error:
                raise within(name, error) from error
        out.append(0)

    return write
