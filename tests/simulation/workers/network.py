"""Connections between the processes of a simulated machine: messages arrive in order, some time later, or never where one is lost.

An end of a connection is one of asyncio's transports, so that the broker's own protocols run on both sides as they do on sockets. What
arrives at a process becomes a callback of its event loop: one that hangs takes nothing, one that has ended is gone.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from typing import Any

from horolog.base.clock import ManualClock
from horolog.broker.log.storage.memory_disk import PowerCut
from tests.simulation.loop import SimulatedLoop

DELAYS_MS = (0, 0, 0, 0, 1, 1, 2, 5, 20)
SLOW_MS = (0, 50, 200, 400, 1000, 2500)
"""While the machine has other things to do than to carry messages."""


class End(asyncio.Transport):
    """One end of a connection."""

    def __init__(self, network: Network, loop: SimulatedLoop) -> None:
        super().__init__()
        self.loop = loop
        self.other: End
        self.protocol: Any = None
        self.is_lost = False
        self._network = network
        self._is_closing = False
        self._is_paused = False
        self._unread: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self._under_way = 0
        self._arrives_s = 0.0
        self._resets = 0
        """What was written before a reset and has not arrived never does."""

    def __repr__(self) -> str:
        return f"<End at {self.protocol!r}{', lost' if self.is_lost else ''}>"

    # -- what a protocol asks for

    def write(self, data: Any) -> None:
        if not self._is_closing:
            self._send(self.other._receive, bytes(data))

    def writelines(self, parts: Any) -> None:
        self.write(b"".join(parts))

    def write_eof(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._send(self.other._hear_end, None)

    def close(self) -> None:
        if not self.is_lost:
            self.write_eof()
            self.loop.call_soon(self._lose, None)

    def abort(self) -> None:
        if not self.is_lost:
            self._resets += 1
            self._is_closing = True
            self._send(self.other._hear_end, ConnectionResetError("the other end was aborted"))
            self.loop.call_soon(self._lose, None)

    def is_closing(self) -> bool:
        return self._is_closing

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Whatever is written has left."""

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        self._is_paused = False
        while self._unread and not self._is_paused:
            take, arguments = self._unread.popleft()
            take(*arguments)

    # -- on the way

    def _send(self, take: Callable[..., None], content: Any) -> None:
        """Have it taken by the other end, behind whatever was sent before. The process may end right before or behind that."""
        ends_it = self._network.end_due(self.loop)
        if ends_it is None or ends_it.has_left:
            self._carry(take, content)
        if ends_it is not None:
            ends_it.end()
            raise PowerCut  # nothing of what the process was about to do is done

    def _carry(self, take: Callable[..., None], content: Any) -> None:
        now_s, resets = self._network.now_s, self._resets
        self._arrives_s = max(self._arrives_s, now_s + self._network.delay_ms() / 1000)
        self._network.note_arrival(self._arrives_s)
        is_first = not self._under_way
        self._under_way += 1

        def arrive() -> None:
            self._under_way -= 1
            if resets == self._resets:
                self.other.loop.call_soon(take, content)

        wires = self._network.loop
        if is_first and self._arrives_s <= now_s:
            wires.call_soon(arrive)
        else:
            wires.call_later(self._arrives_s - now_s, arrive)

    def _receive(self, data: bytes) -> None:
        if self.is_lost:
            return
        if self._is_paused:
            self._unread.append((self._receive, (data,)))
        else:
            self.protocol.data_received(data)

    def _hear_end(self, error: Exception | None) -> None:
        if self._is_paused and error is None and not self.is_lost:
            self._unread.append((self._hear_end, (error,)))
            return
        if not self._is_closing:
            self._is_closing = True
            self._send(self.other._hear_end, None)
        self._lose(error)

    def _lose(self, error: Exception | None) -> None:
        if not self.is_lost:
            self.is_lost = True
            self._network.forget(self)
            if self.protocol is not None:
                self.protocol.connection_lost(error)

    # -- what the network does to it

    def cut(self) -> None:
        """The connection is lost with whatever is on its way."""
        for end in (self, self.other):
            end._resets += 1
            end._is_closing = True
            end.loop.call_soon(end._lose, ConnectionResetError("the connection was cut"))

    def owner_has_ended(self) -> None:
        """What it has written arrives, and then its end."""
        if not self._is_closing:
            self._is_closing = True
            self._carry(self.other._hear_end, None)
        self.is_lost = True


