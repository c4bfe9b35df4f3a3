"""Converts between structs and the tuples that stand for the most frequent of them: see `compile.flat_decoder`."""

from __future__ import annotations

from collections.abc import Callable
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


def _each(type_: WireType[Any], value: Any, change: Callable[[type[Struct], Any], Any]) -> Any:
    """A field's value with the structs in it changed."""
    if value is None:
        return None
    if isinstance(type_, StructType):
        return change(type_.struct, value)
    if isinstance(type_, ArrayType):
        return [_each(type_.element, one, change) for one in value]
    return value
