"""The supervisor's end of a worker's link: the worker's messages become calls, and its silence is counted.

Silence is counted in unanswered pings, not in time: a supervisor that was itself stopped for a while, perhaps with the whole machine,
finds no worker silent when it goes on.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast

from horolog.broker.cluster.link import Lines, encode

if TYPE_CHECKING:
    from horolog.broker.server.backup_child import LogEnds

READ_BYTES = 1 << 16
ASK_EVERY_S = 1.0
MOST_UNANSWERED = 10
"""A worker that has left this many pings unanswered hangs."""


class WorkerEvents(Protocol):
    """Receives a worker's messages."""

    def settled(self) -> None: ...
    def ready(self) -> None: ...
    def failed(self, message: str, code: int) -> None: ...
    def stopping(self) -> None: ...
    def journal(self, number: int) -> None: ...
    def applied(self, number: int) -> None: ...
    def ends(self, number: int, ends: LogEnds | None) -> None: ...
    def gone(self) -> None: ...


class Tether(asyncio.Protocol):
    """One worker's link, from its start to the end of its process."""

    def __init__(self, hears: WorkerEvents) -> None:
        self._hears = hears
        self._lines = Lines()
        self._transport: asyncio.WriteTransport | None = None
        self._socket: socket.socket | None = None
        """The same socket by a descriptor of our own, to read what a transport that has failed leaves in it."""
        self._unanswered = 0
        self._unsaid: list[bytes] | None = []
        """Messages held back until `begin`: others may be ready before this worker has its orders."""

    def __repr__(self) -> str:
        return f"<Tether of {self._hears!r}, {self._unanswered} unanswered>"

    async def connect(self, connected: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        self._socket = connected.dup()
        await loop.create_connection(lambda: self, sock=connected)

    # -- messages to the worker

    def begin(self, orders: Mapping[str, Any]) -> None:
        unsaid, self._unsaid = self._unsaid or [], None
        self._say("begin", orders)
        if self._transport is not None:
            self._transport.writelines(unsaid)

    def go(self) -> None:
        self._say("go")

    def live(self, nodes: frozenset[int]) -> None:
        self._say("live", sorted(nodes))

    def journal(self, number: int) -> None:
        self._say("journal", number)

    def applied(self, node: int, number: int) -> None:
        self._say("applied", node, number)

    def stand(self, number: int) -> None:
        self._say("stand", number)

    def is_silent(self) -> bool:
        """Whether the worker hangs; if not, it gets another ping."""
        if self._unanswered >= MOST_UNANSWERED:
            return True
        self._unanswered += 1
        self._say("ping")
        return False

    def _say(self, word: str, *values: object) -> None:
        if self._unsaid is not None:
            self._unsaid.append(encode(word, *values))
        elif self._transport is not None:
            self._transport.write(encode(word, *values))

    # -- messages of the worker

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        for word, *values in self._lines.feed(data):
            self._hear(word, values)

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - its process has ended, or is about to
        self._transport = None
        try:
            self._hear_last_words()
        finally:
            self._hears.gone()

    def _hear_last_words(self) -> None:
        """Read the last messages of a worker that has ended: if a later write to it failed, they are still in the socket."""
        if self._socket is None:
            return
        with self._socket as rest:
            self._socket = None
            rest.setblocking(False)
            while data := _read(rest):
                self.data_received(data)

    def _hear(self, word: str, values: list[Any]) -> None:
        hears = self._hears
        match word:
            case "pong":
                self._unanswered = 0
            case "settled":
                hears.settled()
            case "ready":
                hears.ready()
            case "failed":
                hears.failed(*values)
            case "stopping":
                hears.stopping()
            case "journal":
                hears.journal(*values)
            case "applied":
                hears.applied(*values)
            case "ends":
                hears.ends(*values)
            case _:
                raise ValueError(f"a worker says {word}, which no supervisor knows")


def _read(link: socket.socket) -> bytes:
    """The bytes that are there; empty if there are none."""
    try:
        return link.recv(READ_BYTES)
    except OSError:
        return b""
