"""Random messages of any class and version, from a seed: every field that the version has gets a value, nulls included."""

import random
from collections.abc import Iterator
from typing import Any

from horolog.protocol.apis import API
from horolog.protocol.messages import (
    consumer_protocol,
    coordinator_records,
    headers,
    share_state_records,
    streams_group_records,
)
from horolog.protocol.wire import ArrayType, Field, Message, Struct, StructType, WireType

LETTERS = "abcxyz-._ßéλ€漢😀"


def every_message() -> list[type[Message]]:
    """All message classes."""
    families = (consumer_protocol, coordinator_records, headers, share_state_records, streams_group_records)
    others = [each for family in families for each in vars(family).values() if _is_message(each)]
    return [each for api in API.values() for each in (api.request, api.response)] + others


def every_pair() -> Iterator[tuple[type[Message], int]]:
    for cls in every_message():
        for version in range(cls.VERSIONS.first, cls.VERSIONS.last + 1):
            yield cls, version


def random_message(cls: type[Message], version: int, chance: random.Random) -> Any:
    return _struct(cls, version, chance)


def _is_message(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Message) and value is not Message


def _struct(cls: type[Struct], version: int, chance: random.Random) -> Struct:
    made = cls()
    for name, declared in cls.FIELDS.items():
        if version in declared.versions and (declared.tag is None or chance.random() < 0.6):
            setattr(made, name, _field(declared, version, chance))
    return made


def _field(declared: Field, version: int, chance: random.Random) -> Any:
    if version in declared.nullable and chance.random() < 0.25:
        return None
    return _value(declared.type, version, chance)


def _value(wire_type: WireType[Any], version: int, chance: random.Random) -> Any:
    if isinstance(wire_type, ArrayType):
        return [_value(wire_type.element, version, chance) for _ in range(chance.choice((0, 1, 1, 2, 3)))]
    if isinstance(wire_type, StructType):
        return _struct(wire_type.struct, version, chance)
    if wire_type.name == "string":
        return "".join(chance.choices(LETTERS, k=chance.choice((0, 1, 5, 40, 130))))
    if wire_type.name in {"bytes", "records"}:
        return chance.randbytes(chance.choice((0, 1, 5, 200)))
    return _fixed(wire_type, chance)


def _fixed(wire_type: WireType[Any], chance: random.Random) -> Any:
    if wire_type.name == "bool":
        return chance.random() < 0.5
    if wire_type.name == "float64":
        return chance.uniform(-1e9, 1e9)
    if wire_type.name == "uuid":
        return chance.randbytes(16)
    if wire_type.name.startswith("u"):
        return chance.randrange(1 << wire_type.size * 8)
    half = 1 << wire_type.size * 8 - 1
    return chance.choice((0, 1, -1, half - 1, -half, chance.randrange(-half, half)))
