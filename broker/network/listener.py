"""A listening address: accepts connections within the limits, and closes those that have been idle too long."""

from __future__ import annotations

import asyncio
import math
import socket
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.network.connection import Connection
from broker.setting_types import SettingsError
from broker.settings import Settings

if TYPE_CHECKING:
    from broker.clock import Clock
    from broker.network.dispatch import Dispatcher

IDLE_SWEEPS_PER_LIMIT = 10


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The named settings that bound what peers may hold open."""

    max_connections: int
    max_connections_per_ip: int
    max_connections_of_ip: Mapping[str, int]
    max_idle_ms: int
    max_request_bytes: int
    max_unanswered_requests: int
    max_unanswered_bytes: float
    backlog: int
    send_buffer_bytes: int
    receive_buffer_bytes: int

    @classmethod
    def of(cls, settings: Settings) -> ConnectionLimits:
        return cls(
            settings.max_connections,
            settings.max_connections_per_ip,
            _per_address(settings.max_connections_per_ip_overrides),
            settings.connections_max_idle_ms,
            settings.socket_request_max_bytes,
            settings.queued_max_requests,
            settings.queued_max_request_bytes if settings.queued_max_request_bytes >= 0 else math.inf,
            settings.socket_listen_backlog_size,
            settings.socket_send_buffer_bytes,
            settings.socket_receive_buffer_bytes,
        )


def _per_address(overrides: Iterable[str]) -> dict[str, int]:
    """`max.connections.per.ip.overrides`: ADDRESS:COUNT, several of them."""
    limits = {}
    for text in overrides:
        address, _, count = text.rpartition(":")
        if not (address and count.strip().isdigit()):
            raise SettingsError("max.connections.per.ip.overrides", text, "ADDRESS:COUNT is allowed")
        limits[address.strip()] = int(count)
    return limits


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
        self._connections: dict[Connection, float] = {}  # when each was last seen active, in seconds
        self._per_ip: Counter[str] = Counter()
        self._sweep: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        return f"<Listener {self.name} {self.host}:{self.port}, {len(self._connections)} connections>"

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    @property
    def unanswered_count(self) -> int:
        """Requests that have no answer yet."""
        return sum(connection.unanswered_count for connection in self._connections)

    async def start(self) -> None:
        """Bind and accept; port 0 becomes the port that was given."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            self._connect, self.host or None, self.port, backlog=self._limits.backlog
        )
        self.port = self._server.sockets[0].getsockname()[1]
        if self._limits.max_idle_ms > 0:
            self._schedule_sweep()

    def _connect(self) -> Connection:
        return Connection(self, self._dispatcher, self._limits)

    async def stop_accepting(self) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
        if self._server is not None:
            self._server.close()
            self._server = None

    def close_connections(self) -> None:
        for connection in list(self._connections):
            connection.close()

    def admit(self, connection: Connection) -> str | None:
        """Count a new connection in; the reason if it may not stay."""
        self._connections[connection] = self._clock.monotonic()
        self._per_ip[connection.peer_host] += 1
        if len(self._connections) > self._limits.max_connections:
            return f"max.connections ({self._limits.max_connections}) is reached"
        allowed = self._limits.max_connections_of_ip.get(connection.peer_host, self._limits.max_connections_per_ip)
        if self._per_ip[connection.peer_host] > allowed:
            return f"max.connections.per.ip ({allowed}) is reached"
        return None

    def tune(self, connected: socket.socket) -> None:
        """Small answers leave at once; buffers are the system's unless the settings say otherwise."""
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._limits.send_buffer_bytes >= 0:
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._limits.send_buffer_bytes)
        if self._limits.receive_buffer_bytes >= 0:
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._limits.receive_buffer_bytes)

    def forget(self, connection: Connection) -> None:
        if connection not in self._connections:
            return
        del self._connections[connection]
        self._per_ip[connection.peer_host] -= 1
        if not self._per_ip[connection.peer_host]:
            del self._per_ip[connection.peer_host]

    def _schedule_sweep(self) -> None:
        interval_s = max(self._limits.max_idle_ms / IDLE_SWEEPS_PER_LIMIT / 1000, 0.05)
        self._sweep = asyncio.get_running_loop().call_later(interval_s, self._close_idle)

    def _close_idle(self) -> None:
        """Connections only note that they were active; how long ago is counted here, once in a while."""
        now_s = self._clock.monotonic()
        oldest_allowed_s = now_s - self._limits.max_idle_ms / 1000
        for connection, active_s in list(self._connections.items()):
            if connection.is_active or not connection.idle:
                connection.is_active = False
                self._connections[connection] = now_s
            elif active_s < oldest_allowed_s:
                connection.abort(f"idle for more than connections.max.idle.ms ({self._limits.max_idle_ms})")
        self._schedule_sweep()
