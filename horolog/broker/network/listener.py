"""A listening address: accepts connections within the limits, and closes those that are idle, or slow to send a request, for too long."""

from __future__ import annotations

import asyncio
import math
import socket
from typing import TYPE_CHECKING

from horolog.base.clock import SystemClock
from horolog.broker.base.one_port import LISTEN, at_one_port, cannot_listen, port_of
from horolog.broker.network.acceptor import accept_at
from horolog.broker.network.conversation import Conversation
from horolog.broker.network.send_turns import SendTurns
from horolog.broker.network.transport import SocketTransport

if TYPE_CHECKING:
    from horolog.base.clock import Clock
    from horolog.broker.base.unix_sockets import UnixServer
    from horolog.broker.network.acceptor import Acceptor
    from horolog.broker.network.conversation import HandshakeFactory
    from horolog.broker.network.dispatch import Dispatcher
    from horolog.broker.network.limits import ConnectionLimits
    from horolog.broker.security.tls_wire import TlsDoor
    from horolog.protocol.frame_buffers import FrameBuffers

SWEEPS_PER_LIMIT = 10
LEAST_SWEEP_S = 0.05

MOST_TAKING_S = 2.0
"""Time in which peers may take their last answers when the broker stops."""

MOST_CLOSING_S = 0.25
"""Time in which peers that have taken all their answers may close."""

LOOK_AGAIN_S = 0.01

_MACHINE = SystemClock()


