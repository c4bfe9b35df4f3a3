"""A conversation with one client, without a socket and without a clock of its own: bytes in, requests served as they arrive, answers in
the order of their requests.

    handshaking -> serving -> draining -> closing -> closed         any state may be passed over

The caller hands received bytes to `receive` and sends what `take_output` returns. It reads only while `wants_to_read`, calls
`resume_if_allowed` when others have had their turn (`wants_turn`), closes the connection when the conversation is `closing`, and
reports its end with `lost`. A `Carrier` is notified of each of these; a caller that checks after every call needs none.

One `receive` parses and handles everything that has arrived. A request that waits for the disk or for new data keeps its place in
`unanswered`, and later answers queue behind it. A peer that does not read, or has too much unanswered, is not read from: frames that
had already arrived are kept in `_backlog`. `memory` bounds what all conversations hold together.
"""

from __future__ import annotations

import logging
import math
import sys
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol

from mypy_extensions import mypyc_attr

from horolog.broker.base.principal import ANONYMOUS, Principal
from horolog.broker.handlers.context import close_over
from horolog.broker.network.unanswered import WRITE_HIGH_WATER_BYTES, Unanswered
from horolog.protocol.errors import FrameError, ProtocolError
from horolog.protocol.framing import FrameReader

if TYPE_CHECKING:
    from horolog.broker.handlers.context import RequestContext
    from horolog.broker.network.limits import ConnectionLimits
    from horolog.broker.security.sasl.login import Login
    from horolog.protocol.primitives import Buffer, Part

log = logging.getLogger(__name__)

TURN_S: Final = 0.002
LOOK_EVERY: Final = 4
"""How long one peer is served before others get their turn, and after how many requests that is checked."""

UNBOUNDED: Final = sys.maxsize

Serve = Callable[[memoryview, "Conversation"], "RequestContext"]
"""Handles one frame. The context comes back answered or waiting; a ProtocolError ends the conversation."""


class ConversationState(Enum):
    """How an arriving request is treated."""

    HANDSHAKING = "handshaking"
    """It goes to the handshake, one at a time, until the peer is known."""
    SERVING = "serving"
    """It is handled."""
    DRAINING = "draining"
    """It is dropped; earlier requests are still answered."""
    CLOSING = "closing"
    """It is dropped; pending output may still be sent."""
    CLOSED = "closed"
    """It is dropped, and nothing more is sent."""


class Handshake(Protocol):
    """Identifies the peer: serves its frames until it is known, and calls `serve_as`.

    To refuse a peer it raises HandshakeRefused, or calls `close` after a late answer.
    """

    @property
    def max_unfinished_bytes(self) -> int:
        """How much of a request a peer may send before it is known."""
        ...

    def serve(self, frame: memoryview, conversation: Conversation) -> RequestContext: ...


HandshakeFactory = Callable[[], Handshake]
"""Makes the handshake of a new connection; listeners that require no login have none."""


class TooSoon(Exception):
    """The request has to wait, whichever connection it came on; nothing has been done for it yet."""

    def __init__(self, wait_s: float) -> None:
        super().__init__(f"in {wait_s:g} s")
        self.wait_s = wait_s


class HandshakeRefused(ProtocolError):
    """The peer is refused; `answer` says why before the connection closes."""

    def __init__(self, reason: str, answer: list[Buffer]) -> None:
        super().__init__(reason)
        self.answer = answer


class Carrier(Protocol):
    """The carrier of the bytes, as the conversation sees it."""

    @property
    def unsent_bytes(self) -> int:
        """Output that was taken, is not sent yet and lies in memory."""
        ...

    @property
    def unsent_file_bytes(self) -> int:
        """Output that was taken, is not sent yet and still lies in its files."""
        ...

    @property
    def sends_files(self) -> bool:
        """Whether parts of an answer may stay in their files until the peer takes them."""
        ...

    def output_ready(self) -> None:
        """There is something to take."""
        ...

    def state_changed(self) -> None:
        """`wants_to_read`, `wants_turn` or `closing` has changed."""
        ...

    def muted(self, seconds: float) -> None:
        """The carrier calls `mute(0)` after `seconds`."""
        ...


@mypyc_attr(allow_interpreted_subclasses=True)
class Onlooker:
    """Carries nothing: for callers that check the conversation after every call."""

    __slots__ = ()
    unsent_bytes = 0
    unsent_file_bytes = 0
    sends_files = False

    def output_ready(self) -> None:
        pass

    def state_changed(self) -> None:
        pass

    def muted(self, seconds: float) -> None:
        pass


