"""The Unix socket for requests of other brokers on the same machine: a path in a folder that only the broker's user may enter.

The same conversations serve peers and clients; peers have a listener name of their own. The bounds of clients do not apply to peers:
a client's request may wait for a peer's answer, so that answer must not wait until clients' requests are served.
"""

from __future__ import annotations

import math
import socket
from dataclasses import replace
from typing import TYPE_CHECKING

from horolog.broker.base.unix_sockets import UnixServer
from horolog.broker.config.listeners import PEERS
from horolog.broker.network.listener import Listener
from horolog.broker.network.memory import PeerMemory

if TYPE_CHECKING:
    from horolog.base.clock import Clock
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

    async def _bind(self) -> None:
        server = UnixServer(self.host, self._connect, self._limits.backlog)
        await server.start()
        self._servers.append(server)

    def _refusal(self, connection: SocketTransport) -> str | None:  # noqa: ARG002
        """Peers are few, and always admitted."""
        return None

    def forget(self, connection: SocketTransport) -> None:
        self._connections.pop(connection, None)

    def tune(self, connected: socket.socket) -> None:
        """The system's buffers will do."""