class Listener:
    """One bound address and its connections."""

    def __init__(
        self,
        name: str,
        host: str,
        port: int,
        dispatcher: Dispatcher,
        clock: Clock,
        limits: ConnectionLimits,
        *,
        new_handshake: HandshakeFactory | None = None,
        door: TlsDoor | None = None,
    ) -> None:
        """`new_handshake` identifies a peer; `door` speaks TLS with it first."""
        self.name = name
        self.host = host
        self.port = port
        self.send_turns = SendTurns()
        self._dispatcher = dispatcher
        self._clock = clock
        self._limits = limits
        self._new_handshake = new_handshake
        self._door = door
        self._servers: list[Acceptor | UnixServer] = []
        self._is_stopping = False
        self._connections: dict[SocketTransport, float] = {}  # when each was last seen active, in seconds
        self._sweep: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        return f"<Listener {self.name} {self.host}:{self.port}, {len(self._connections)} connections>"

    @property
    def frame_buffers(self) -> FrameBuffers:
        return self._limits.memory.buffers

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    @property
    def unanswered_count(self) -> int:
        """Requests that have no answer yet."""
        return sum(len(connection.conversation.unanswered) for connection in self._connections)

    async def start(self) -> None:
        """Bind and accept; port 0 becomes the port that the system chose."""
        await self._bind()
        bounds_ms = [ms for ms in (self._limits.max_idle_ms, self._limits.max_read_ms) if ms > 0]
        if bounds_ms:
            self._schedule_sweep(max(min(bounds_ms) / SWEEPS_PER_LIMIT / 1000, LEAST_SWEEP_S))

    async def _bind(self) -> None:
        try:
            server = await at_one_port(self._accept_at, self.port)
        except OSError as error:
            raise cannot_listen(error, self.host, self.port, LISTEN) from error
        self.port = port_of(server)
        self._servers.append(server)

    async def _accept_at(self, port: int, *, shares_port: bool = False) -> Acceptor:
        return await accept_at(self._connect, self.host, port, self._limits.backlog, shares_port=shares_port)

    def _connect(self) -> asyncio.Protocol:
        """Turns are measured by the machine's clock, whatever clock the broker uses."""
        handshake = None if self._new_handshake is None else self._new_handshake()
        conversation = Conversation(
            self._dispatcher.dispatch, self._limits, _MACHINE.monotonic, listener=self.name, handshake=handshake
        )
        transport = SocketTransport(self, conversation)
        if self._door is None:
            return transport
        known = conversation.serve_as if handshake is None else None  # otherwise the handshake identifies it
        return self._door.wire(transport, known, self.tune)

    async def stop_accepting(self) -> None:
        self._is_stopping = True
        if self._sweep is not None:
            self._sweep.cancel()
        for server in self._servers:
            server.close()
        self._servers.clear()

    def stop_serving(self) -> None:
        """Read nothing more; requests that were served are still answered."""
        for connection in list(self._connections):
            connection.conversation.drain()

    @property
    def holds_back_answers(self) -> bool:
        """Whether any answer that is ready waits for one before it."""
        return any(connection.conversation.unanswered.held_back_bytes for connection in self._connections)

    async def part(self) -> None:
        """Let every peer take its answers and close, for at most `MOST_TAKING_S`."""
        for connection in list(self._connections):
            connection.part()
        for looks in range(round(MOST_TAKING_S / LOOK_AGAIN_S)):
            if not self._connections:
                break
            if looks * LOOK_AGAIN_S > MOST_CLOSING_S:
                self._close_those_that_took_all()
            await asyncio.sleep(LOOK_AGAIN_S)
        self._close_connections()

    def _close_those_that_took_all(self) -> None:
        for connection in list(self._connections):
            if not (connection.unsent_bytes or connection.unsent_file_bytes):
                connection.close()
                self.forget(connection)

    def cut(self) -> None:
        """Close every connection at once, whatever its peer still waits for."""
        self._close_connections()

    def _close_connections(self) -> None:
        for connection in list(self._connections):
            connection.close()

    def admit(self, connection: SocketTransport) -> str | None:
        """Count in a new connection; return the reason if it may not stay."""
        self._connections[connection] = self._clock.monotonic()
        if self._is_stopping:
            return "the broker is stopping"
        return self._refusal(connection)

    def _refusal(self, connection: SocketTransport) -> str | None:
        return self._limits.admission.enter(connection.conversation.peer_host)

    def too_soon_s(self, connection: SocketTransport) -> float:
        """Seconds until a connection is closed because its address opens them too fast; 0 if it may stay."""
        quotas = self._limits.quotas
        return 0.0 if quotas is None else quotas.connect(connection.conversation.peer_host)

    def tune(self, connected: socket.socket) -> None:
        """Small answers leave at once; buffers are the system's unless the settings say otherwise."""
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._limits.send_buffer_bytes >= 0:
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._limits.send_buffer_bytes)
        if self._limits.receive_buffer_bytes >= 0:
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._limits.receive_buffer_bytes)

    def forget(self, connection: SocketTransport) -> None:
        if connection not in self._connections:
            return
        del self._connections[connection]
        self._limits.admission.leave(connection.conversation.peer_host)

    def hurry(self, seconds: float) -> None:
        """Shorten the time in which connections are not read from."""
        for connection in list(self._connections):
            connection.hurry(seconds)

    def _schedule_sweep(self, interval_s: float) -> None:
        self._sweep = asyncio.get_running_loop().call_later(interval_s, self._look_at_all, interval_s)

    def _look_at_all(self, interval_s: float) -> None:
        """Connections only note that they were active or began a request; this periodic sweep counts how long ago that was."""
        now_s = self._clock.monotonic()
        idle_ms, read_ms = self._limits.max_idle_ms, self._limits.max_read_ms
        oldest_allowed_s = now_s - idle_ms / 1000 if idle_ms > 0 else -math.inf
        sweeps_allowed = read_ms / 1000 / interval_s if read_ms > 0 else math.inf
        for connection, active_s in list(self._connections.items()):
            conversation = connection.conversation
            if conversation.unfinished_bytes and conversation.wants_to_read:
                conversation.unfinished_sweeps += 1
                if conversation.unfinished_sweeps > sweeps_allowed:
                    conversation.cut(f"a request did not arrive within horolog.request.read.max.ms ({read_ms})")
                    continue
            if conversation.is_active or not conversation.idle:
                conversation.is_active = False
                self._connections[connection] = now_s
            elif active_s < oldest_allowed_s:
                conversation.cut(f"idle for more than connections.max.idle.ms ({idle_ms})")
        self._schedule_sweep(interval_s)
