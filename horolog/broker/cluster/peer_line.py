"""The connection to one other broker, opened by the first request.

Nothing blocks the event loop's thread. The caller gets None if no response comes: the connection cannot be opened, it ends, or the
request times out. After a loss the next connection is tried after a pause, which doubles until a response arrives. Requests meanwhile
get None at once. The caller retries, or answers its client with a retriable error.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import cast

from horolog.broker.cluster.questions import Done, Questions
from horolog.protocol.errors import ProtocolError
from horolog.protocol.wire import Message

log = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 1.0

MOST_WAITING = 10_000
"""Requests to one broker without a response; more get None at once."""

Connect = Callable[[Callable[[], asyncio.Protocol]], Awaitable[object]]
"""Opens a connection with the protocol that is made for it; raises OSError."""


class PeerLine(asyncio.Protocol):
    """The connection to one broker: not open yet, being opened, open, or at rest after a loss."""

    def __init__(
        self,
        peer: str,
        connect: Connect,
        loop: asyncio.AbstractEventLoop,
        refused: Callable[[], None] = lambda: None,
    ) -> None:
        """`peer` names the broker in the log; `refused` is called when nothing listens where it is to be."""
        self._peer = peer
        self._connect = connect
        self._refused = refused
        self._loop = loop
        self._questions = Questions()
        self._wire: asyncio.Transport | None = None
        self._unsent: list[bytes] = []  # until the connection is open
        self._opening: asyncio.Task[None] | None = None
        self._rest: asyncio.TimerHandle | None = None
        self._pause_s = FIRST_PAUSE_S
        self._is_closed = False
        self._said = ""  # why the newest connection could not be opened

    def __repr__(self) -> str:
        state = "open" if self._wire is not None else "at rest" if self._rest is not None else "not open"
        return f"<PeerLine to {self._peer}, {state}, {self._questions!r}>"

    def ask(self, request: Message, version: int, done: Done, timeout_ms: int) -> None:
        if self._is_closed or self._rest is not None or len(self._questions) >= MOST_WAITING:
            done(None)
            return

        def finish(answer: Message | None) -> None:
            timer.cancel()
            done(answer)

        number, frame = self._questions.put(request, version, finish)
        timer = self._loop.call_later(timeout_ms / 1000, self._questions.give_up, number)
        if self._wire is not None:
            self._wire.write(frame)
            return
        self._unsent.append(frame)
        if self._opening is None:
            self._opening = self._loop.create_task(self._open())

    async def _open(self) -> None:
        try:
            await self._connect(lambda: self)
        except OSError as error:
            self._cannot_connect(error)
            self._lost()
            if isinstance(error, ConnectionRefusedError):
                self._refused()
        finally:
            self._opening = None

    def _cannot_connect(self, error: OSError) -> None:
        """Log each reason once: the next attempts follow every second."""
        reason = error.strerror or str(error) or "no response in time"
        if reason != self._said:
            log.info("cannot connect to %s: %s", self._peer, reason)
        self._said = reason

    def close(self) -> None:
        self._is_closed = True
        if self._opening is not None:
            self._opening.cancel()
        if self._rest is not None:
            self._rest.cancel()
        if self._wire is not None:
            self._wire.abort()
        self._lost()

    def _lost(self, *, was_open: bool = False) -> None:
        """The pause begins before any caller gets None, so an immediate retry does not wait for a connection that fails again.

        A connection that was open is opened again after the pause: a broker that has ended is found to refuse it, without any question.
        """
        self._wire = None
        self._unsent.clear()
        if not self._is_closed:
            self._rest = self._loop.call_later(self._pause_s, self._rested, was_open)
            self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        self._questions.lose()

    def _rested(self, was_open: bool) -> None:
        self._rest = None
        if was_open and self._opening is None:
            self._opening = self._loop.create_task(self._open())

    # -- events of asyncio's transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._said = ""
        self._wire = wire = cast("asyncio.Transport", transport)  # uvloop's are no subclass of it
        if self._is_closed:
            wire.abort()
        unsent, self._unsent = self._unsent, []
        wire.writelines(unsent)

    def connection_lost(self, error: Exception | None) -> None:
        if not self._is_closed:
            log.info("lost the connection to %s%s", self._peer, f": {error}" if error else "")
            self._lost(was_open=True)

    def data_received(self, data: bytes) -> None:
        try:
            self._questions.receive(data)
        except ProtocolError as error:
            log.error("%s sent invalid data: %s", self._peer, error)
            if self._wire is not None:
                self._wire.abort()
        else:
            self._pause_s = FIRST_PAUSE_S
