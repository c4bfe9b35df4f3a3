"""Writes Protobuf by the messages of a file or of a registry's schema; the opposite of `decoding.protobuf`.

Values are those that `decoding` shows, and those of Protobuf's own JSON: fields have the names of the file or their lowerCamelCase,
enums are names or numbers, 64-bit numbers may be texts, times are ISO 8601, durations seconds such as `1.5s`. Bytes are text, or objects
`{"hex": "00ff"}` and `{"base64": "AP8="}`. A null field is absent, and so is one that has its default where the two look alike.
"""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from math import isfinite
from struct import Struct
from struct import error as StructError  # noqa: N812 - it is a class
from typing import Any, Final

from horolog.client.decoding import proto_known
from horolog.client.decoding.proto_types import Field, Message, Types
from horolog.client.decoding.values import DecodingError
from horolog.client.encoding.fitting import EncodingError, as_bytes, instant_ns, no_fit, within
from horolog.protocol.primitives import encode_unsigned_varint, encode_varint

DEEPEST: Final = 100
_VARINT, _FIXED64, _SIZED, _GROUP, _GROUP_END, _FIXED32 = range(6)
_NS: Final = 1_000_000_000
_DIGITS: Final = re.compile(r"-?[0-9]{1,20}")
_MOST_DIGITS: Final = 20
_BITS: Final = {
    "int32": (32, True), "sint32": (32, True), "sfixed32": (32, True), "uint32": (32, False), "fixed32": (32, False),
    "int64": (64, True), "sint64": (64, True), "sfixed64": (64, True), "uint64": (64, False), "fixed64": (64, False),
}  # fmt: skip
"""The size of a whole number, and whether it has a sign."""
_FIXED: Final = {
    "fixed32": Struct("<I"), "sfixed32": Struct("<i"), "float": Struct("<f"),
    "fixed64": Struct("<Q"), "sfixed64": Struct("<q"), "double": Struct("<d"),
}  # fmt: skip
_TEXTS: Final = ("string", "bytes", "message", "group")
_NOT_FINITE: Final = {"nan": "nan", "inf": "inf", "-inf": "-inf", "infinity": "inf", "-infinity": "-inf"}


class ProtobufWriter:
    """Encodes values as one message of a schema."""

    def __init__(self, types: Types, message: Message) -> None:
        self.types = types
        self._message = message
        self._names: dict[str, dict[str, Field]] = {}

    @property
    def name(self) -> str:
        return self._message.name

    def write(self, value: Any) -> bytes:
        """Encode a value. Raises EncodingError."""
        return self._written(self._message, value, 0)

    def _written(self, message: Message, value: Any, depth: int) -> bytes:
        if depth > DEEPEST:
            raise EncodingError("the value nests too deeply")
        meaning = _MEANINGS.get(message.name)
        if message.name == _ANY:
            value = self._packed_message(value, depth)
        elif meaning is not None:
            value = meaning(value)
        if not isinstance(value, Mapping):
            raise no_fit(value, "an object")
        given = self._fields(message, value)
        missing = next((one.name for one in message.fields.values() if one.required and one.number not in given), None)
        if missing is not None:
            raise EncodingError(f"field {missing}: it is required")
        out = bytearray()
        for number, field in message.fields.items():
            if number in given:
                try:
                    self._put_field(field, given[number], out, depth, always=message.is_entry)
                except EncodingError as error:
                    raise within(field.name, error) from error
        return bytes(out)

    def _fields(self, message: Message, value: Mapping[str, Any]) -> dict[int, Any]:
        """The given values by the numbers of their fields."""
        known = self._names.get(message.name)
        if known is None:
            fields = message.fields.values()
            known = {_camel(one.name): one for one in fields} | {one.name: one for one in fields}
            self._names[message.name] = known
        given: dict[int, Any] = {}
        choices: dict[int, str] = {}
        for name, each in value.items():
            field = known.get(name)
            if field is None:
                raise EncodingError(f"message {message.name} has no field {name[:60]}")
            if each is None and not _takes_null(field):
                continue
            if field.number in given:
                raise EncodingError(f"field {field.name}: it is given twice")
            if field.oneof >= 0 and choices.setdefault(field.oneof, field.name) != field.name:
                raise EncodingError(f"fields {choices[field.oneof]} and {field.name}: only one of them can be set")
            given[field.number] = each
        return given

    def _put_field(self, field: Field, value: Any, out: bytearray, depth: int, *, always: bool) -> None:
        if field.is_map:
            if not isinstance(value, Mapping):
                raise no_fit(value, "an object")
            for key, each in value.items():
                if each is None and not _takes_null(_entry(field)[1]):
                    raise no_fit(each, "a value of a map")
                self._put(field, {"key": _key(_entry(field)[0], key), "value": each}, out, depth)
        elif not field.repeated:
            if always or not field.fills or any(_scalar(field, value)):  # all bytes of a default are zero
                self._put(field, value, out, depth)
        elif not isinstance(value, list):
            raise no_fit(value, "a list")
        elif field.kind in _TEXTS:
            for each in value:
                self._put(field, each, out, depth)
        elif value:
            _put_tag(field.number, _SIZED, out)
            _put_sized(b"".join(_scalar(field, each) for each in value), out)

    def _put(self, field: Field, value: Any, out: bytearray, depth: int) -> None:
        """One value with its tag."""
        if field.message is None:
            _put_tag(field.number, _wire_of(field.kind), out)
            out += _scalar(field, value)
            return
        data = self._written(field.message, value, depth + 1)
        if field.kind == "group":
            _put_tag(field.number, _GROUP, out)
            out += data
            _put_tag(field.number, _GROUP_END, out)
            return
        _put_tag(field.number, _SIZED, out)
        _put_sized(data, out)

    def _packed_message(self, value: Any, depth: int) -> dict[str, Any]:
        """An `Any`: the message of its `@type`, or its bytes if the schema does not have that type."""
        if not isinstance(value, Mapping) or not isinstance(value.get("@type"), str):
            raise no_fit(value, 'an object with an "@type"')
        rest = {name: each for name, each in value.items() if name != "@type"}
        message = self.types.by_name.get(value["@type"].rpartition("/")[2])
        if message is None:
            if rest.keys() != {"value"}:
                raise EncodingError(f"the schema has no message {value['@type'][:60]}")
            return {"type_url": value["@type"], "value": rest["value"]}
        inside = (
            rest["value"] if (message.name in _MEANINGS or message.name == _ANY) and rest.keys() == {"value"} else rest
        )
        return {"type_url": value["@type"], "value": self._written(message, inside, depth + 1)}


