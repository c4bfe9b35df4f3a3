"""Requests between brokers: Kafka's own, over a Unix socket of each (`peer_line`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Protocol

from horolog.broker.base.unix_sockets import reachable
from horolog.broker.cluster.peer_line import PeerLine
from horolog.broker.cluster.questions import Done
from horolog.protocol.wire import Message


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
        self._lines: dict[int, PeerLine] = {}

    def __repr__(self) -> str:
        return f"<SocketPeers {self._lines}>"

    def ask(self, node: int, request: Message, version: int, done: Done, timeout_ms: int) -> None:
        line = self._lines.get(node)
        if line is None:
            path = socket_path(self._sockets, node)
            line = self._lines[node] = PeerLine(
                f"the worker at {path}", partial(_connect, self._loop, path), self._loop
            )
        line.ask(request, version, done, timeout_ms)

    def close(self) -> None:
        for line in self._lines.values():
            line.close()


async def _connect(loop: asyncio.AbstractEventLoop, path: str, make: Callable[[], asyncio.Protocol]) -> None:
    with reachable(path) as at:
        await loop.create_unix_connection(make, at)
