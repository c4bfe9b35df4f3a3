"""Bounds browsers' connections: how many there are, in all and from one address, and how long one may be silent.

A new connection is always accepted. To make room, the oldest idle one of the address with the most is closed: a client that holds
idle connections keeps no other out. A request has to begin and to be complete within a timeout, TLS included.
"""

import asyncio
import ssl
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, Protocol

AT_ONCE: Final = 200
PER_ADDRESS: Final = 100
FIRST_REQUEST_S: Final = 10.0
"""From the start of a connection, or the first byte after a response, to the end of a request's head."""


class Visitor(Protocol):
    """One connection."""

    address: str

    @property
    def is_idle(self) -> bool: ...
    def end(self) -> None: ...


class Entrance:
    """Counts visitors in and out."""

    def __init__(self, at_once: int = AT_ONCE, per_address: int = PER_ADDRESS) -> None:
        self._at_once = at_once
        self._per_address = per_address
        self._visitors: dict[Visitor, None] = {}
        """The oldest first."""

    def __repr__(self) -> str:
        return f"<Entrance with {len(self._visitors)} visitors>"

    def __len__(self) -> int:
        return len(self._visitors)

    def enter(self, visitor: Visitor) -> None:
        alike = [one for one in self._visitors if one.address == visitor.address]
        self._visitors[visitor] = None
        if len(alike) >= self._per_address:
            self._make_room(alike, visitor)
        elif len(self._visitors) > self._at_once:
            idle = [one for one in self._visitors if one.is_idle and one is not visitor]
            counts = Counter(one.address for one in idle)
            most = max(counts, key=counts.__getitem__, default="")
            self._make_room([one for one in idle if one.address == most], visitor)

    def _make_room(self, visitors: list[Visitor], newest: Visitor) -> None:
        """Close an idle connection; if all are being answered, close the newest."""
        victim = next((one for one in visitors if one.is_idle), newest)
        self.leave(victim)
        victim.end()

    def leave(self, visitor: Visitor) -> None:
        self._visitors.pop(visitor, None)


class Greeting(asyncio.Protocol):
    """A connection in its TLS handshake; a `Visitor`. Then the protocol from `made` takes its place."""

    def __init__(self, entrance: Entrance, context: ssl.SSLContext, made: Callable[[], asyncio.Protocol]) -> None:
        self._entrance = entrance
        self._context = context
        self._made = made
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None
        self.address = ""
        self.is_idle = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport), "a stream"
        self._transport = transport
        self.address = address_of(transport)
        transport.pause_reading()
        self._entrance.enter(self)
        if not transport.is_closing():
            self._task = asyncio.get_running_loop().create_task(self._greet(transport))

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - however it ended, it has ended
        self._entrance.leave(self)

    async def _greet(self, transport: asyncio.Transport) -> None:
        early = _Early()
        try:
            secure = await asyncio.get_running_loop().start_tls(
                transport, early, self._context, server_side=True, ssl_handshake_timeout=FIRST_REQUEST_S
            )
        except (OSError, TimeoutError, asyncio.CancelledError):
            transport.abort()
        else:
            self._entrance.leave(self)
            if secure is not None and not early.is_lost:
                early.go_on_as(self._made(), secure)
            return
        self._entrance.leave(self)

    def end(self) -> None:
        if self._task is not None:
            self._task.cancel()
        assert self._transport is not None, "a visitor is connected"
        self._transport.abort()


class _Early(asyncio.Protocol):
    """Keeps data that arrives right after the handshake, before its end is reported."""

    def __init__(self) -> None:
        self._data = bytearray()
        self.is_lost = False

    def data_received(self, data: bytes) -> None:
        self._data += data

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - however it ended, it has ended
        self.is_lost = True

    def go_on_as(self, protocol: asyncio.Protocol, secure: asyncio.Transport) -> None:
        secure.set_protocol(protocol)
        protocol.connection_made(secure)
        if self._data and not secure.is_closing():
            protocol.data_received(bytes(self._data))


def address_of(transport: asyncio.BaseTransport) -> str:
    peer: Any = transport.get_extra_info("peername")
    return str(peer[0]) if peer else ""
