"""A standstill: an instant at which no worker does anything, so that a backup can note where all logs end.

The supervisor asks each worker that serves (`stand NUMBER` on its link). The worker connects to a socket of the supervisor and waits
there with its whole event loop: a worker that is connected stands still. Once all are connected, the supervisor says so to each. A worker
that hears it in time reports where its logs end; one that has waited for `STANDS_S` goes on, and the standstill does not count. Other
threads of a worker go on: they change no log's end.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol, cast

from horolog.broker.base.unix_sockets import UnixServer, reachable

if TYPE_CHECKING:
    from horolog.broker.server.backup_child import LogEnds

STANDS_S = 0.2
"""How long a worker stands still at most: so long producers wait if another worker is slow."""
ANSWERS_WITHIN_S = 5.0
ALL_STAND = b"!"

Done = Callable[["LogEnds | None"], None]


def socket_of(sockets: str) -> str:
    """Where workers stand still; no node has such a name."""
    return f"{sockets}/standstill"


def stand_still(sockets: str, number: int, monotonic: Callable[[], float], within_s: float = STANDS_S) -> bool:
    """Wait in this thread until all stand still; whether they did, at an instant within this call."""
    ends_s = monotonic() + within_s
    try:
        with reachable(socket_of(sockets)) as path, socket.socket(socket.AF_UNIX) as waiting:
            waiting.settimeout(within_s)
            waiting.connect(path)
            waiting.settimeout(max(0.0, ends_s - monotonic()))
            waiting.sendall(b"%d\n" % number)
            return waiting.recv(1) == ALL_STAND
    except OSError:
        return False


class StandingWorker(Protocol):
    """A worker that can be asked to stand still."""

    def stand(self, number: int) -> None: ...


class Standstills:
    """The supervisor's side: one standstill at a time."""

    def __init__(
        self, sockets: str, loop: asyncio.AbstractEventLoop, serving: Callable[[], Iterable[StandingWorker]]
    ) -> None:
        self._loop = loop
        self._serving = serving
        self._server = UnixServer(socket_of(sockets), lambda: _Connection(self))
        self._number = 0
        self._asked = 0
        self._connected: list[asyncio.Transport] = []
        self._ends: list[LogEnds] = []
        self._done: Done | None = None
        self._timer: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        return f"<Standstills, {self._number} so far, {len(self._connected)} of {self._asked} workers are in it>"

    async def start(self) -> None:
        """Raises OSError."""
        await self._server.start()

    def stop(self) -> None:
        self._over(None)
        self._server.close()

    def take(self, done: Done) -> None:
        """Have all that serve stand still; `done` gets where their logs ended then, or None if they did not all at one instant."""
        self._over(None)
        self._number += 1
        self._done = done
        self._timer = self._loop.call_later(ANSWERS_WITHIN_S, self._over, None)
        asked = list(self._serving())
        self._asked = len(asked)
        for one in asked:
            one.stand(self._number)
        self._end_with_the_last()

    def stands(self, number: int, connection: asyncio.Transport) -> None:
        """A worker stands still, as one says that has connected."""
        if number != self._number or self._done is None:
            connection.close()
            return
        self._connected.append(connection)
        if len(self._connected) == self._asked:
            for each in self._connected:
                each.write(ALL_STAND)

    def ends(self, number: int, ends: LogEnds | None) -> None:
        """A worker has gone on."""
        if number != self._number or self._done is None:
            return
        if ends is None:
            self._over(None)
            return
        self._ends.append(ends)
        self._end_with_the_last()

    def _end_with_the_last(self) -> None:
        if len(self._ends) == self._asked:
            self._over([end for ends in self._ends for end in ends])

    def _over(self, found: LogEnds | None) -> None:
        done, self._done = self._done, None
        if self._timer is not None:
            self._timer.cancel()
        for each in self._connected:
            each.close()
        self._connected, self._ends = [], []
        if done is not None:
            done(found)


class _Connection(asyncio.Protocol):
    """A worker that waits."""

    def __init__(self, standstills: Standstills) -> None:
        self._standstills = standstills
        self._said = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._said += data
        if self._said.endswith(b"\n") and self._transport is not None:
            self._standstills.stands(int(self._said), self._transport)
