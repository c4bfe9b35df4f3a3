"""Reads Protobuf by the messages of a .proto file or a descriptor set.

Fields have the names of the file. An absent field is left out, or has its default if the two look alike (proto3 without
`optional`). Enums become names; unknown fields stay, under their numbers. Google's well-known types become what they stand for:
times, numbers, objects.
"""

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache
from struct import Struct
from typing import Any, Final

from horolog.client.decoding import proto_known, proto_text
from horolog.client.decoding.proto_types import Field, Message, Types
from horolog.client.decoding.values import DecodingError, Instant, fraction

DEEPEST: Final = 100
MOST_PACKINGS: Final = 3
"""How deep `Any` messages inside each other are decoded."""
LONGEST_DECIMAL: Final = 1000
_VARINT, _FIXED64, _SIZED, _GROUP, _GROUP_END, _FIXED32 = range(6)
_SIGN_64: Final = 1 << 63
_FIXED: Final = {
    "double": Struct("<d"),
    "fixed64": Struct("<Q"),
    "sfixed64": Struct("<q"),
    "float": Struct("<f"),
    "fixed32": Struct("<I"),
    "sfixed32": Struct("<i"),
}
_WIRE: Final = {
    **dict.fromkeys(("double", "fixed64", "sfixed64"), _FIXED64),
    **dict.fromkeys(("float", "fixed32", "sfixed32"), _FIXED32),
    **dict.fromkeys(("string", "bytes", "message"), _SIZED),
    "group": _GROUP,
}
_TOO_EARLY: Final = "not Protobuf: it ends too early"


class ProtobufSchema:
    """The compiled messages of a file. Raises DecodingError."""

    def __init__(self, types: Types) -> None:
        self.types = types

    @classmethod
    def of_text(cls, text: str, name: str, imported: Callable[[str], str | None]) -> "ProtobufSchema":
        """From the text of a .proto file, or from a descriptor in base64, as registries may have it."""

        def parsed(path: str) -> dict[str, Any] | None:
            found = imported(path)
            return None if found is None else _file(found, path)

        return cls(Types(_file(text, name), parsed))

    @classmethod
    def of_descriptors(cls, data: bytes, name: str) -> "ProtobufSchema":
        """From the output of `protoc --descriptor_set_out`, whose last file is the requested one."""
        files = read_message(_descriptor("FileDescriptorSet"), data)["file"]
        if not files or not all(one.get("name") for one in files):
            raise DecodingError(f"{name} is not a Protobuf descriptor set")
        by_name = {one["name"]: _marked(one) for one in files}
        return cls(Types(_marked(files[-1]), by_name.get))

    def read(self, data: bytes, message: Message) -> Any:
        """Decode the bytes as a message. Raises DecodingError."""
        try:
            return _Reader(self.types).message(message, data, 0, len(data), 0)[0]
        except RecursionError as error:
            raise DecodingError(f"the Protobuf nests deeper than {DEEPEST}") from error


def _file(text: str, name: str) -> dict[str, Any]:
    stripped = text.strip()
    if stripped and not set(stripped) & set(" ;{"):
        try:
            found: dict[str, Any] = read_message(_descriptor("FileDescriptorProto"), b64decode(stripped, validate=True))
        except (Base64Error, DecodingError) as error:
            raise DecodingError(f"{name} is neither a .proto file nor a descriptor") from error
        return _marked(found)
    return proto_text.parse(text, name)


def _marked(file: dict[str, Any]) -> dict[str, Any]:
    """proto3's `optional` makes a oneof of one field; what it says is that the field is known to be absent."""
    if not _has_text_alone(file):
        raise DecodingError("a descriptor of Protobuf has a name that is not UTF-8")

    def mark(message: dict[str, Any]) -> None:
        for field in message["field"]:
            if field.get("proto3_optional"):
                field["explicit"] = True
                field.pop("oneof_index", None)
        for nested in message["nested_type"]:
            mark(nested)

    for message in file["message_type"]:
        mark(message)
    return file


def _has_text_alone(value: Any) -> bool:
    """Whether all names are text; what descriptor.proto says beyond our part of it is under its numbers."""
    if isinstance(value, dict):
        return all(_has_text_alone(each) for name, each in value.items() if not name.isdecimal())
    if isinstance(value, list):
        return all(_has_text_alone(each) for each in value)
    return not isinstance(value, bytes)


@cache
def _descriptors() -> Types:
    return Types(proto_text.parse(proto_known.DESCRIPTORS, "descriptor.proto"), lambda _: None)


def _descriptor(name: str) -> Message:
    return _descriptors().by_name[f"google.protobuf.{name}"]


