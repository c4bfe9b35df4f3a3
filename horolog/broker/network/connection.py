"""One client connection: bytes in, requests dispatched as they arrive, answers out in the order of their requests.

Everything that arrived is parsed and handled in one `data_received`. What waits for disk or for new data keeps its place
in `_unanswered`, and later answers queue behind it. A peer that does not read, or has too much unanswered, is not
read from any more: frames that had already arrived (one read from the socket) are kept in `_backlog`, and its socket does the rest.
What all connections hold together is bounded by `memory`.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import deque
from time import monotonic
from typing import TYPE_CHECKING, cast

from horolog.protocol.apis import ApiKey
from horolog.protocol.errors import FrameError, ProtocolError
from horolog.protocol.framing import FrameReader

if TYPE_CHECKING:
    from horolog.broker.handlers.context import RequestContext
    from horolog.broker.network.dispatch import Dispatcher
    from horolog.broker.network.listener import ConnectionLimits, Listener

log = logging.getLogger(__name__)

SLOW_ABOVE_BYTES = 64 * 1024
"""A peer that has left so much of its answers is counted as slow."""

WRITE_HIGH_WATER_BYTES = 4 * 1024 * 1024
"""One that has left so much is not read from."""

TURN_S = 0.002
LOOK_EVERY = 4
"""One peer is served for so long before others are, looked at after so many requests."""

CLOSE_GRACE_S = 5.0
"""Time in which a peer may take what it is still owed, once we close."""

PRODUCE = int(ApiKey.PRODUCE)
"""In both bytes of its key: the request that holds on to its frame until it is written."""


class Connection(asyncio.Protocol):
    """State: open until `abort` or until the peer closes; paused while it owes us a read or we owe it too much.

    Once the broker stops it is no longer served.
    """

    __slots__ = (
        "_backlog",
        "_dispatcher",
        "_held_back_bytes",
        "_is_served",
        "_limits",
        "_listener",
        "_memory",
        "_paused",
        "_paused_at",
        "_reader",
        "_requests",
        "_transport",
        "_unanswered",
        "_unanswered_bytes",
        "_write_blocked",
        "is_active",
        "listener",
        "peer_host",
        "unfinished_bytes",
        "unfinished_sweeps",
    )

    def __init__(self, listener: Listener, dispatcher: Dispatcher, limits: ConnectionLimits) -> None:
        self._listener = listener
        self._dispatcher = dispatcher
        self._reader = FrameReader(limits.max_request_bytes)
        self._transport: asyncio.Transport | None = None
        self._unanswered: deque[RequestContext] = deque()
        self._unanswered_bytes = 0
        self._held_back_bytes = 0  # of answers that are ready and have to wait for one before them
        self._limits = limits
        self._memory = limits.memory
        self._requests = limits.memory.requests
        self._backlog: deque[memoryview] | None = None
        self._paused = False
        self._paused_at = 0.0
        self._write_blocked = False
        self._is_served = True
        self.is_active = True  # since the listener's last sweep
        self.unfinished_bytes = 0
        self.unfinished_sweeps = 0  # of the listener, since the unfinished request began
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
        self._transport.set_write_buffer_limits(high=SLOW_ABOVE_BYTES)
        connected = transport.get_extra_info("socket")
        if connected is not None:
            self._listener.tune(connected)

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - however it ended, it has ended
        self._transport = None
        self._listener.forget(self)
        unanswered, self._unanswered = self._unanswered, deque()
        self._unanswered_bytes = 0
        self._backlog = None
        self._paused = False
        if self.unfinished_bytes:
            self._memory.unfinished.changed(self, 0)
        self._memory.answers.changed(self, 0)
        for context in unanswered:
            context.abandon()
        self._requests.held_bytes -= sum(context.held_bytes for context in unanswered)
        self._requests.resume()

    def data_received(self, data: bytes) -> None:
        self.is_active = True
        try:
            frames = self._reader.feed(data)
        except FrameError as error:
            self._take(error.frames)
            self.abort(str(error))
        else:
            pending_bytes = self._reader.pending_bytes
            if pending_bytes or self.unfinished_bytes:
                self._count_unfinished(pending_bytes, is_new=bool(frames))
            self._take(frames)

    def pause_writing(self) -> None:
        self._write_blocked = True
        self._count_untaken()

    def resume_writing(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return  # its buffer is empty because it was dropped
        self._write_blocked = False
        self._memory.answers.changed(self, self._held_back_bytes)
        self.resume_if_allowed()

    # -- requests and answers

    def _take(self, frames: list[memoryview]) -> None:
        """Handle what arrived, or keep it while the peer has to catch up."""
        requests = self._requests
        if requests.held_bytes >= requests.limit_bytes and frames and not self._paused:
            self._wait_for_room()
        if not self._paused:
            self._serve(deque(frames))
        elif self._backlog is None:
            self._backlog = deque(frames)
        else:
            self._backlog.extend(frames)

    def _serve(self, frames: deque[memoryview]) -> None:
        """Handle them in order, as long as the peer may be served and it is still its turn; the rest is kept."""
        ends = monotonic() + TURN_S if len(frames) > LOOK_EVERY else math.inf
        count = 0
        while frames:
            if not self._handle(frames.popleft()):
                break
            count += 1
            if not count % LOOK_EVERY and frames and monotonic() > ends:
                self._end_turn()
                break
        if frames and self._transport is not None:
            self._backlog = frames

    def _end_turn(self) -> None:
        """Let others be served before the rest of what this peer has sent."""
        self._pause()
        asyncio.get_running_loop().call_soon(self.resume_if_allowed)

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
            size_bytes = context.size_bytes
            self._unanswered_bytes += size_bytes
            if context.parts is not None:
                self._held_back_bytes += sum(map(len, context.parts))
                self._count_untaken()
            elif frame[0] == frame[1] == PRODUCE:
                requests = self._requests
                context.held_bytes = size_bytes
                requests.held_bytes += size_bytes
                if requests.held_bytes >= requests.limit_bytes:
                    self._wait_for_room()
            if self._owed_too_much:
                self._pause()
        elif context.parts:
            transport.writelines(context.parts)
            if self._write_blocked:
                self._count_untaken()
        return not self._paused

    def answered(self) -> None:
        """A request that had to wait has its answer: send what is now complete, in order."""
        unanswered = self._unanswered
        released_bytes = 0
        while unanswered and unanswered[0].parts is not None:
            context = unanswered.popleft()
            self._unanswered_bytes -= context.size_bytes
            released_bytes += context.held_bytes
            if context.parts and self._transport is not None:
                self._transport.writelines(context.parts)
        if len(unanswered) > 1 or self._held_back_bytes or self._write_blocked:
            self._held_back_bytes = sum(sum(map(len, one.parts)) for one in unanswered if one.parts)
            self._count_untaken()
        if released_bytes:
            requests = self._requests
            requests.held_bytes -= released_bytes
            if requests.stopped:
                requests.resume()
        if self._paused:
            self.resume_if_allowed()

    def abort(self, reason: str) -> None:
        """Close on our side, saying why in one line of the log."""
        if self._transport is not None:
            self._say_why(reason)
            self.close()

    def close(self) -> None:
        """What the peer is owed may still leave, for some time."""
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.close()
            if self._write_blocked:
                asyncio.get_running_loop().call_later(CLOSE_GRACE_S, transport.abort)

    def stop_serving(self) -> None:
        """Read no more, and serve nothing that has been read: what has no answer is for the peer to send again."""
        self._is_served = False
        self._backlog = None
        self._pause()

    def part(self) -> None:
        """Say that no more answers come, and wait for the peer to close."""
        transport = self._transport
        if transport is not None and not transport.is_closing():
            transport.set_protocol(_Parting(self))
            transport.write_eof()
            transport.resume_reading()

    def cut(self, reason: str) -> None:
        """Close at once: what the peer is owed is dropped."""
        transport, self._transport = self._transport, None
        if transport is not None:
            self._say_why(reason)
            transport.abort()

    def _say_why(self, reason: str) -> None:
        log.info("closing the connection of %s on %s: %s", self.peer_host or "a client", self.listener, reason)

    @property
    def is_paused(self) -> bool:
        return self._paused

    @property
    def holds_back_answers(self) -> bool:
        """Whether answers that are ready wait for one before them."""
        return self._held_back_bytes > 0

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
            or self._held_back_bytes > WRITE_HIGH_WATER_BYTES
        )

    def _count_unfinished(self, pending_bytes: int, *, is_new: bool) -> None:
        if is_new:
            self.unfinished_sweeps = 0
        self.unfinished_bytes = pending_bytes
        self._memory.unfinished.changed(self, pending_bytes)

    def untaken_bytes(self) -> int:
        """Answers that the peer has not taken, as far as it is slow to."""
        if self._transport is None or not self._write_blocked:
            return self._held_back_bytes
        return self._transport.get_write_buffer_size() + self._held_back_bytes

    @property
    def write_buffer_bytes(self) -> int:
        """What the peer's socket has not taken."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    @property
    def room_for_answer_bytes(self) -> int:
        return self._memory.answers.room_bytes

    def _count_untaken(self) -> None:
        untaken_bytes = self.untaken_bytes()
        answers = self._memory.answers
        answers.changed(self, untaken_bytes)
        if untaken_bytes > WRITE_HIGH_WATER_BYTES or (untaken_bytes and answers.is_tight):
            self._pause()

    def _wait_for_room(self) -> None:
        self._requests.stop(self)
        self._pause()

    def _pause(self) -> None:
        if not self._paused:
            self._paused = True
            self._paused_at = monotonic()
            if self._transport is not None:
                self._transport.pause_reading()

    def resume_if_allowed(self) -> None:
        """Read on, unless there is still a reason not to; whatever ends the last of the reasons calls this."""
        if self._write_blocked or not self._paused or self._owed_too_much or self._transport is None:
            return
        if not self._is_served:
            return
        if self._requests.is_full:
            self._requests.stop(self)
            return
        self._paused = False
        self._limits.pauses.observe(monotonic() - self._paused_at)
        frames, self._backlog = self._backlog, None
        if frames:
            self._serve(frames)
        if not self._paused and self._transport is not None:
            self._transport.resume_reading()


class _Parting(asyncio.Protocol):
    """Takes what a peer still sends, and drops it: what is left unread in a socket that is closed resets its connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def connection_lost(self, error: Exception | None) -> None:
        self._connection.connection_lost(error)
