"""TLS over a transport of the event loop: decrypts what arrives for a protocol, and encrypts what that writes.

The protocol gets its transport at once, so that bounds on connections apply before anything is computed for a peer. It gets no data
until the handshake is over. Handshakes have bounds of their own, in time, in bytes and in number: if too many are under way, the oldest
is closed. Python's `ssl` in memory takes less than half as long as uvloop's own TLS for a small request, and as long for large ones.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, cast

from horolog.broker.base.principal import Principal
from horolog.broker.security.principal_mapping import NoRuleFits
from horolog.broker.security.tls import ListenerTls

log = logging.getLogger(__name__)

RECORD_BYTES: Final = 16 * 1024
"""The most that TLS encrypts in one go."""

CHUNK_BYTES: Final = 16 * RECORD_BYTES
HANDSHAKE_RECORD: Final = 0x16

LetIn = Callable[[Principal], None]
Tell = Callable[[str, Principal | None, str], None]
"""Called with the address and the principal of each peer that was let in, or with the reason why a peer was not."""


class TlsDoor:
    """The TLS of one listener's connections; `half_open` are those whose handshake is not over, the oldest first."""

    def __init__(self, tls: ListenerTls, tell: Tell | None = None) -> None:
        self.tls = tls
        self.tell = tell
        self.half_open: dict[TlsWire, None] = {}

    def __repr__(self) -> str:
        return f"<TlsDoor of {self.tls!r}, {len(self.half_open)} half open>"

    def wire(
        self,
        inner: asyncio.Protocol,
        known: LetIn | None = None,
        tune: Callable[[socket.socket], None] | None = None,
    ) -> TlsWire:
        """A connection for `inner`; `known` is called with the peer's principal."""
        return TlsWire(self, inner, known, tune)

    def begin(self, wire: TlsWire) -> None:
        if len(self.half_open) >= self.tls.bounds.max_count:
            oldest = next(iter(self.half_open))
            oldest.fail(f"new connections arrived, and its handshake was the oldest of {self.tls.bounds.max_count}")
        self.half_open[wire] = None

    def ended(self, wire: TlsWire) -> None:
        self.half_open.pop(wire, None)


