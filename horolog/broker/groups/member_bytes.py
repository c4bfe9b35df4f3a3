"""Counts the bytes that a group keeps for its members: the description of each, and the assignments of all of them."""

from __future__ import annotations


class MemberBytes:
    """The bytes of one group."""

    __slots__ = ("_of", "_total", "assigned")

    def __init__(self) -> None:
        self._of: dict[str, int] = {}
        self._total = 0
        self.assigned = 0

    def __repr__(self) -> str:
        return f"<MemberBytes: {self.total} for {len(self._of)} members>"

    @property
    def total(self) -> int:
        return self._total + self.assigned

    def of(self, member_id: str) -> int:
        return self._of.get(member_id, 0)

    def set(self, member_id: str, size_bytes: int) -> None:
        """Set the size of a member's description."""
        self._total += size_bytes - self._of.get(member_id, 0)
        self._of[member_id] = size_bytes

    def drop(self, member_id: str) -> None:
        self._total -= self._of.pop(member_id, 0)
