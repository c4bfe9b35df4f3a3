"""Carries one conversation over a socket of the event loop: bytes go in as they come, output goes out as it is ready.

Parts of an answer that lie in files stay there until the socket takes them: a peer that does not read costs the broker only the
memory of its answer's head. What waits is sent piece by piece. The event loop's transport gets a small piece at a time, and reports
when it has left; before the next piece, the system sends as much of the files as it can by itself. Over TLS the files have to be
read, and the pieces are larger. Old data is sent by one connection in each turn of the loop (`send_turns`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, cast

from mypy_extensions import mypyc_attr

from horolog.broker.log.storage import StorageFault
from horolog.broker.network.conversation import ConversationState
from horolog.broker.network.waiting_parts import WaitingParts, send_part, takes_turns
from horolog.protocol.frame_buffers import LARGE_FRAME_BYTES, SCRATCH_BYTES
from horolog.protocol.primitives import Buffer, Part, Unread

if TYPE_CHECKING:
    from horolog.broker.network.conversation import Conversation
    from horolog.broker.network.listener import Listener
    from horolog.protocol.frame_buffers import LargeFrame

SLOW_ABOVE_BYTES = 64 * 1024
"""A peer with more unsent output than this counts as slow."""

PIECE_BYTES = 4 * 1024
READ_PIECE_BYTES = 64 * 1024
"""How much of a waiting answer is in memory: where the system sends files by itself, and where they have to be read."""

PIECES_IN_A_TURN = 16
"""How many pieces a peer that takes them as fast as they are read gets before others have their turn."""

CLOSE_GRACE_S = 5.0
"""How long a slow peer may still take its answers once the broker closes the connection."""


@mypyc_attr(allow_interpreted_subclasses=True)
class SocketTransport(asyncio.Protocol):
    """Turns asyncio's events into calls of `conversation`, and that one's (see its `Carrier`) into calls of asyncio's transport."""

    __slots__ = (
        "_descriptor",
        "_is_parting",
        "_is_slow",
        "_listener",
        "_unmute",
        "_waiting",
        "_wire",
        "conversation",
    )

    def __init__(self, listener: Listener, conversation: Conversation) -> None:
        self._listener = listener
        self._wire: asyncio.Transport | None = None
        self._descriptor = -1
        self._is_parting = False
        self._is_slow = False
        self._waiting: WaitingParts | None = None
        self._unmute: asyncio.TimerHandle | None = None
        self.conversation = conversation
        conversation.carrier = self

    def __repr__(self) -> str:
        return f"<SocketTransport of {self.conversation!r}>"

    # -- events of asyncio's transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._wire = wire = cast("asyncio.Transport", transport)  # uvloop's are no subclass of it
        peer = wire.get_extra_info("peername")
        self.conversation.peer_host = str(peer[0]) if peer else ""
        refusal = self._listener.admit(self)
        if refusal is not None:
            self.conversation.close(refusal)
            return
        wait_s = self._listener.too_soon_s(self)
        if wait_s:
            self.conversation.drain()
            why = "the quota connection_creation_rate is exceeded"
            asyncio.get_running_loop().call_later(wait_s, self.conversation.close, why)
            return
        wire.set_write_buffer_limits(high=SLOW_ABOVE_BYTES)
        connected = wire.get_extra_info("socket")
        if connected is not None:
            self._listener.tune(connected)
            self._descriptor = connected.fileno()
            self.conversation.on_large_request = partial(
                _receive_in_place, self, wire, self._listener.frame_buffers.scratch
            )

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - however it ended, it has ended
        self._wire = None
        self._drop()
        if self._unmute is not None:
            self._unmute.cancel()
            self._unmute = None
        self._listener.forget(self)
        self.conversation.lost()

    def data_received(self, data: bytes) -> None:
        self.conversation.receive(data)

    def pause_writing(self) -> None:
        if self._waiting is None:  # otherwise the conversation is notified at the end of the turn
            self._is_slow = True
            self.conversation.pause_writing()

    def resume_writing(self) -> None:
        wire = self._wire
        if wire is None or wire.is_closing():  # it is empty because it was dropped
            self._is_slow = False
        elif self._waiting is not None:
            self._go_on()
        else:
            self._is_slow = False
            self.conversation.resume_writing()

    # -- calls of the conversation

    @property
    def unsent_bytes(self) -> int:
        unsent_bytes = 0 if self._wire is None else self._wire.get_write_buffer_size()
        return unsent_bytes if self._waiting is None else unsent_bytes + self._waiting.memory_bytes

    @property
    def unsent_file_bytes(self) -> int:
        return 0 if self._waiting is None else self._waiting.file_bytes

    @property
    def sends_files(self) -> bool:
        wire = self._wire
        return wire is not None and not wire.is_closing()

    def output_ready(self) -> None:
        output = self.conversation.take_output()
        wire = self._wire
        if wire is None:
            return
        if self._waiting is not None:
            self._wait(self._waiting, output)
        elif len(output) > 1 and any(isinstance(part, Unread) for part in output):
            self._send(wire, output)
        else:
            wire.writelines(cast("Sequence[Buffer]", output))

    # -- answers in files

    def _send(self, wire: asyncio.Transport, output: list[Part]) -> None:
        """Send what the socket takes at once, files from where they lie; the rest waits there."""
        try:
            left, is_free = output, not (wire.is_closing() or wire.get_write_buffer_size())
            if self._descriptor >= 0 and is_free and not any(map(takes_turns, output)):
                left = _sent(self._descriptor, output)
            if left and not wire.is_closing():
                self._waiting = waiting = WaitingParts()
                waiting.add(left)
                wire.set_write_buffer_limits(high=0)  # so that it reports when it is empty
        except StorageFault as fault:
            self._cannot_go_on(fault)
            return
        if left:
            self._go_on()

    def _wait(self, waiting: WaitingParts, output: list[Part]) -> None:
        try:
            waiting.add(output)
        except StorageFault as fault:
            self._cannot_go_on(fault)

    def _go_on(self) -> None:
        """Send as much of what waits as the socket takes, and one piece more."""
        wire, waiting, descriptor = self._wire, self._waiting, self._descriptor
        if wire is None or waiting is None:
            return
        in_turns = waiting.takes_turns
        if in_turns and not self._listener.send_turns.take(self._go_on):
            self._fell_behind()
            return
        try:
            for _ in range(1 if in_turns and descriptor >= 0 else PIECES_IN_A_TURN):
                if descriptor >= 0 and not (wire.is_closing() or wire.get_write_buffer_size()):
                    waiting.send(descriptor)
                if not waiting:
                    self._all_sent(wire)
                    return
                wire.write(waiting.take(READ_PIECE_BYTES if descriptor < 0 else PIECE_BYTES))
                if wire.get_write_buffer_size() or wire.is_closing():
                    self._fell_behind()
                    return
        except StorageFault as fault:
            self._cannot_go_on(fault)
            return
        self._fell_behind()
        asyncio.get_running_loop().call_soon(self._go_on)

    def _fell_behind(self) -> None:
        self._is_slow = True
        self.conversation.pause_writing()

    def _all_sent(self, wire: asyncio.Transport) -> None:
        self._waiting = None
        wire.set_write_buffer_limits(high=SLOW_ABOVE_BYTES)
        was_slow, self._is_slow = self._is_slow, False
        if self.conversation.closing:
            self._end(wire)
        elif was_slow:
            self.conversation.resume_writing()

    def _cannot_go_on(self, fault: StorageFault) -> None:
        """The answer has begun, so it can carry no error any more. The next one can, for that file is read before."""
        self._drop()
        self.conversation.cut(f"the data that it requested cannot be read: {fault}")
        if self._wire is not None:  # `cut` does nothing if it was closing already
            self._wire.abort()

    def _drop(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.drop()

    def state_changed(self) -> None:
        wire, conversation = self._wire, self.conversation
        if wire is None:
            return
        if conversation.closing:
            self._end(wire)
        elif conversation.wants_to_read:
            wire.resume_reading()
        else:
            wire.pause_reading()
            if conversation.wants_turn:
                asyncio.get_running_loop().call_soon(conversation.resume_if_allowed)

    def muted(self, seconds: float) -> None:
        """Of several times, the latest ends it."""
        before, timer = self._unmute, asyncio.get_running_loop().call_later(seconds, self._may_go_on)
        if before is not None and before.when() >= timer.when():
            timer.cancel()
            return
        if before is not None:
            before.cancel()
        self._unmute = timer

    def hurry(self, seconds: float) -> None:
        """Shorten the time until the peer is read from again."""
        unmute = self._unmute
        if unmute is not None and seconds:
            unmute.cancel()
            self._unmute = asyncio.get_running_loop().call_at(unmute.when() - seconds, self._may_go_on)

    def _may_go_on(self) -> None:
        self._unmute = None
        self.conversation.mute(0)

    # -- the end

    def part(self) -> None:
        """Signal the end of the output, and wait for the peer to close: what it still sends is read and dropped.

        Closing a socket with unread bytes would reset the connection.
        """
        self._is_parting = True
        self.conversation.close()

    def close(self) -> None:
        """Close the connection; waiting answers may still leave, for some time."""
        self._is_parting = False
        if self.conversation.closing and self._wire is not None:
            self._end(self._wire)
        self.conversation.close()

    def _end(self, wire: asyncio.Transport) -> None:
        if self.conversation.state is ConversationState.CLOSED:
            self._drop()
            wire.abort()
        elif wire.is_closing():
            pass
        elif self._waiting is not None:  # `_all_sent` calls this again
            if not self._is_parting:
                asyncio.get_running_loop().call_later(CLOSE_GRACE_S, wire.abort)
        elif self._is_parting:
            _end_output(wire)
        else:
            wire.close()
            if self._is_slow:
                asyncio.get_running_loop().call_later(CLOSE_GRACE_S, wire.abort)


class LargeReceiver(asyncio.BufferedProtocol):
    """Takes the place of a `SocketTransport` at the event loop: the socket's bytes go straight into a large request's buffer."""

    __slots__ = ("_conversation", "_inner", "_large", "_scratch", "_start")

    def __init__(self, inner: SocketTransport, scratch: memoryview) -> None:
        """`scratch` takes bytes that may belong to any request; it may be shared, for each call empties it."""
        self._inner = inner
        self._conversation = inner.conversation
        self._scratch = scratch
        self._start = scratch[:SCRATCH_BYTES]
        self._large: LargeFrame | None = None

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - a frame's buffer has the size of the frame
        reader = self._conversation.reader
        self._large = large = None if self._conversation.closing else reader.large
        if large is not None:
            return large.room
        return self._scratch if len(reader.pending) >= LARGE_FRAME_BYTES else self._start

    def buffer_updated(self, nbytes: int) -> None:
        if self._large is None:
            self._conversation.receive(bytes(self._scratch[:nbytes]))
        else:
            self._large.advance(nbytes)
            self._conversation.receive(b"")

    def connection_lost(self, exc: Exception | None) -> None:
        self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()


def _receive_in_place(inner: SocketTransport, wire: asyncio.Transport, scratch: memoryview) -> None:
    """From now on, this peer's large requests are received where they stay. Small ones cost a little more then."""
    inner.conversation.on_large_request = None
    wire.set_protocol(LargeReceiver(inner, scratch))


def _end_output(wire: asyncio.Transport) -> None:
    """Signal the end of the output, and read on. A reset by the peer may show up here."""
    try:
        wire.write_eof()
    except OSError:
        wire.abort()
    else:
        wire.resume_reading()


def _sent(descriptor: int, output: list[Part]) -> list[Part]:
    """Send to a socket; return what it did not take."""
    for number, part in enumerate(output):
        sent_bytes = send_part(descriptor, part, is_last=number + 1 == len(output))
        if isinstance(part, Unread):
            if sent_bytes < 0:
                return output[number:]
        elif sent_bytes < len(part):
            return [memoryview(part)[sent_bytes:], *output[number + 1 :]]
    return []
