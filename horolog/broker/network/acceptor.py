"""Listens at every address of a host, and accepts many of the connections that wait in one turn of the event loop.

uvloop's own servers accept one a turn. A turn that answers hundreds of busy connections takes milliseconds, and a thousand others that come
at once, as after a restart, would wait for seconds.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable, Sequence
from functools import partial

from horolog.base.readable import counted

log = logging.getLogger(__name__)

AT_ONCE = 64
"""Connections accepted in a turn, which take about five milliseconds."""
PAUSE_S = 0.5
"""Until the next attempt where the system has no room for a connection."""
NOT_THERE = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL})
"""The system lacks a family of addresses."""
GONE = (BlockingIOError, InterruptedError, ConnectionAbortedError)
"""None waits, or the one that waited has left."""


class Acceptor:
    """Sockets that listen, and the connections that are being opened. `connect` makes the protocol of each."""

    def __init__(
        self,
        sockets: Sequence[socket.socket],
        connect: Callable[[], asyncio.Protocol],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.sockets = sockets
        self._connect = connect
        self._loop = loop
        self._opening: set[asyncio.Task[object]] = set()
        self._pauses: dict[socket.socket, asyncio.TimerHandle] = {}
        for one in sockets:
            one.setblocking(False)
            self._go_on(one)

    def __repr__(self) -> str:
        return f"<Acceptor of {counted(len(self.sockets), 'socket')}, {counted(len(self._opening), 'connection')} under way>"

    def close(self) -> None:
        """Accept no more."""
        for pause in self._pauses.values():
            pause.cancel()
        for one in self.sockets:
            self._loop.remove_reader(one)
            one.close()

    def _go_on(self, listening: socket.socket) -> None:
        self._loop.add_reader(listening, self._accept, listening)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(AT_ONCE):
            try:
                accepted, _ = listening.accept()
            except GONE:
                return
            except OSError as error:
                self._pause(listening, error)
                return
            self._pauses.pop(listening, None)
            opening = self._loop.create_task(self._loop.connect_accepted_socket(self._connect, accepted))
            self._opening.add(opening)
            opening.add_done_callback(partial(self._opened, accepted))

    def _pause(self, listening: socket.socket, error: OSError) -> None:
        """The connection stays in the queue, so the socket would be reported as ready in every turn."""
        if listening not in self._pauses:
            log.error("no connection can be accepted on %s: %s; trying again", listening.getsockname(), error.strerror)
        self._loop.remove_reader(listening)
        self._pauses[listening] = self._loop.call_later(PAUSE_S, self._go_on, listening)

    def _opened(self, accepted: socket.socket, opening: asyncio.Task[object]) -> None:
        self._opening.discard(opening)
        if not opening.cancelled() and (error := opening.exception()) is not None:
            accepted.close()
            log.warning("a connection could not be opened: %s", error)


async def accept_at(
    connect: Callable[[], asyncio.Protocol], host: str, port: int, backlog: int, *, shares_port: bool = False
) -> Acceptor:
    """Accept connections at every address of a host, an empty one being every interface. Raises OSError."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    missing: OSError | None = None
    try:
        for family, _, _, _, address in dict.fromkeys(found):
            try:
                sockets.append(socket.create_server(address, family=family, backlog=backlog, reuse_port=shares_port))
            except OSError as error:
                if error.errno not in NOT_THERE:
                    raise
                missing = error
        if missing is not None and not sockets:
            raise missing
    except OSError:
        for one in sockets:
            one.close()
        raise
    return Acceptor(sockets, connect, loop)
