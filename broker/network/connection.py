"""One client connection: bytes in, requests dispatched as they arrive, answers out in the order of their requests.

Everything that arrived is parsed and handled in one `data_received`. What waits for disk or for new data keeps its place
in `_unanswered`, and later answers queue behind it. A peer that does not read, or has too much unanswered, is not
read from any more: frames that had already arrived are kept in `_backlog`, and its socket does the rest.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, cast

from protocol.errors import FrameError, ProtocolError
from protocol.framing import FrameReader

if TYPE_CHECKING:
    from broker.handlers.context import RequestContext
    from broker.network.dispatch import Dispatcher
    from broker.network.listener import ConnectionLimits, Listener

log = logging.getLogger(__name__)

WRITE_HIGH_WATER_BYTES = 4 * 1024 * 1024


class Connection(asyncio.Protocol):
    """State: open until `abort` or until the peer closes; paused while it owes us a read or we owe it too much."""

    __slots__ = (
        "_backlog",
        "_dispatcher",
        "_limits",
        "_listener",
        "_paused",
        "_reader",
        "_transport",
        "_unanswered",
        "_unanswered_bytes",
        "_write_blocked",
        "is_active",
        "listener",
        "peer_host",
    )

    def __init__(self, listener: Listener, dispatcher: Dispatcher, limits: ConnectionLimits) -> None:
        self._listener = listener
        self._dispatcher = dispatcher
        self._reader = FrameReader(limits.max_request_bytes)
        self._transport: asyncio.Transport | None = None
        self._unanswered: deque[RequestContext] = deque()
        self._unanswered_bytes = 0
        self._limits = limits
        self._backlog: deque[memoryview] | None = None
        self._paused = False
        self._write_blocked = False
        self.is_active = True  # since the listener's last sweep
        self.listener = listener.name
        self.peer_host = ""

    def __repr__(self) -> str:
        state = "closed" if self._transport is None else "paused" if self._paused else "open"
        return f"<Connection {self.peer_host} on {self.listener} {state}, {len(self._unanswered)} unanswered>"

    # -- events of the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are no subclass of it
        peer = transport.get_extra_info("peername")
        self.peer_host = str(peer[0]) if peer else ""
        refusal = self._listener.admit(self)
        if refusal is not None:
            self.abort(refusal)
            return
        self._transport.set_write_buffer_limits(high=WRITE_HIGH_WATER_BYTES)
        connected = transport.get_extra_info("socket")
        if connected is not None:
            self._listener.tune(connected)

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - however it ended, it has ended
        self._transport = None
        self._listener.forget(self)
        for context in self._unanswered:
            context.abandon()
        self._unanswered.clear()
        self._unanswered_bytes = 0
        self._backlog = None

    def data_received(self, data: bytes) -> None:
        self.is_active = True
        try:
            frames = self._reader.feed(data)
        except FrameError as error:
            self._take(error.frames)
            self.abort(str(error))
        else:
            self._take(frames)

    def pause_writing(self) -> None:
        self._write_blocked = True
        self._pause()

    def resume_writing(self) -> None:
        self._write_blocked = False
        self._resume_if_allowed()

    # -- requests and answers

    def _take(self, frames: list[memoryview]) -> None:
        """Handle what arrived, or keep it while the peer has to catch up."""
        if self._paused:
            self._keep_for_later(frames)
            return
        for place, frame in enumerate(frames):
            if not self._handle(frame):
                self._keep_for_later(frames[place + 1 :])
                return

    def _handle(self, frame: memoryview) -> bool:
        """Serve one request; whether the next one may be served at once."""
        transport = self._transport
        if transport is None:
            return False
        try:
            context = self._dispatcher.dispatch(frame, self)
        except ProtocolError as error:
            self.abort(str(error))
            return False
        except Exception:
            log.exception("a request of %s failed inside the broker; its connection is closed", self.peer_host)
            self.abort("internal error")
            return False
        if context.parts is None or self._unanswered:
            self._unanswered.append(context)
            self._unanswered_bytes += context.size_bytes
            if self._owed_too_much:
                self._pause()
        elif context.parts:
            transport.writelines(context.parts)
        return not self._paused

    def answered(self) -> None:
        """A request that had to wait has its answer: send what is now complete, in order."""
        unanswered = self._unanswered
        while unanswered and unanswered[0].parts is not None:
            context = unanswered.popleft()
            self._unanswered_bytes -= context.size_bytes
            if context.parts and self._transport is not None:
                self._transport.writelines(context.parts)
        if self._paused:
            self._resume_if_allowed()

    def abort(self, reason: str) -> None:
        """Close on our side, saying why in one line of the log."""
        if self._transport is None:
            return
        log.info("closing the connection of %s on %s: %s", self.peer_host or "a client", self.listener, reason)
        self.close()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
            self._transport = None

    @property
    def idle(self) -> bool:
        return not self._unanswered and not self._backlog

    @property
    def unanswered_count(self) -> int:
        return len(self._unanswered)

    # -- flow control

    @property
    def _owed_too_much(self) -> bool:
        return (
            len(self._unanswered) >= self._limits.max_unanswered_requests
            or self._unanswered_bytes >= self._limits.max_unanswered_bytes
        )

    def _keep_for_later(self, frames: list[memoryview]) -> None:
        if frames and self._transport is not None:
            if self._backlog is None:
                self._backlog = deque()
            self._backlog.extend(frames)

    def _pause(self) -> None:
        if not self._paused:
            self._paused = True
            if self._transport is not None:
                self._transport.pause_reading()

    def _resume_if_allowed(self) -> None:
        if self._write_blocked or not self._paused or self._owed_too_much:
            return
        self._paused = False
        while self._backlog and not self._paused:
            self._handle(self._backlog.popleft())
        if not self._paused and self._transport is not None:
            self._backlog = None
            self._transport.resume_reading()