class MessageEnd:
    """The end of a process at a message that it sends."""

    def __init__(self, messages: int, end: Callable[[], None], *, has_left: bool) -> None:
        self.messages = messages
        self.end = end
        self.has_left = has_left
        """The message is sent before."""


class Server:
    """A path at which a process listens."""

    def __init__(self, network: Network, loop: SimulatedLoop, factory: Callable[[], Any], path: str) -> None:
        self._network = network
        self.loop = loop
        self.factory = factory
        self.path = path
        self.sockets = ()

    def close(self) -> None:
        self._network.closed(self)


class Network:
    """All connections and listeners of one machine; `loop` is what carries the messages."""

    def __init__(self, clock: ManualClock, chance: random.Random) -> None:
        self._clock = clock
        self._chance = chance
        self.loop = SimulatedLoop(clock, chance)
        self.delays_ms = DELAYS_MS
        self.late_until_s = 0.0
        """When the last message arrives that was sent while they were slow."""
        self._servers: dict[str, Server] = {}
        self._ends: dict[End, None] = {}
        self._message_ends: dict[SimulatedLoop, MessageEnd] = {}

    def __repr__(self) -> str:
        return f"<Network of {len(self._ends)} ends, {sorted(self._servers)}>"

    def begin_anew(self) -> None:
        """No process is left, and nothing is on its way."""
        self.loop = SimulatedLoop(self._clock, self._chance)
        self.delays_ms = DELAYS_MS
        self.late_until_s = 0.0
        self._servers.clear()
        self._ends.clear()
        self._message_ends.clear()

    @property
    def now_s(self) -> float:
        return self._clock.monotonic()

    def delay_ms(self) -> int:
        return self._chance.choice(self.delays_ms)

    def note_arrival(self, at_s: float) -> None:
        if self.delays_ms is SLOW_MS:
            self.late_until_s = max(self.late_until_s, at_s)

    def listen(self, loop: SimulatedLoop, factory: Callable[[], Any], path: str) -> Server:
        """Whoever listened at this path before has ended."""
        server = self._servers[path] = Server(self, loop, factory, path)
        return server

    def closed(self, server: Server) -> None:
        if self._servers.get(server.path) is server:
            del self._servers[server.path]

    async def connect(self, loop: Any, factory: Callable[[], Any], path: str) -> tuple[End, Any]:
        """Raises ConnectionRefusedError where nobody listens."""
        made = loop.create_future()
        self.loop.call_later(self.delay_ms() / 1000, loop.call_soon, _resolve, made)
        await made
        server = self._servers.get(path)
        if server is None:
            raise ConnectionRefusedError(f"nobody listens at {path}")
        ours, theirs = self.pair(loop, server.loop)

        def accept() -> None:
            theirs.protocol = server.factory()
            theirs.protocol.connection_made(theirs)

        server.loop.call_soon(accept)
        ours.protocol = factory()
        ours.protocol.connection_made(ours)
        return ours, ours.protocol

    def pair(self, one: SimulatedLoop, another: SimulatedLoop) -> tuple[End, End]:
        """Two ends of a new connection, without their protocols."""
        ends = End(self, one), End(self, another)
        ends[0].other, ends[1].other = ends[1], ends[0]
        self._ends.update(dict.fromkeys(ends))
        return ends

    def forget(self, end: End) -> None:
        self._ends.pop(end, None)

    # -- ends of processes

    def end_at_message(self, loop: SimulatedLoop, messages: int, end: Callable[[], None], *, has_left: bool) -> None:
        """Have a process end at the n-th message that it sends from now on."""
        self._message_ends[loop] = MessageEnd(messages, end, has_left=has_left)

    def end_due(self, loop: SimulatedLoop) -> MessageEnd | None:
        set_end = self._message_ends.get(loop)
        if set_end is None:
            return None
        set_end.messages -= 1
        return None if set_end.messages else self._message_ends.pop(loop)

    def forget_ends(self) -> None:
        self._message_ends.clear()

    def between_processes(self) -> list[End]:
        """One end of each connection that was made by `connect`."""
        return [end for end in self._ends if end.loop is not self.loop and end.other.loop is not self.loop]

    def has_ended(self, loop: SimulatedLoop) -> None:
        """The process of this loop is gone."""
        self._message_ends.pop(loop, None)
        for path in [path for path, server in self._servers.items() if server.loop is loop]:
            del self._servers[path]
        for end in [end for end in self._ends if end.loop is loop]:
            del self._ends[end]
            end.owner_has_ended()


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