class TlsWire(asyncio.Transport, asyncio.Protocol):
    """A protocol to the event loop, a transport to the protocol inside."""

    def __init__(
        self,
        door: TlsDoor,
        inner: asyncio.Protocol,
        known: LetIn | None,
        tune: Callable[[socket.socket], None] | None,
    ) -> None:
        super().__init__()
        self._door = door
        self._inner = inner
        self._known = known
        self._tune = tune
        self._wire: asyncio.Transport | None = None
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._session: ssl.SSLObject | None = None
        self._received_bytes = 0
        self._is_secure = False
        self._is_deaf = False
        self._timer: asyncio.TimerHandle | None = None

    def __repr__(self) -> str:
        return f"<TlsWire, {'secure' if self._is_secure else 'half open'}, of {self._inner!r}>"

    # -- events of the event loop's transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._wire = wire = cast("asyncio.Transport", transport)
        self._inner.connection_made(self)
        if wire.is_closing():
            return
        connected = wire.get_extra_info("socket")
        if connected is not None and self._tune is not None:
            self._tune(connected)
        self._door.begin(self)
        seconds = self._door.tls.bounds.max_ms / 1000
        self._timer = asyncio.get_running_loop().call_later(seconds, self._is_late)

    def connection_lost(self, error: Exception | None) -> None:
        self._wire = None
        self._is_deaf = True
        self._handshake_ended()
        self._inner.connection_lost(error)

    def data_received(self, data: bytes) -> None:
        if self._is_deaf:
            return
        if self._session is None:
            if data[0] != HANDSHAKE_RECORD:
                self.fail("it does not use TLS; set security.protocol=SSL or SASL_SSL in the client")
                return
            self._session = self._door.tls.context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._incoming.write(data)
        if self._is_secure:
            self._read(self._session)
        else:
            self._shake_hands(self._session, len(data))

    def pause_writing(self) -> None:
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        self._inner.resume_writing()

    # -- the handshake

    def _shake_hands(self, session: ssl.SSLObject, size_bytes: int) -> None:
        self._received_bytes += size_bytes
        try:
            session.do_handshake()
            principal = self._door.tls.principal_of(session)
        except ssl.SSLWantReadError:
            self._flush()
            most_bytes = self._door.tls.bounds.max_bytes
            if self._received_bytes > most_bytes:
                self.fail(f"its handshake is larger than horolog.ssl.handshake.max.bytes ({most_bytes})")
        except ssl.SSLError as error:
            self.fail(f"its handshake failed: {_said(error)}")
        except NoRuleFits as error:
            self.fail(str(error))
        else:
            self._is_secure = True
            self._door.tls.handshakes += 1
            self._handshake_ended()
            self._flush()
            if self._known is not None:
                self._known(principal)
                if self._door.tell is not None:
                    self._door.tell(_host_of(self), principal, "")
            self._read(session)

    def _handshake_ended(self) -> None:
        self._door.ended(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _is_late(self) -> None:
        self.fail(f"its handshake was not over within horolog.ssl.handshake.max.ms ({self._door.tls.bounds.max_ms})")

    def fail(self, reason: str) -> None:
        """Close a connection that cannot be trusted, and log the reason in one line; the peer may get a TLS alert."""
        if self._wire is None or self._is_deaf:
            return
        self._door.tls.failures += 1
        peer = _host_of(self._wire)
        log.info("closing the connection of %s on %s: %s", peer or "a client", self._door.tls.listener, reason)
        if self._door.tell is not None and not self._is_secure:
            self._door.tell(peer, None, reason)
        self._is_deaf = True
        self._handshake_ended()
        self._flush()
        self._wire.close()

    # -- bytes

    def _read(self, session: ssl.SSLObject) -> None:
        """Pass on what can be decrypted. An empty piece means that the peer sends no more."""
        incoming, parts, is_over = self._incoming, [], False
        try:
            while incoming.pending or session.pending():
                part = session.read(RECORD_BYTES)
                if not part:
                    is_over = True
                    break
                parts.append(part)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            self.fail(f"its data cannot be decrypted: {_said(error)}")
            return
        if self._outgoing.pending:
            self._flush()
        if parts:
            self._inner.data_received(parts[0] if len(parts) == 1 else b"".join(parts))
        if is_over:
            self.close()

    def _flush(self) -> None:
        """Send TLS's own messages."""
        if self._wire is not None and self._outgoing.pending and not self._wire.is_closing():
            self._wire.write(self._outgoing.read())

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        self.writelines([data])

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview[Any]]) -> None:
        session, wire = self._session, self._wire
        if session is None or wire is None or not self._is_secure or wire.is_closing():
            return
        outgoing, encrypted = self._outgoing, []
        for piece in _pieces(list(list_of_data)):
            session.write(piece)
            encrypted.append(outgoing.read())
        wire.writelines(encrypted)

    # -- what the protocol asks of its transport

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """The socket is hidden from the protocol: what it wrote there would bypass TLS."""
        return default if self._wire is None or name == "socket" else self._wire.get_extra_info(name, default)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if self._wire is not None:
            self._wire.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        return 0 if self._wire is None else self._wire.get_write_buffer_size()

    def pause_reading(self) -> None:
        if self._wire is not None and not self._wire.is_closing():
            self._wire.pause_reading()

    def resume_reading(self) -> None:
        if self._wire is not None and not self._wire.is_closing():
            self._wire.resume_reading()

    def is_closing(self) -> bool:
        return self._wire is None or self._wire.is_closing()

    def write_eof(self) -> None:
        """Signal the end of the output; what the peer still sends is dropped."""
        if self._wire is not None and not self._wire.is_closing():
            self._say_goodbye()
            self._wire.write_eof()

    def close(self) -> None:
        if self._wire is not None and not self._wire.is_closing():
            self._say_goodbye()
            self._wire.close()

    def abort(self) -> None:
        self._is_deaf = True
        if self._wire is not None:
            self._wire.abort()

    def _say_goodbye(self) -> None:
        if self._session is not None and self._is_secure and not self._is_deaf:
            with contextlib.suppress(ssl.SSLError):  # it would wait for the peer's own goodbye
                self._session.unwrap()
            self._flush()
        self._is_deaf = True


def _pieces(parts: list[Any]) -> Iterator[Any]:
    """Join small parts, so that they share a record; cut large ones, so that no copy of them is as large."""
    if sum(map(len, parts)) <= CHUNK_BYTES:
        yield parts[0] if len(parts) == 1 else b"".join(parts)
        return
    for part in parts:
        view = memoryview(part)
        for start in range(0, len(view), CHUNK_BYTES):
            yield view[start : start + CHUNK_BYTES]


def _host_of(wire: asyncio.Transport) -> str:
    peer = wire.get_extra_info("peername")
    return str(peer[0]) if peer else ""


def _said(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message}"
    return (error.reason or str(error)).replace("_", " ").lower()
