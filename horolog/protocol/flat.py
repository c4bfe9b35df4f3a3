"""Structs, and the tuples that stand for the most frequent of them (see `compile.flat_decoder`): code that reads and changes
them by these functions need not know which it has.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from operator import attrgetter, itemgetter
from typing import Any, TypeVar

from horolog.protocol.wire import ArrayType, Struct, StructType, WireType

S = TypeVar("S", bound=Struct)


def flat_of(struct: Struct) -> tuple[Any, ...]:
    """The fields of a struct in the order of their declaration, structs in them flat as well."""
    return tuple(
        _each(declared.type, getattr(struct, name), lambda _, value: flat_of(value))
        for name, declared in struct.FIELDS.items()
    )


def struct_of(cls: type[S], flat: tuple[Any, ...]) -> S:
    """The struct that a tuple of its fields stands for."""
    return cls(
        **{
            name: _each(declared.type, value, struct_of)
            for (name, declared), value in zip(cls.FIELDS.items(), flat, strict=True)
        }
    )


def with_structs(respond: Callable[[S], Struct], cls: type[S], request: Any) -> Any:
    """The response of a function that knows structs alone; it is flat if the request is."""
    return flat_of(respond(struct_of(cls, request))) if isinstance(request, tuple) else respond(request)


def getter(cls: type[Struct], field: str, *, flat: bool) -> Callable[[Any], Any]:
    """A function that reads a field, for many values of one form."""
    return itemgetter(_place(cls, field)) if flat else attrgetter(field)


def value_of(cls: type[Struct], value: Any, field: str) -> Any:
    """The value of a field."""
    return value[_place(cls, field)] if isinstance(value, tuple) else getattr(value, field)


def values_of(cls: type[Struct], value: Any) -> list[Any]:
    """The values of all fields, in the order of their declaration."""
    return list(value) if isinstance(value, tuple) else [getattr(value, name) for name in cls.FIELDS]


def with_value(cls: type[Struct], value: Any, field: str, other: object) -> Any:
    """A copy with another value in a field; the original may be shared."""
    if isinstance(value, tuple):
        place = _place(cls, field)
        return (*value[:place], other, *value[place + 1 :])
    changed = copy(value)
    setattr(changed, field, other)
    return changed


def element_of(cls: type[Struct], array: str) -> type[Struct]:
    """The struct of an array's elements."""
    declared = cls.FIELDS[array].type
    assert isinstance(declared, ArrayType)
    assert isinstance(declared.element, StructType)
    return declared.element.struct


def _place(cls: type[Struct], field: str) -> int:
    return list(cls.FIELDS).index(field)


def _each(type_: WireType[Any], value: Any, change: Callable[[type[Struct], Any], Any]) -> Any:
    """A field's value with the structs in it changed."""
    if value is None:
        return None
    if isinstance(type_, StructType):
        return change(type_.struct, value)
    if isinstance(type_, ArrayType):
        return [_each(type_.element, one, change) for one in value]
    return value
