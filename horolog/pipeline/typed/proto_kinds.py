"""The Arrow type of a Protobuf message, and the conversion to it from the values that the decoder reads.

As in `from_protobuf`, enums are their names, an absent field is null if presence is tracked and else its default, unknown
fields and fields of messages without fields are left out. uint64 is a decimal, because no integer of Spark's holds it. Google's Timestamp
is a timestamp, wrappers are what they wrap; Duration and FieldMask are text, Struct, Value, ListValue and Any are JSON.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import pyarrow as pa

from horolog.client.decoding import proto_known
from horolog.client.decoding.proto_types import Field, Message
from horolog.client.decoding.values import DecodingError, as_json
from horolog.pipeline.typed import fitting
from horolog.pipeline.typed.ddl import TIMESTAMP
from horolog.pipeline.typed.fitting import Fit

_SCALARS: Final = {
    "double": pa.float64(),
    "float": pa.float32(),
    **dict.fromkeys(("int32", "sint32", "sfixed32"), pa.int32()),
    **dict.fromkeys(("uint32", "fixed32", "int64", "sint64", "sfixed64"), pa.int64()),
    **dict.fromkeys(("uint64", "fixed64"), pa.decimal128(20, 0)),
    "bool": pa.bool_(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "enum": pa.string(),
}
_GOOGLE: Final = "google.protobuf."
_AS_JSON: Final = frozenset(f"{_GOOGLE}{name}" for name in ("Struct", "Value", "ListValue", "Any"))
_AS_TEXT: Final = frozenset({f"{_GOOGLE}Duration", f"{_GOOGLE}FieldMask", "confluent.type.Decimal"})


class Typed(NamedTuple):
    """A type, and how a value is converted to it."""

    kind: pa.DataType
    fit: Fit


def typed(message: Message) -> Typed:
    """Of a whole record. Raises DecodingError for what Spark has no type for."""
    found = _message(message, ())
    if found is None:
        raise DecodingError(f"the message {message.name} has no field, and Spark has no type for that")
    return found


def _message(message: Message, inside: tuple[str, ...]) -> Typed | None:
    """None for one without fields."""
    if message.name in inside:
        raise DecodingError(f"the message {message.name} is recursive, and Spark has no type for that")
    known = _known(message)
    if known is not None:
        return known
    fields = [(one.name, _field(one, (*inside, message.name))) for one in message.fields.values()]
    there = [(name, one) for name, one in fields if one is not None]
    if not there:
        return None
    kind = pa.struct([(name, one.kind) for name, one in there])
    return Typed(kind, _struct([(name, one.fit) for name, one in there]))


def _known(message: Message) -> Typed | None:
    """A well-known type as what it means."""
    if message.name == f"{_GOOGLE}Timestamp":
        return Typed(TIMESTAMP, fitting.instant)
    if message.name in _AS_JSON:
        return Typed(pa.string(), as_json)
    if message.name in _AS_TEXT:
        return Typed(pa.string(), fitting.fitter(pa.string()))
    if message.name in proto_known.WRAPPERS:
        return _field(message.fields[1], ())
    return None


def _field(field: Field, inside: tuple[str, ...]) -> Typed | None:
    if field.is_map and field.message is not None:
        return _map(field.message, inside)
    one = _scalar(field) if field.message is None else _message(field.message, inside)
    if one is None or not field.repeated:
        return one
    fit = one.fit
    return Typed(pa.list_(one.kind), lambda value: [fit(each) for each in value])


def _scalar(field: Field) -> Typed:
    kind = _SCALARS[field.kind]
    if field.kind == "string":
        return Typed(kind, _text)
    return Typed(kind, _enum if field.kind == "enum" else fitting.fitter(kind))


def _text(value: Any) -> Any:
    if isinstance(value, bytes):
        raise DecodingError("a string that is not UTF-8")
    return value


def _enum(value: Any) -> Any:
    """A number without a name becomes its digits."""
    return str(value)


def _map(entry: Message, inside: tuple[str, ...]) -> Typed | None:
    """The decoder turns all keys into text, as in JSON."""
    key_field, value_field = entry.fields[1], entry.fields[2]
    value = _field(value_field, inside)
    if value is None:
        return None
    key_kind, fit = _SCALARS[key_field.kind], value.fit
    of_text = _key_of(key_field.kind)

    def make(given: Any) -> Any:
        return [(of_text(key), None if each is None else fit(each)) for key, each in given.items()]

    return Typed(pa.map_(key_kind, value.kind), make)


def _key_of(kind: str) -> Callable[[str], Any]:
    if kind == "string":
        return lambda key: key
    if kind == "bool":
        return lambda key: key == "true"
    fit = fitting.fitter(_SCALARS[kind])
    return lambda key: fit(int(key))


def _struct(fields: list[tuple[str, Fit]]) -> Fit:
    def fit(value: Any) -> Any:
        found = {}
        for name, each in fields:
            given = value.get(name)
            try:
                found[name] = None if given is None else each(given)
            except DecodingError as error:
                raise DecodingError(fitting.in_field(name, error)) from error
        return found

    return fit
