"""Which parts of objects are kept on this machine, and which of them go when they are too many: pure bookkeeping, least used first.

A block that a reader waits for stays until it has been read: else readers in different places of a log could take the blocks of one another
for ever. These blocks may exceed the limit by `MOST_AWAITED_BYTES`: some readers have gone, and come for theirs no more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

WHOLE = -1
"""The number of the only block of an object that is kept whole."""
MOST_AWAITED_BYTES = 64 << 20


class Block(NamedTuple):
    """A part of an object: the block of that number, or the whole object."""

    key: str
    number: int


class BlockLedger:
    """The blocks that are kept, in the order of their last use. Their sizes stay below a limit, except for the newest block alone."""

    __slots__ = ("_awaited", "_limit_bytes", "_sizes", "_unread", "kept_bytes", "unread_bytes")

    def __init__(self, limit_bytes: Callable[[], int]) -> None:
        self._limit_bytes = limit_bytes
        self._sizes: dict[Block, int] = {}
        self._awaited: set[Block] = set()
        self._unread: set[Block] = set()
        self.kept_bytes = 0
        self.unread_bytes = 0
        """Of the blocks that are kept and have not been read."""

    def __repr__(self) -> str:
        return f"<BlockLedger of {len(self._sizes)} blocks, {self.kept_bytes} bytes>"

    def __len__(self) -> int:
        return len(self._sizes)

    def __contains__(self, block: Block) -> bool:
        return block in self._sizes

    def size_of(self, block: Block) -> int:
        """0 for a block that is not kept."""
        return self._sizes.get(block, 0)

    def use(self, block: Block) -> None:
        """It goes later than all others from now on."""
        size_bytes = self._sizes[block] = self._sizes.pop(block)
        self._expect_no_reader(block, size_bytes)

    def add(self, block: Block, size_bytes: int, *, is_awaited: bool = False) -> list[Block]:
        """Keep a block, which a reader may wait for; returns those that go for it."""
        self.drop(block)
        self._sizes[block] = size_bytes
        self._unread.add(block)
        self.kept_bytes += size_bytes
        self.unread_bytes += size_bytes
        if is_awaited:
            self._awaited.add(block)
        going = self._going(block)
        for one in going:
            self.drop(one)
        return going

    def _going(self, newest: Block) -> list[Block]:
        going: list[Block] = []
        over_bytes = self.kept_bytes - self._limit_bytes()
        for one, size_bytes in self._sizes.items():
            if over_bytes <= 0 or one == newest:
                break
            if one not in self._awaited or over_bytes > MOST_AWAITED_BYTES:
                going.append(one)
                over_bytes -= size_bytes
        return going

    def drop(self, block: Block) -> None:
        size_bytes = self._sizes.pop(block, 0)
        self.kept_bytes -= size_bytes
        self._expect_no_reader(block, size_bytes)

    def _expect_no_reader(self, block: Block, size_bytes: int) -> None:
        """It has been read, or has gone."""
        if block in self._unread:
            self._unread.remove(block)
            self.unread_bytes -= size_bytes
        self._awaited.discard(block)
