"""Requests between brokers: Kafka's own over a Unix socket of each, one connection to each, opened by the first request.

Nothing blocks the event loop's thread. The caller gets None if no response comes: the connection cannot be opened, it ends, or the
request times out. After a loss the next connection is tried after a pause, which doubles until a response arrives. Requests meanwhile
get None at once. The caller retries, or answers its client with a retriable error.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol, cast

from horolog.broker.base.unix_sockets import reachable
from horolog.broker.cluster.questions import Done, Questions
from horolog.protocol.errors import ProtocolError
from horolog.protocol.wire import Message

log = logging.getLogger(__name__)

FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 1.0

MOST_WAITING = 10_000
"""Requests to one broker without a response; more get None at once."""


class Peers(Protocol):
    """The other brokers, as far as this one sends them requests."""

    def ask(self, node: int, request: Message, version: int, done: Done, timeout_ms: int) -> None:
        """Send a request; requests to one broker are served in their order. `done` gets the response or None, once, maybe at once."""
        ...

    def close(self) -> None:
        """Send no more requests; those that wait get None."""
        ...


class NoPeers:
    """The peers of a broker alone: none."""

    def ask(self, node: int, request: Message, version: int, done: Done, timeout_ms: int) -> None:  # noqa: ARG002 - as `Peers` has it
        done(None)

    def close(self) -> None:
        """Nothing waits."""


NO_PEERS = NoPeers()


def socket_path(sockets: str, node: int) -> str:
    """The socket of one broker in the folder of all."""
    return f"{sockets}/{node}"


class SocketPeers:
    """The brokers whose sockets lie in one folder."""

    def __init__(self, sockets: str, loop: asyncio.AbstractEventLoop) -> None:
        self._sockets = sockets
        self._loop = loop
        self._lines: dict[int, _Line] = {}

    def __repr__(self) -> str:
        return f"<SocketPeers {self._lines}>"

    def ask(self, node: int, request: Message, version: int, done: Done, timeout_ms: int) -> None:
        line = self._lines.get(node)
        if line is None:
            line = self._lines[node] = _Line(socket_path(self._sockets, node), self._loop)
        line.ask(request, version, done, timeout_ms)

    def close(self) -> None:
        for line in self._lines.values():
            line.close()


class _Line(asyncio.Protocol):
    """The connection to one broker: not open yet, being opened, open, or at rest after a loss."""

    def __init__(self, path: str, loop: asyncio.AbstractEventLoop) -> None:
        self._path = path
        self._loop = loop
        self._questions = Questions()
        self._wire: asyncio.Transport | None = None
        self._unsent: list[bytes] = []  # until the connection is open
        self._opening: asyncio.Task[None] | None = None
        self._rest: asyncio.TimerHandle | None = None
        self._pause_s = FIRST_PAUSE_S
        self._is_closed = False

    def __repr__(self) -> str:
        state = "open" if self._wire is not None else "at rest" if self._rest is not None else "not open"
        return f"<_Line to {self._path}, {state}, {self._questions!r}>"

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
            with reachable(self._path) as at:
                await self._loop.create_unix_connection(lambda: self, at)
        except OSError as error:
            log.info("the broker at %s cannot be asked: %s", self._path, error)
            self._lost()
        finally:
            self._opening = None

    def close(self) -> None:
        self._is_closed = True
        if self._opening is not None:
            self._opening.cancel()
        if self._rest is not None:
            self._rest.cancel()
        if self._wire is not None:
            self._wire.abort()
        self._lost()

    def _lost(self) -> None:
        """The pause begins before any caller gets None, so an immediate retry does not wait for a connection that fails again."""
        self._wire = None
        self._unsent.clear()
        if not self._is_closed:
            self._rest = self._loop.call_later(self._pause_s, self._rested)
            self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        self._questions.lose()

    def _rested(self) -> None:
        self._rest = None

    # -- events of asyncio's transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._wire = wire = cast("asyncio.Transport", transport)  # uvloop's are no subclass of it
        if self._is_closed:
            wire.abort()
        unsent, self._unsent = self._unsent, []
        wire.writelines(unsent)

    def connection_lost(self, error: Exception | None) -> None:
        if not self._is_closed:
            log.info("the connection to the broker at %s has ended%s", self._path, f": {error}" if error else "")
            self._lost()

    def data_received(self, data: bytes) -> None:
        try:
            self._questions.receive(data)
        except ProtocolError as error:
            log.error("the broker at %s: %s", self._path, error)
            if self._wire is not None:
                self._wire.abort()
        else:
            self._pause_s = FIRST_PAUSE_S
