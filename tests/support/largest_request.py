"""The largest valid requests: for every API and version, one array filled up to a request of some megabytes."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from typing import Any

from horolog.protocol.apis import API, ApiKey
from horolog.protocol.compile import element_encoder
from horolog.protocol.compile_encode import Encoded
from horolog.protocol.wire import ArrayType, StructType, binary, record_set, string
from tests.support.every_request import OPEN

Path = tuple[str, ...]

DISTINCT = 2_000
"""Elements that are made; they are repeated until there are enough."""


def arrays_of(key: ApiKey, version: int) -> list[Path]:
    """The arrays of a request that can be long, from the outermost inwards; an empty path if there is none."""
    return list(_arrays(API[key].request, version, ())) or [()]


def _arrays(struct_: Any, version: int, path: Path) -> Iterator[Path]:
    for name, declared in struct_.FIELDS.items():
        if version in declared.versions and isinstance(declared.type, ArrayType) and declared.tag is None:
            yield (*path, name)
            if isinstance(declared.type.element, StructType):
                yield from _arrays(declared.type.element.struct, version, (*path, name))


def largest_frame(
    key: ApiKey, version: int, path: Path, *, elements: int, size_bytes: int, rng: random.Random
) -> bytes:
    """A frame whose array at `path` has the given number of elements, or as many as fit the size; half of the time all have one name."""
    builder = _Builder(key, version, elements, size_bytes, rng)
    body = builder.body(path)
    header = struct.pack(">hhih4s", key, version, 1, 4, b"many")
    header += b"\0" * (API[key].request_header_version(version) - 1)
    return struct.pack(">i", len(header) + len(body)) + header + body


class _Builder:
    def __init__(self, key: ApiKey, version: int, elements: int, size_bytes: int, rng: random.Random) -> None:
        self._request = API[key].request
        self._version = version
        self._elements = elements
        self._size_bytes = size_bytes
        self._same = rng.random() < 0.5

    def body(self, path: Path) -> bytes:
        encode = element_encoder(self._request, self._version, (), flat=False)
        return encode([self._holder(self._request, path, ())])

    def _holder(self, struct_: Any, path: Path, above: Path) -> Any:
        """One element in each array on the path, and many in the last."""
        made = _filled(struct_, self._version, 0)
        if not path:
            return made
        name, *inner = path
        element = struct_.FIELDS[name].type.element
        if inner:
            setattr(made, name, [self._holder(element.struct, tuple(inner), (*above, name))])
        elif isinstance(element, StructType):
            encode = element_encoder(self._request, self._version, (*above, name), flat=False)
            numbers = [0] if self._same else range(DISTINCT)
            data = encode([_filled(element.struct, self._version, number) for number in numbers])
            each = len(data) / len(numbers)
            times = max(1, int(min(self._elements, self._size_bytes / each)) // len(numbers))
            many = Encoded()
            many.add(times * len(numbers), data * times)
            setattr(made, name, many)
        else:
            width = element.size or 8
            count = min(self._elements, self._size_bytes // width)
            setattr(
                made, name, [_value(name, element, 0 if self._same else number % DISTINCT) for number in range(count)]
            )
        return made


def _filled(struct_: Any, version: int, number: int) -> Any:
    """A struct with a value in each field; lists have one element."""
    made = struct_()
    for name, declared in struct_.FIELDS.items():
        if version not in declared.versions or declared.tag is not None:
            continue
        type_ = declared.type
        if isinstance(type_, ArrayType):
            inner = type_.element
            one = (
                _filled(inner.struct, version, number) if isinstance(inner, StructType) else _value(name, inner, number)
            )
            setattr(made, name, [one])
        elif not isinstance(type_, StructType):
            setattr(made, name, _value(name, type_, number))
    return made


TIMES = ("timeout_ms", "max_wait_ms")
FIXED = {
    "acks": 1,
    "allow_auto_topic_creation": False,
    "committed_leader_epoch": -1,
    "cursor": None,
    "key_type": 0,
    "member_epoch": 0,
    "num_partitions": 1,
    "operation": 3,
    "permission_type": 3,
    "rebalance_timeout_ms": 10_000,
    "replica_id": -1,
    "replication_factor": 1,
    "resource_type": 2,
    "response_partition_limit": 2_000,
    "session_epoch": -1,
    "session_timeout_ms": 10_000,
    "validate_only": True,
}


def _value(name: str, type_: Any, number: int) -> Any:
    """A valid value for its place; numbers tell elements apart."""
    if name in FIXED:
        return FIXED[name]
    if type_ is string:
        return OPEN if number == 0 else f"n{number}"
    if type_ in (binary, record_set):
        return b""
    if type_.name == "uuid":
        return bytes(16)
    if type_.name == "bool":
        return False
    if type_.name == "float64":
        return 1.0
    if name in TIMES:
        return 100
    if "pattern_type" in name:
        return 3
    if name.endswith("_filter") or "resource" in name:
        return 2
    return number % 100 if type_.size == 1 else number
