"""What one partition of `__consumer_offsets` says of groups: the last value of each key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, TypeVar

K = TypeVar("K")
V = TypeVar("V")

MemberKey = tuple[str, str]
"""The ids of a group and of a member."""


class OfGroup(Protocol):
    """A key of which a group has one."""

    group_id: str


class OfMember(OfGroup, Protocol):
    """A key of which each member of a group has one."""

    member_id: str


class StoredEntries:
    """Keys with their last values, by the class of the key."""

    def __init__(self) -> None:
        self._entries: dict[type, list[tuple[Any, Any]]] = {}

    def __repr__(self) -> str:
        return f"<StoredEntries of {len(self._entries)} kinds>"

    def add(self, key: object, value: object) -> None:
        self._entries.setdefault(type(key), []).append((key, value))

    def of(self, kind: type[K], value_kind: type[V]) -> Iterator[tuple[K, V]]:
        for key, value in self._entries.get(kind, ()):
            assert isinstance(value, value_kind)
            yield key, value

    def by_group(self, kind: type[OfGroup], value_kind: type[V]) -> Iterator[tuple[str, V]]:
        return ((key.group_id, value) for key, value in self.of(kind, value_kind))

    def by_member(self, kind: type[OfMember], value_kind: type[V]) -> Iterator[tuple[MemberKey, V]]:
        return (((key.group_id, key.member_id), value) for key, value in self.of(kind, value_kind))