def path_of(types: Types, message: Message) -> list[int]:
    """Where a message is in its file: the indexes that lead to it, from the top. The opposite of `Types.at`. Raises DecodingError."""
    waiting = [([number], one) for number, one in enumerate(types.top)]
    while waiting:
        path, one = waiting.pop()
        if one is message:
            return path
        waiting += [([*path, number], each) for number, each in enumerate(one.nested)]
    raise DecodingError(f"message {message.name} is not in {types.file} itself, but in an import of it")


def path_bytes(path: list[int]) -> bytes:
    """The path as clients of a registry write it behind the id: a single zero byte for the first message."""
    return b"\0" if path == [0] else b"".join(map(encode_varint, (len(path), *path)))


def _takes_null(field: Field) -> bool:
    return field.message is not None and field.message.name == _VALUE


def _entry(field: Field) -> tuple[Field, Field]:
    """The fields of a map's keys and values."""
    assert field.message is not None
    return field.message.fields[1], field.message.fields[2]


def _key(field: Field, text: str) -> Any:
    """A key of JSON is a text."""
    return {"true": True, "false": False}.get(text, text) if field.kind == "bool" else text


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(one[:1].upper() + one[1:] for one in rest)


# -- bytes


def _wire_of(kind: str) -> int:
    if kind in _FIXED:
        return _FIXED64 if _FIXED[kind].size == 8 else _FIXED32
    return _SIZED if kind in _TEXTS else _VARINT


def _put_tag(number: int, wire: int, out: bytearray) -> None:
    _put_varint(number << 3 | wire, out)


def _put_varint(number: int, out: bytearray) -> None:
    out += encode_unsigned_varint(number & 0xFFFFFFFFFFFFFFFF)


def _put_sized(data: bytes, out: bytearray) -> None:
    _put_varint(len(data), out)
    out += data


def _scalar(field: Field, value: Any) -> bytes:
    """The value without its tag."""
    kind, out = field.kind, bytearray()
    if kind == "bool":
        if not isinstance(value, bool):
            raise no_fit(value, "a boolean")
        out.append(value)
    elif kind == "enum":
        _put_varint(_number_of(field.names, value), out)
    elif kind in ("string", "bytes"):
        _put_sized(as_bytes(value) if kind == "bytes" else _text(value), out)
    elif kind in _BITS:
        number = _whole(kind, value)
        if kind in _FIXED:
            out += _FIXED[kind].pack(number)
        else:
            _put_varint(number << 1 ^ number >> 63 if kind in ("sint32", "sint64") else number, out)
    else:
        try:
            out += _FIXED[kind].pack(_fraction(value))
        except (OverflowError, StructError) as error:
            raise no_fit(value, "a number of this size") from error
    return bytes(out)


