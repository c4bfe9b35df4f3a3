"""What a socket has not taken of the answers to its peer, in order: parts in memory, and parts that stay in their files until they leave."""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Iterable

from horolog.protocol.primitives import Buffer, Part, Unread

MORE_FOLLOWS = getattr(socket, "MSG_MORE", 0)
"""Has the system put a head and the slice behind it into the same packets: a consumer wakes once for both."""


class WaitingParts:
    """Files stay open as long as parts of them wait."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: deque[Part] = deque()

    def __repr__(self) -> str:
        return f"<WaitingParts {len(self._parts)}, {self.memory_bytes} bytes in memory and {self.file_bytes} in files>"

    def __len__(self) -> int:
        return len(self._parts)

    @property
    def memory_bytes(self) -> int:
        return sum(len(part) for part in self._parts if not isinstance(part, Unread))

    @property
    def file_bytes(self) -> int:
        return sum(len(part) for part in self._parts if isinstance(part, Unread))

    @property
    def takes_turns(self) -> bool:
        return any(takes_turns(part) for part in self._parts)

    def add(self, parts: Iterable[Part]) -> None:
        """Behind what waits already. Raises StorageFault."""
        for part in parts:
            if isinstance(part, Unread):
                part.keep()
            self._parts.append(part)

    def send(self, descriptor: int) -> None:
        """Let the system send as much as a socket takes. Raises StorageFault."""
        parts = self._parts
        while parts:
            part = parts[0]
            sent_bytes = send_part(descriptor, part, is_last=len(parts) == 1)
            if sent_bytes < 0:
                return
            if isinstance(part, Unread) or sent_bytes == len(part):
                _let_go(parts.popleft())
            else:
                parts[0] = memoryview(part)[sent_bytes:]
                return

    def take(self, most_bytes: int) -> bytes:
        """Remove and return the first bytes. Raises StorageFault."""
        parts, taken, size_bytes = self._parts, [], 0
        while parts and size_bytes < most_bytes:
            part = parts[0]
            wanted_bytes = most_bytes - size_bytes
            if isinstance(part, Unread):
                piece: Buffer = part.take(wanted_bytes)
                is_over = not len(part)
            else:
                piece = memoryview(part)[:wanted_bytes]
                is_over = len(piece) == len(part)
                parts[0] = memoryview(part)[len(piece) :]
            taken.append(piece)
            size_bytes += len(piece)
            if is_over:
                _let_go(parts.popleft())
        return b"".join(taken)

    def drop(self) -> None:
        """Drop all parts."""
        while self._parts:
            _let_go(self._parts.popleft())


def send_part(descriptor: int, part: Part, *, is_last: bool) -> int:
    """Send a part as far as the socket takes it. In memory: returns the bytes taken. In a file: returns 0 if all has left, else -1.

    A part that is not the last one may leave together with the next.
    """
    if isinstance(part, Unread):
        return 0 if part.send(descriptor) else -1
    try:
        return os.write(descriptor, part) if is_last else _send_with_next(descriptor, part)
    except (BlockingIOError, ConnectionError):  # the transport reports a broken connection
        return 0


def _send_with_next(descriptor: int, data: Buffer) -> int:
    borrowed = socket.SocketType(socket.AF_INET, socket.SOCK_STREAM, 0, descriptor)
    try:
        return borrowed.send(data, MORE_FOLLOWS)
    finally:
        borrowed.detach()


def takes_turns(part: Part) -> bool:
    return isinstance(part, Unread) and part.takes_turns()


def _let_go(part: Part) -> None:
    if isinstance(part, Unread):
        part.let_go()
