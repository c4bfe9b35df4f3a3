"""Counts the bytes that a group keeps for its members: the description of each, and the assignments of all of them.

The bytes of a member belong to the principal that sent them, those of the assignments to the leader's. Bytes that were read from
the log belong to no principal until the member sends them again.
"""

from __future__ import annotations

from typing import NamedTuple

from horolog.broker.base.principal import Principal

Owner = Principal | None


class OwnedBytes(NamedTuple):
    """A number of bytes, and the principal that they belong to."""

    size_bytes: int = 0
    owner: Owner = None


NOTHING = OwnedBytes()


class MemberBytes:
    """The bytes of one group."""

    __slots__ = ("_of", "_total", "assigned", "by_owner")

    def __init__(self) -> None:
        self._of: dict[str, OwnedBytes] = {}
        self._total = 0
        self.assigned = NOTHING
        self.by_owner: dict[Principal, int] = {}

    def __repr__(self) -> str:
        return f"<MemberBytes: {self.total} for {len(self._of)} members>"

    @property
    def total(self) -> int:
        return self._total

    def of(self, member_id: str) -> OwnedBytes:
        return self._of.get(member_id, NOTHING)

    def set(self, member_id: str, size_bytes: int, owner: Owner = None) -> None:
        """Set the size of a member's description."""
        self._replace(self.of(member_id), OwnedBytes(size_bytes, owner))
        self._of[member_id] = OwnedBytes(size_bytes, owner)

    def drop(self, member_id: str) -> None:
        self._replace(self._of.pop(member_id, NOTHING), NOTHING)

    def assign(self, size_bytes: int, owner: Owner = None) -> None:
        """Set the size of all assignments."""
        self._replace(self.assigned, OwnedBytes(size_bytes, owner))
        self.assigned = OwnedBytes(size_bytes, owner)

    def _replace(self, before: OwnedBytes, after: OwnedBytes) -> None:
        self._total += after.size_bytes - before.size_bytes
        for owner, more_bytes in ((before.owner, -before.size_bytes), (after.owner, after.size_bytes)):
            if owner is not None:
                left = self.by_owner.get(owner, 0) + more_bytes
                if left:
                    self.by_owner[owner] = left
                else:
                    self.by_owner.pop(owner, None)
