"""A listening address: accepts connections within the limits, and closes those that have been idle too long."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.network.connection import Connection

if TYPE_CHECKING:
    from broker.clock import Clock
    from broker.network.dispatch import Dispatcher

log = logging.getLogger(__name__)

BACKLOG = 1024
IDLE_SWEEPS_PER_LIMIT = 10


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The named settings that bound what peers may hold open."""

    max_connections: int
    max_connections_per_ip: int
    max_idle_ms: int
    max_request_bytes: int


class Listener:
    """One bound address and the connections that came in through it."""

    def __init__(
        self, name: str, host: str, port: int, dispatcher: Dispatcher, clock: Clock, limits: ConnectionLimits
    ) -> None:
        self.name = name
        self.host = host
        self.port = port
        self._dispatcher = dispatcher
        self._clock = clock
        self._limits = limits
        self._server: asyncio.Server | None = None
        self._connections: set[Connection] = set()
        self._per_ip: Counter[str] = Counter()
        self._sweep: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        return f"<Listener {self.name} {self.host}:{self.port}, {len(self._connections)} connections>"

    async def start(self) -> None:
        """Bind and accept; port 0 becomes the port that was given."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._connect, self.host or None, self.port, backlog=BACKLOG)
        self.port = self._server.sockets[0].getsockname()[1]
        if self._limits.max_idle_ms > 0:
            self._schedule_sweep()

    def _connect(self) -> Connection:
        return Connection(self, self._dispatcher, self._limits.max_request_bytes)

    async def stop_accepting(self) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
        if self._server is not None:
            self._server.close()
            self._server = None

    def close_connections(self) -> None:
        for connection in list(self._connections):
            connection.close()

    def now_s(self) -> float:
        return self._clock.monotonic()

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    def admit(self, connection: Connection) -> str | None:
        """Count a new connection in; the reason if it may not stay."""
        self._connections.add(connection)
        self._per_ip[connection.peer_host] += 1
        connection.last_active_s = self.now_s()
        if len(self._connections) > self._limits.max_connections:
            return f"max.connections ({self._limits.max_connections}) is reached"
        if self._per_ip[connection.peer_host] > self._limits.max_connections_per_ip:
            return f"max.connections.per.ip ({self._limits.max_connections_per_ip}) is reached"
        return None

    def forget(self, connection: Connection) -> None:
        if connection not in self._connections:
            return
        self._connections.discard(connection)
        self._per_ip[connection.peer_host] -= 1
        if not self._per_ip[connection.peer_host]:
            del self._per_ip[connection.peer_host]

    def _schedule_sweep(self) -> None:
        interval_s = max(self._limits.max_idle_ms / IDLE_SWEEPS_PER_LIMIT / 1000, 0.05)
        self._sweep = asyncio.get_running_loop().call_later(interval_s, self._close_idle)

    def _close_idle(self) -> None:
        oldest_allowed_s = self.now_s() - self._limits.max_idle_ms / 1000
        for connection in [c for c in self._connections if c.last_active_s < oldest_allowed_s and c.idle]:
            connection.abort(f"idle for more than connections.max.idle.ms ({self._limits.max_idle_ms})")
        self._schedule_sweep()
