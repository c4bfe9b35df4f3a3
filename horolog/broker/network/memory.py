"""Memory that peers can make the broker hold, counted over all connections, and what happens when a bound is reached.

Requests: records that wait to be written. At `queued.max.request.bytes` no connection that sends records is read from until some are
written. This ends by itself: only the disk has to catch up.

Unfinished requests: the received parts of incomplete frames. Waiting would not help, since a peer may never send the rest: at
`horolog.unfinished.requests.max.bytes` the connections that hold the most are closed.

Answers: records that had to be read, because they were converted or are short, and that peers have not taken yet. Data that stays in
files is not counted. The fuller `horolog.fetch.memory.max.bytes`, the less of them goes into one answer, down to a share that every
connection always has: slow peers do not make the answers of others much smaller. At the bound a connection that has not taken its
last answer is not read from; at twice the bound the connections that hold the most are closed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from horolog.protocol.frame_buffers import FrameBuffers

SHARE_LEFT = 0.75
"""Connections are closed until this share of the bound is in use, so that it is not reached again at once."""

SHARES = 256
"""Answers: every connection may always use the bound divided by this."""

CLOSE_AT_TIMES = 2
"""Answers: the multiple of the bound at which connections are closed."""


class Holder(Protocol):
    """A connection as its memory is counted."""

    def resume_if_allowed(self) -> None: ...
    def untaken_bytes(self) -> int: ...
    def cut(self, reason: str) -> None: ...


class RequestMemory:
    """Requests that wait to be written; connections stopped meanwhile are resumed in the order in which they stopped."""

    __slots__ = ("_resuming", "held_bytes", "limit_bytes", "stopped")

    def __init__(self, limit_bytes: float) -> None:
        self.limit_bytes = limit_bytes
        self.held_bytes = 0
        self.stopped: dict[Holder, None] = {}
        self._resuming = False

    def __repr__(self) -> str:
        return f"<RequestMemory {self.held_bytes} of {self.limit_bytes} bytes, {len(self.stopped)} stopped>"

    @property
    def is_full(self) -> bool:
        return self.held_bytes >= self.limit_bytes

    def stop(self, holder: Holder) -> None:
        """Note a stopped connection; its `resume_if_allowed` is called when there is room again."""
        self.stopped[holder] = None

    def resume(self) -> None:
        """Less is held than before: resume stopped connections while there is room."""
        if self._resuming:
            return
        self._resuming = True  # a resumed connection may release more: the loop here sees that, too
        try:
            while self.stopped and not self.is_full:
                holder = next(iter(self.stopped))
                del self.stopped[holder]
                holder.resume_if_allowed()
        finally:
            self._resuming = False


class UnfinishedRequests:
    """How much each connection holds of a request that is not whole yet."""

    __slots__ = ("_sizes", "limit_bytes", "total_bytes")

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.total_bytes = 0
        self._sizes: dict[Holder, int] = {}

    def __repr__(self) -> str:
        return f"<UnfinishedRequests {self.total_bytes} of {self.limit_bytes} bytes in {len(self._sizes)}>"

    def changed(self, holder: Holder, size_bytes: int) -> None:
        self.total_bytes += size_bytes - self._sizes.pop(holder, 0)
        if size_bytes:
            self._sizes[holder] = size_bytes
        if self.total_bytes > self.limit_bytes:
            reason = f"horolog.unfinished.requests.max.bytes ({self.limit_bytes}) is reached, and this connection holds the most"
            _cut_largest(self._sizes, self.total_bytes - int(self.limit_bytes * SHARE_LEFT), reason, self._forget)

    def _forget(self, holder: Holder) -> None:
        self.total_bytes -= self._sizes.pop(holder, 0)


class AnswerMemory:
    """Answers that peers have not taken. Only connections whose peers fell behind are in it."""

    __slots__ = ("_sizes", "limit_bytes", "total_bytes")

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.total_bytes = 0
        self._sizes: dict[Holder, int] = {}

    def __repr__(self) -> str:
        return f"<AnswerMemory {self.total_bytes} of {self.limit_bytes} bytes in {len(self._sizes)}>"

    @property
    def is_tight(self) -> bool:
        return self.total_bytes >= self.limit_bytes

    @property
    def room_bytes(self) -> int:
        """How much of an answer may be in memory."""
        return max(self.limit_bytes // SHARES, self.limit_bytes - self.total_bytes)

    def changed(self, holder: Holder, size_bytes: int) -> None:
        self.total_bytes += size_bytes - self._sizes.pop(holder, 0)
        if size_bytes:
            self._sizes[holder] = size_bytes
        if self.total_bytes > self.limit_bytes:
            self._relieve()

    def _relieve(self) -> None:
        """Peers take answers without notice: count again, and close only if it is still too much."""
        for holder in self._sizes:
            self._sizes[holder] = holder.untaken_bytes()
        self.total_bytes = sum(self._sizes.values())
        most_bytes = self.limit_bytes * CLOSE_AT_TIMES
        if self.total_bytes > most_bytes:
            reason = f"the client does not read its responses, and {CLOSE_AT_TIMES} times horolog.fetch.memory.max.bytes is reached"
            _cut_largest(self._sizes, self.total_bytes - int(most_bytes * SHARE_LEFT), reason, self._forget)

    def _forget(self, holder: Holder) -> None:
        self.total_bytes -= self._sizes.pop(holder, 0)


def _cut_largest(sizes: dict[Holder, int], surplus_bytes: int, reason: str, forget: Callable[[Holder], None]) -> None:
    """Close connections, the largest first, until `surplus_bytes` are free."""
    for holder in sorted(sizes, key=sizes.__getitem__, reverse=True):
        if surplus_bytes <= 0:
            return
        surplus_bytes -= sizes[holder]
        forget(holder)
        holder.cut(reason)


class PeerMemory:
    """The three of them, and the buffers of large requests, shared by all connections of a broker."""

    __slots__ = ("answers", "buffers", "requests", "unfinished")

    def __init__(self, requests_bytes: float, unfinished_bytes: int, answers_bytes: int) -> None:
        self.requests = RequestMemory(requests_bytes)
        self.unfinished = UnfinishedRequests(unfinished_bytes)
        self.answers = AnswerMemory(answers_bytes)
        self.buffers = FrameBuffers()

    def __repr__(self) -> str:
        return f"<PeerMemory {self.requests!r} {self.unfinished!r} {self.answers!r}>"
