"""Lets connections send old data one after the other, one in each turn of the event loop: requests that come meanwhile wait for one of them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable


class SendTurns:
    """The turns of the connections of one listener."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_taken = False

    def __repr__(self) -> str:
        return f"<SendTurns: {len(self._waiting)} connections wait>"

    def take(self, go_on: Callable[[], None]) -> bool:
        """Whether the caller may send now; if not, `go_on` is called in a later turn, and asks again."""
        if self._is_taken:
            self._waiting.append(go_on)
            return False
        self._is_taken = True
        asyncio.get_running_loop().call_soon(self._next)
        return True

    def _next(self) -> None:
        self._is_taken = False
        while self._waiting and not self._is_taken:  # a connection that has closed takes no turn
            self._waiting.popleft()()
