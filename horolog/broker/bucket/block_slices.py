"""Bytes of neighbouring blocks that the kernel sends from their files: they are not copied through this process."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from horolog.protocol.primitives import Unread

SENT_IN_A_TURN_BYTES = 1 << 20


class BlockSlices(Unread):
    """Slices of kept files, one for each block. A block may leave the cache before its slice has left: its file stays open until then."""

    __slots__ = ("_left_bytes", "_slices")

    def __init__(self, kept: Iterable[Unread]) -> None:
        self._slices = deque(kept)
        self._left_bytes = sum(map(len, self._slices))

    def __repr__(self) -> str:
        return f"<BlockSlices: {len(self)} bytes of {len(self._slices)} blocks>"

    def __len__(self) -> int:
        return self._left_bytes

    def read(self) -> bytes:
        return b"".join(one.read() for one in self._slices)

    def take(self, size_bytes: int) -> bytes:
        taken: list[bytes] = []
        while self._slices and size_bytes:
            taken.append(self._slices[0].take(size_bytes))
            size_bytes -= len(taken[-1])
            self._left_bytes -= len(taken[-1])
            if not len(self._slices[0]):
                self._slices.popleft().let_go()
        return b"".join(taken)

    def send(self, descriptor: int) -> bool:
        """As much as the socket takes, but little more than fits into a turn."""
        ends_at_bytes = self._left_bytes - SENT_IN_A_TURN_BYTES
        while self._slices and self._left_bytes > ends_at_bytes:
            first = self._slices[0]
            before_bytes = len(first)
            has_left = first.send(descriptor)
            self._left_bytes -= before_bytes - len(first)
            if not has_left:
                return False
            self._slices.popleft().let_go()
        return not self._slices

    def keep(self) -> bool:
        """They are kept from the beginning."""
        return True

    def let_go(self) -> None:
        self._left_bytes = 0
        while self._slices:
            self._slices.popleft().let_go()

    def takes_turns(self) -> bool:
        return True

    def __del__(self) -> None:
        """An answer may be dropped before it is sent."""
        self.let_go()
