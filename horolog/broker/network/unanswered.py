"""The requests of one conversation that have no answer yet, and the answers that wait behind them: answers leave in the order of requests."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from horolog.broker.handlers.context import RequestContext
    from horolog.protocol.primitives import Part

WRITE_HIGH_WATER_BYTES: Final = 4 * 1024 * 1024
"""A peer that has not taken this much of its answers, or has this much waiting behind one answer, is not read from."""


class Unanswered:
    """The bounds may change: while a handshake lasts there is one request at a time."""

    __slots__ = ("held_back_bytes", "max_bytes", "max_requests", "queue", "size_bytes")

    def __init__(self, max_requests: int, max_bytes: int) -> None:
        self.max_requests = max_requests
        self.max_bytes = max_bytes
        self.queue: deque[RequestContext] = deque()
        self.size_bytes = 0  # of the requests
        self.held_back_bytes = 0  # of answers that are ready and have to wait for one before them

    def __repr__(self) -> str:
        return f"<Unanswered {len(self.queue)} requests of {self.size_bytes} bytes>"

    def __len__(self) -> int:
        return len(self.queue)

    def leaves_now(self, context: RequestContext) -> bool:
        """Whether an answer to this request could leave at once; a request that is being served is not queued yet."""
        return not self.queue or self.queue[0] is context

    @property
    def is_too_much(self) -> bool:
        return (
            len(self.queue) >= self.max_requests
            or self.size_bytes >= self.max_bytes
            or self.held_back_bytes > WRITE_HIGH_WATER_BYTES
        )

    def add(self, context: RequestContext) -> None:
        """Queue the newest request: without an answer, or with one that has to wait."""
        self.queue.append(context)
        self.size_bytes += context.size_bytes
        if context.parts:
            self.held_back_bytes += sum(map(len, context.parts))

    def release(self, output: list[Part]) -> int:
        """Move the answers that wait for no other to `output`; return how many `held_bytes` their requests had."""
        queue = self.queue
        released_bytes = 0
        context = None
        while queue and (parts := queue[0].parts) is not None:
            context = queue.popleft()
            self.size_bytes -= context.size_bytes
            released_bytes += context.held_bytes
            output += parts
        if self.held_back_bytes or context is None:  # an answer that is not the first in line waits, or did
            self.held_back_bytes = sum(sum(map(len, one.parts)) for one in queue if one.parts)
        return released_bytes

    def abandon(self) -> int:
        """The peer is gone: abandon its requests; return how many `held_bytes` they had."""
        abandoned, self.queue = self.queue, deque()
        self.size_bytes = self.held_back_bytes = 0
        for context in abandoned:
            context.abandon()
        return sum(context.held_bytes for context in abandoned)