NOBODY: Final = Onlooker()


class Conversation:
    """See the module's docstring. `peer_host` and `principal` identify the peer, `listener` is where it connected; `login` is its SASL
    login, if it has one.
    """

    __slots__ = (
        "_backlog",
        "_in_turns",
        "_is_left",
        "_limits",
        "_max_unfinished_bytes",
        "_memory",
        "_monotonic",
        "_output",
        "_paused_at",
        "_put_back_bytes",
        "_requests",
        "_serve_frame",
        "_serve_request",
        "_write_blocked",
        "carrier",
        "closed_here",
        "closing",
        "is_active",
        "is_muted",
        "listener",
        "login",
        "on_large_request",
        "on_lost",
        "peer_host",
        "principal",
        "reader",
        "state",
        "unanswered",
        "unfinished_bytes",
        "unfinished_sweeps",
        "wants_to_read",
        "wants_turn",
    )

    def __init__(
        self,
        serve: Serve,
        limits: ConnectionLimits,
        monotonic: Callable[[], float],
        *,
        listener: str,
        handshake: Handshake | None = None,
    ) -> None:
        self._serve_request = serve
        self._limits = limits
        self._memory = limits.memory
        self._requests = limits.memory.requests
        self._monotonic = monotonic
        self.reader = FrameReader(limits.max_request_bytes, limits.memory.buffers)
        self._backlog: deque[memoryview] | None = None
        self._output: list[Part] = []
        self._in_turns: RequestContext | None = None  # a long request: later ones wait until it is served
        self._paused_at = 0.0
        self._put_back_bytes = 0  # of a request that has to wait, counted as unfinished
        self._write_blocked = False
        self._is_left = False  # output that was not taken at once, and is counted
        self.carrier: Carrier = NOBODY
        self.unanswered = Unanswered(limits.max_unanswered_requests, limits.max_unanswered_bytes)
        self.state = ConversationState.SERVING
        self.closing = False
        self.closed_here = False
        self.wants_to_read = True
        self.wants_turn = False
        self.is_muted = False  # requests wait: the peer is over its quota
        self.is_active = True  # since the listener's last sweep
        self.unfinished_bytes = 0
        self.unfinished_sweeps = 0  # of the listener, since the unfinished request began
        self.listener = listener
        self.peer_host = ""
        self.principal = ANONYMOUS
        self.login: Login | None = None
        self.on_lost: Callable[[], None] | None = None
        self.on_large_request: Callable[[], None] | None = None  # the carrier may put the rest into `reader.large`
        self._serve_frame = serve
        self._max_unfinished_bytes = UNBOUNDED
        if handshake is not None:
            self.state = ConversationState.HANDSHAKING
            self.unanswered.max_requests = 1
            self._serve_frame = handshake.serve
            self._max_unfinished_bytes = handshake.max_unfinished_bytes

    def __repr__(self) -> str:
        paused = "" if self.wants_to_read else ", not read from"
        peer = f"{self.principal} at {self.peer_host} on {self.listener}"
        return f"<Conversation {self.state.value} with {peer}, {len(self.unanswered)} unanswered{paused}>"

    def serve_as(self, principal: Principal, serve: Serve | None = None) -> None:
        """End the handshake: later requests are this principal's. `serve`, if given, sees each of them first."""
        self.principal = principal
        self.unanswered.max_requests = self._limits.max_unanswered_requests
        self._serve_frame = self._serve_request if serve is None else serve
        self._max_unfinished_bytes = UNBOUNDED
        if self.state is ConversationState.HANDSHAKING:
            self.state = ConversationState.SERVING

    # -- bytes

    def receive(self, data: bytes) -> None:
        """Take received bytes, and serve every complete request as far as the peer may be served.

        Those of a large request may lie in `reader.large` already; `data` is empty then.
        """
        if self.closing:
            return
        self.is_active = True
        try:
            frames = self.reader.feed(data)
        except FrameError as error:
            self._take(error.frames)
            self.close(str(error))
            return
        reader = self.reader
        is_split = reader.large is not None or bool(reader.pending)
        if is_split or self.unfinished_bytes:
            self._count_unfinished(reader.held_bytes, is_new=bool(frames))
        if frames:
            self._take(frames)
        if is_split:
            if reader.arrived_bytes > self._max_unfinished_bytes:
                self.close(f"more than {self._max_unfinished_bytes} bytes of a request before the handshake is over")
            elif reader.large is not None and self.on_large_request is not None:
                self.on_large_request()

    def take_output(self) -> list[Part]:
        """The output to send next; it is handed out once."""
        output, self._output = self._output, []
        if self._is_left:
            self._is_left = False
            self._count_untaken()
            self.wants_turn = not (self.wants_to_read or self.closing)
        return output

    def pause_writing(self) -> None:
        """The peer does not take its answers as fast as they come."""
        self._write_blocked = True
        self._count_untaken()

    def resume_writing(self) -> None:
        """The peer has taken its answers."""
        self._write_blocked = False
        self._memory.answers.changed(self, self.untaken_bytes())
        self.resume_if_allowed()

    # -- requests and answers

    def _take(self, frames: list[memoryview]) -> None:
        """Handle what arrived, or keep it while the peer has to catch up."""
        requests = self._requests
        if requests.held_bytes >= requests.limit_bytes and self.wants_to_read:
            requests.stop(self)
            self._pause()
        if self.wants_to_read:
            if len(frames) == 1:
                self._handle(frames[0])
            else:
                self._serve(deque(frames))
        elif self._backlog is not None:
            self._backlog.extend(frames)
        elif not self.closing:
            self._backlog = deque(frames)

    def _serve(self, frames: deque[memoryview]) -> None:
        """Handle frames in order while the peer may be served and its turn lasts; keep the rest."""
        ends = self._monotonic() + TURN_S if len(frames) > LOOK_EVERY else math.inf
        count = 0
        while frames:
            if not self._handle(frames.popleft()):
                break
            count += 1
            if not count % LOOK_EVERY and frames and self._monotonic() > ends:
                self.wants_turn = True
                self._pause()
                break
        if frames and not self.closing:
            if self._backlog is None:
                self._backlog = frames
            else:
                self._backlog.extend(frames)

    def _handle(self, frame: memoryview) -> bool:
        """Serve one request; return whether the next one may be served at once."""
        try:
            context = self._serve_frame(frame, self)
        except TooSoon as too_soon:
            self._backlog = deque((frame,))  # served later, with all that follow
            self._put_back_bytes = len(frame)
            self._memory.unfinished.changed(self, self.unfinished_bytes + len(frame))
            self.mute(too_soon.wait_s)
            return False
        except HandshakeRefused as refused:
            self._output += refused.answer
            self.carrier.output_ready()
            self.close(str(refused))
            return False
        except Exception as error:  # noqa: BLE001 - it is logged, and ends this connection alone
            close_over(self, error)
            return False
        parts = context.parts
        if parts is None or self.unanswered.queue:
            self._add(context)
        elif parts and not self.closing:
            self._output += parts
            self.carrier.output_ready()
            if self._write_blocked or self._output:
                self._count_untaken()
        return self.wants_to_read

    def _add(self, context: RequestContext) -> None:
        """Queue a request that has no answer yet, or whose answer has to wait."""
        unanswered = self.unanswered
        unanswered.add(context)
        if context.parts is not None:
            self._count_untaken()
        elif context.route.holds_frame or context.in_turns:
            requests = self._requests
            context.held_bytes = context.size_bytes
            requests.held_bytes += context.size_bytes
            if requests.held_bytes >= requests.limit_bytes:
                requests.stop(self)
                self._pause()
        if context.in_turns:
            self._in_turns = context
            self._pause()
        if unanswered.is_too_much:
            self._pause()

    def answered(self) -> None:
        """A waiting request has its answer: send the answers that are complete now, in order."""
        unanswered = self.unanswered
        held_back_bytes = unanswered.held_back_bytes
        released_bytes = unanswered.release([] if self.closing else self._output)
        if self._output:
            self.carrier.output_ready()
        if self._write_blocked or held_back_bytes or unanswered.held_back_bytes or self._output:
            self._count_untaken()
        if released_bytes:
            requests = self._requests
            requests.held_bytes -= released_bytes
            if requests.stopped:
                requests.resume()
        if not self.wants_to_read:
            self.resume_if_allowed()

    # -- the end

    def drain(self) -> None:
        """Serve no more requests, not even those already read; the peer has to send them again."""
        if not self.closing:
            self.state = ConversationState.DRAINING
            self._backlog = None
            self._pause()

    def close(self, reason: str = "") -> None:
        """Close the connection from this side, and log the reason in one line. Pending output may still be sent."""
        if not self.closing:
            self._end(ConversationState.CLOSING, reason)

    def cut(self, reason: str) -> None:
        """Close at once: unsent answers are dropped."""
        if not self.closing:
            self._output.clear()
            self._end(ConversationState.CLOSED, reason)

    def _end(self, state: ConversationState, reason: str) -> None:
        if reason:
            peer = self.peer_host or "a client"
            log.info("closing the connection of %s on %s: %s", peer, self.listener, reason)
        self.state = state
        self.closing = self.closed_here = True
        self.wants_to_read = self.wants_turn = False
        self._backlog = None
        self.carrier.state_changed()

    def lost(self) -> None:
        """The connection has ended, from either side: release what was held for it."""
        self.state = ConversationState.CLOSED
        self.closing = True
        self.wants_to_read = self.wants_turn = False
        self._backlog = None
        self._output.clear()
        # Both actions know this connection: a circle would keep all of it until the garbage collector comes.
        on_lost, self.on_lost, self.on_large_request = self.on_lost, None, None
        self.carrier = NOBODY
        if self.unfinished_bytes or self._put_back_bytes:
            self._memory.unfinished.changed(self, 0)
        self._memory.answers.changed(self, 0)
        self._requests.held_bytes -= self.unanswered.abandon()
        self._requests.resume()
        if on_lost is not None:
            on_lost()

    @property
    def idle(self) -> bool:
        return not (self.unanswered.queue or self._backlog or self.is_muted)

    # -- flow control

    def _count_unfinished(self, pending_bytes: int, *, is_new: bool) -> None:
        if is_new:
            self.unfinished_sweeps = 0
        self.unfinished_bytes = pending_bytes
        self._memory.unfinished.changed(self, pending_bytes + self._put_back_bytes)

    def untaken_bytes(self) -> int:
        """Bytes of answers in memory that the peer is slow to take."""
        held_back_bytes = self.unanswered.held_back_bytes
        if self.closing:
            return held_back_bytes
        unsent_bytes = self.carrier.unsent_bytes if self._write_blocked else 0
        return unsent_bytes + sum(map(len, self._output)) + held_back_bytes

    @property
    def room_for_answer_bytes(self) -> int:
        return self._memory.answers.room_bytes

    def _count_untaken(self) -> None:
        untaken_bytes = self.untaken_bytes()
        self._is_left = bool(self._output)
        answers = self._memory.answers
        answers.changed(self, untaken_bytes)
        owed_bytes = untaken_bytes
        if self._write_blocked and not self.closing:
            owed_bytes += self.carrier.unsent_file_bytes
        if owed_bytes > WRITE_HIGH_WATER_BYTES or (untaken_bytes and answers.is_tight):
            self._pause()

    def mute(self, seconds: float) -> None:
        """Serve nothing for `seconds`, though answers still leave; 0 ends it."""
        self.is_muted = seconds > 0
        if not self.is_muted:
            self.resume_if_allowed()
        elif not self.closing:
            self._pause()
            self.carrier.muted(seconds)

    def _pause(self) -> None:
        if self.wants_to_read:
            self.wants_to_read = False
            self._paused_at = self._monotonic()
            self.carrier.state_changed()

    def resume_if_allowed(self) -> None:
        """Read on, unless a reason not to remains; called whenever one of the reasons ends."""
        self.wants_turn = False
        if self._write_blocked or self.is_muted or self.wants_to_read or self.unanswered.is_too_much:
            return
        if self.closing or self.state is ConversationState.DRAINING:
            return
        if self._in_turns is not None:
            if self._in_turns.in_turns:
                return
            self._in_turns = None
        if self._is_left and self.untaken_bytes() > WRITE_HIGH_WATER_BYTES:
            return
        if self._requests.is_full:
            self._requests.stop(self)
            return
        self.wants_to_read = True
        self._limits.pauses.observe(self._monotonic() - self._paused_at)
        frames, self._backlog = self._backlog, None
        if self._put_back_bytes:
            self._put_back_bytes = 0
            self._memory.unfinished.changed(self, self.unfinished_bytes)
        if frames:
            self._serve(frames)
        if self.wants_to_read:
            self.carrier.state_changed()