def read_message(message: Message, data: bytes) -> Any:
    return _Reader(_descriptors()).message(message, data, 0, len(data), 0)[0]


def message_path(data: bytes, at: int) -> tuple[list[int], int]:
    """The path of the message in the schema's file, as a registry's clients write it, and the position after it."""
    try:
        count, at = _varint(data, at)
        count = (count >> 1) ^ -(count & 1)
        if count == 0:
            return [0], at
        if not 0 < count <= DEEPEST:
            raise DecodingError("the position of the message in its schema is not valid")
        path = []
        for _ in range(count):
            index, at = _varint(data, at)
            path.append((index >> 1) ^ -(index & 1))
    except IndexError as error:
        raise DecodingError(_TOO_EARLY) from error
    return path, at


# -- bytes


def _varint(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    at += 1
    if byte < 128:
        return byte, at
    number = byte & 127
    shift = 7
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:
            return number & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
        if shift > 63:
            raise DecodingError("not Protobuf: a number has more than ten bytes")


def _int64(number: int) -> int:
    return number - (1 << 64) if number >= _SIGN_64 else number


def _int32(number: int) -> int:
    number &= 0xFFFFFFFF
    return number - (1 << 32) if number >= 1 << 31 else number


_OF_VARINT: Final[Mapping[str, Callable[[int], Any]]] = {
    "int32": _int32,
    "int64": _int64,
    "uint32": lambda number: number & 0xFFFFFFFF,
    "uint64": lambda number: number,
    "sint32": lambda number: ((number & 0xFFFFFFFF) >> 1) ^ -(number & 1),
    "sint64": lambda number: (number >> 1) ^ -(number & 1),
    "bool": bool,
}


class _Reader:
    """Reads the bytes of one record, or of one `Any` message inside it."""

    def __init__(self, types: Types, packings: int = 0) -> None:
        self.types = types
        self.packings = packings

    def message(self, message: Message, data: bytes, at: int, end: int, depth: int, group: int = 0) -> tuple[Any, int]:
        """The message between two positions, or up to the end of the group; and the position after it."""
        if depth > DEEPEST:
            raise DecodingError(f"the Protobuf nests deeper than {DEEPEST}")
        found: dict[int, Any] = {}
        unknown: dict[str, Any] = {}
        fields = message.fields
        try:
            while at < end:
                tag, at = _varint(data, at)
                number, wire = tag >> 3, tag & 7
                if number == 0:
                    raise DecodingError("not Protobuf: a field has the number 0")
                if wire == _GROUP_END:
                    if number != group:
                        raise DecodingError("not Protobuf: a group ends that has not begun")
                    return self._finished(message, found, unknown), at
                field = fields.get(number)
                at = (
                    self._unknown(unknown, number, wire, data, at, end, depth)
                    if field is None
                    else self._field(field, found, unknown, wire, data, at, end, depth)
                )
        except IndexError as error:
            raise DecodingError(_TOO_EARLY) from error
        if at != end or group:
            raise DecodingError(_TOO_EARLY)
        return self._finished(message, found, unknown), at

    def _field(
        self,
        field: Field,
        found: dict[int, Any],
        unknown: dict[str, Any],
        wire: int,
        data: bytes,
        at: int,
        end: int,
        depth: int,
    ) -> int:
        expected = _WIRE.get(field.kind, _VARINT)
        if wire != expected:
            if field.repeated and wire == _SIZED and expected in {_VARINT, _FIXED32, _FIXED64}:
                return self._packed(field, found, data, at, end)
            return self._unknown(unknown, field.number, wire, data, at, end, depth)
        value, at = self._value(field, data, at, end, depth)
        if not field.repeated:
            if field.oneof >= 0:
                found.pop(found.get(~field.oneof, 0), None)  # of a oneof the last one counts
                found[~field.oneof] = field.number
            found[field.number] = value
        elif field.is_map:
            found.setdefault(field.number, {})[_key(value["key"])] = value.get("value")
        else:
            found.setdefault(field.number, []).append(value)
        return at

    def _value(self, field: Field, data: bytes, at: int, end: int, depth: int) -> tuple[Any, int]:
        kind = field.kind
        if kind in _OF_VARINT:
            number, at = _varint(data, at)
            return _OF_VARINT[kind](number), at
        if kind == "enum":
            number, at = _varint(data, at)
            return field.names.get(_int32(number), _int32(number)), at
        if kind in _FIXED:
            after = at + _FIXED[kind].size
            if after > end:
                raise IndexError
            return _FIXED[kind].unpack_from(data, at)[0], after
        if kind == "group" and field.message is not None:
            return self.message(field.message, data, at, end, depth + 1, field.number)
        size, at = _varint(data, at)
        after = at + size
        if after > end:
            raise IndexError
        if field.message is not None:
            return self.message(field.message, data, at, after, depth + 1)
        if kind == "string":
            return _text(data[at:after]), after
        return data[at:after], after

    def _packed(self, field: Field, found: dict[int, Any], data: bytes, at: int, end: int) -> int:
        size, at = _varint(data, at)
        after = at + size
        if after > end:
            raise IndexError
        values = found.setdefault(field.number, [])
        while at < after:
            value, at = self._value(field, data, at, after, 0)
            values.append(value)
        if at != after:
            raise IndexError
        return after

    def _unknown(
        self, unknown: dict[str, Any], number: int, wire: int, data: bytes, at: int, end: int, depth: int
    ) -> int:
        value: Any
        if wire == _VARINT:
            value, at = _varint(data, at)
        elif wire == _GROUP:
            value, at = self.message(_NOTHING, data, at, end, depth + 1, number)
        elif wire in {_FIXED64, _FIXED32, _SIZED}:
            size, at = _varint(data, at) if wire == _SIZED else (8 if wire == _FIXED64 else 4, at)
            after = at + size
            if after > end:
                raise IndexError
            value = data[at:after] if wire == _SIZED else int.from_bytes(data[at:after], "little")
            at = after
        else:
            raise DecodingError(f"not Protobuf: there is no wire type {wire}")
        name = str(number)
        before = unknown.get(name)
        if isinstance(before, list):
            before.append(value)
        else:
            unknown[name] = value if before is None else [before, value]
        return at

    def _finished(self, message: Message, found: dict[int, Any], unknown: dict[str, Any]) -> Any:
        """The fields in the schema's order, with defaults, and well-known types converted."""
        named: dict[str, Any] = {}
        for number, field in message.fields.items():
            if number in found:
                named[field.name] = found[number]
            elif field.fills:
                named[field.name] = field.default()
        meaning = _MEANINGS.get(message.name)
        if meaning is not None and not unknown:
            return meaning(self, named)
        return named | unknown

    def any_of(self, given: dict[str, Any]) -> Any:
        """The message inside an `Any`, with its type's name, if the schema has that type."""
        url = given["type_url"]
        known = self.types.by_name.get(url.rpartition("/")[2])
        if known is None or self.packings == MOST_PACKINGS:
            return {"@type": url, "value": given["value"]}
        inside = _Reader(self.types, self.packings + 1)
        value = inside.message(known, given["value"], 0, len(given["value"]), DEEPEST // 2)[0]
        return {"@type": url, **(value if isinstance(value, dict) else {"value": value})}


_NOTHING: Final = Message("")


def _key(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _text(data: bytes) -> str | bytes:
    """Text, or bytes, which old writers put there too."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


# -- well-known types


def _instant(_: _Reader, given: dict[str, Any]) -> Instant:
    return Instant(given["seconds"] * 1_000_000_000 + given["nanos"])


def _duration(_: _Reader, given: dict[str, Any]) -> str:
    ns = given["seconds"] * 1_000_000_000 + given["nanos"]
    seconds, rest = divmod(abs(ns), 1_000_000_000)
    return f"{'-' if ns < 0 else ''}{seconds}.{fraction(rest)}s"


def _of_struct(_: _Reader, given: dict[str, Any]) -> Any:
    for name in ("number_value", "string_value", "bool_value", "struct_value", "list_value"):
        if name in given:
            return given[name]
    return None


def _decimal(_: _Reader, given: dict[str, Any]) -> Any:
    if len(given["value"]) > LONGEST_DECIMAL or abs(given["scale"]) > LONGEST_DECIMAL:
        return given
    sign, digits, _none = Decimal(int.from_bytes(given["value"], "big", signed=True)).as_tuple()
    return Decimal((sign, digits, -given["scale"]))


_MEANINGS: Final[Mapping[str, Callable[[_Reader, dict[str, Any]], Any]]] = {
    "google.protobuf.Timestamp": _instant,
    "google.protobuf.Duration": _duration,
    "google.protobuf.Struct": lambda _, given: given["fields"],
    "google.protobuf.Value": _of_struct,
    "google.protobuf.ListValue": lambda _, given: given["values"],
    "google.protobuf.FieldMask": lambda _, given: ",".join(str(path) for path in given["paths"]),
    "google.protobuf.Any": lambda reader, given: reader.any_of(given),
    "confluent.type.Decimal": _decimal,
    **dict.fromkeys(proto_known.WRAPPERS, lambda _, given: given["value"]),
}