def _text(value: Any) -> bytes:
    if not isinstance(value, str):
        raise no_fit(value, "a text")
    try:
        return value.encode()
    except UnicodeEncodeError as error:  # JSON may have half of a surrogate pair, which readers of Protobuf refuse
        raise no_fit(value, "a text of Unicode") from error


def _number_of(names: Mapping[int, str], value: Any) -> int:
    """The number of an enum's value; one without a name is kept, as readers keep it."""
    if isinstance(value, str):
        found = next((number for number, name in names.items() if name == value), None)
        if found is None:
            raise no_fit(value, f"one of {', '.join(sorted(names.values())[:10])}")
        return found
    return _whole("int32", value)


def _is_whole(value: Any) -> bool:
    """Whether a text, or a number with a point or an exponent, is a whole number of a possible size."""
    if isinstance(value, Decimal):
        return value.adjusted() < _MOST_DIGITS and value == value.to_integral_value()
    return isinstance(value, str) and _DIGITS.fullmatch(value) is not None


def _whole(kind: str, value: Any) -> int:
    number = int(value) if _is_whole(value) else value
    if isinstance(number, bool) or not isinstance(number, int):
        raise no_fit(value, "a whole number")
    bits, has_sign = _BITS[kind]
    least = -(1 << bits - 1) if has_sign else 0
    if not least <= number < least + (1 << bits):
        raise no_fit(value, f"a number of {bits} bits" if has_sign else f"a number of {bits} bits without a sign")
    return number


def _fraction(value: Any) -> float:
    if isinstance(value, str) and value.lower() in _NOT_FINITE:
        return float(_NOT_FINITE[value.lower()])
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise no_fit(value, "a number")
    number = float(value)
    if not isfinite(number):
        raise no_fit(value, "a number of this size")
    return number


# -- well-known types: what stands for them becomes their fields


def _instant(value: Any) -> dict[str, Any]:
    try:
        seconds, nanos = divmod(instant_ns(value), _NS)
    except (ValueError, TypeError, AttributeError) as error:
        raise no_fit(value, "a time in ISO 8601") from error
    return {"seconds": seconds, "nanos": nanos}


def _duration(value: Any) -> dict[str, Any]:
    try:
        seconds_of = Decimal(value.removesuffix("s"))
        if not value.endswith("s") or seconds_of.adjusted() >= _MOST_DIGITS:
            raise ValueError
        ns = int(seconds_of.scaleb(9))
    except (ArithmeticError, AttributeError, ValueError) as error:
        raise no_fit(value, "a duration in seconds, such as 1.5s") from error
    seconds, nanos = divmod(abs(ns), _NS)
    return {"seconds": -seconds if ns < 0 else seconds, "nanos": -nanos if ns < 0 else nanos}


def _loose(value: Any) -> dict[str, Any]:
    if value is None:
        return {"null_value": 0}
    kinds = ((bool, "bool_value"), (int | float | Decimal, "number_value"), (str, "string_value"), (list, "list_value"))
    return {next((name for kind, name in kinds if isinstance(value, kind)), "struct_value"): value}


def _paths(value: Any) -> dict[str, Any]:
    if not isinstance(value, str):
        raise no_fit(value, "names of fields with commas between them")
    return {"paths": value.split(",") if value else []}


def _decimal(value: Any) -> dict[str, Any]:
    """Of a number; an object has the fields themselves."""
    if isinstance(value, Mapping):
        return dict(value)
    try:
        sign, digits, exponent = Decimal(value).as_tuple()
    except (InvalidOperation, TypeError, ValueError) as error:
        raise no_fit(value, "a decimal number") from error
    if isinstance(value, bool) or not isinstance(exponent, int):
        raise no_fit(value, "a decimal number")
    whole = int("".join(map(str, digits))) * (-1 if sign else 1)
    data = whole.to_bytes((whole + (whole < 0)).bit_length() // 8 + 1, "big", signed=True)
    return {"value": data, "precision": len(digits), "scale": -exponent}


_ANY: Final = "google.protobuf.Any"
_VALUE: Final = "google.protobuf.Value"
_MEANINGS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "google.protobuf.Timestamp": _instant,
    "google.protobuf.Duration": _duration,
    "google.protobuf.Struct": lambda value: {"fields": value},
    _VALUE: _loose,
    "google.protobuf.ListValue": lambda value: {"values": value},
    "google.protobuf.FieldMask": _paths,
    "confluent.type.Decimal": _decimal,
    **dict.fromkeys(proto_known.WRAPPERS, lambda value: {"value": value}),
}
