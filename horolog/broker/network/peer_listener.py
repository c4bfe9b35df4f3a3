"""The socket at which other brokers of the same machine ask this one: a path in a folder that only the broker's user may enter.

Peers are served by the same conversations as clients, under a listener's name of their own. No bound of clients holds for them: a request
of a client may wait for a peer's answer, which in its turn may not wait until requests of clients are served.
"""

from __future__ import annotations

import math
import socket
from dataclasses import replace
from typing import TYPE_CHECKING

from horolog.broker.listeners import PEERS
from horolog.broker.network.listener import Listener
from horolog.broker.network.memory import PeerMemory
from horolog.broker.unix_sockets import UnixServer

if TYPE_CHECKING:
    from horolog.broker.clock import Clock
    from horolog.broker.network.dispatch import Dispatcher
    from horolog.broker.network.limits import ConnectionLimits
    from horolog.broker.network.transport import SocketTransport

MOST_UNTAKEN_BYTES = 64 * 1024 * 1024
NEVER = -1


def limits_of_peers(limits: ConnectionLimits) -> ConnectionLimits:
    """Bounds that peers do not share with clients."""
    memory = PeerMemory(math.inf, MOST_UNTAKEN_BYTES, MOST_UNTAKEN_BYTES)
    return replace(limits, max_idle_ms=NEVER, memory=memory, quotas=None)


class PeerListener(Listener):
    """A listener on a Unix socket."""

    def __init__(self, path: str, dispatcher: Dispatcher, clock: Clock, limits: ConnectionLimits) -> None:
        super().__init__(PEERS, path, 0, dispatcher, clock, limits_of_peers(limits))

    async def _bind(self) -> UnixServer:
        server = UnixServer(self.host, self._connect, self._limits.backlog)
        await server.start()
        return server

    def _refusal(self, connection: SocketTransport) -> str | None:  # noqa: ARG002
        """Peers are few, and always let in."""
        return None

    def forget(self, connection: SocketTransport) -> None:
        self._connections.pop(connection, None)

    def tune(self, connected: socket.socket) -> None:
        """The system's buffers will do."""
