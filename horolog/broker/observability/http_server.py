"""A small HTTP server for monitoring: GET and HEAD only, answered by `respond`.

If a token is required, every path answers a client without it alike, with 401 and nothing else. That includes the path that only says
that the broker is alive, for a probe can send the token as well. With a door the server speaks TLS.

One request per connection, at most `MAX_HEAD_BYTES` long and complete within `HEAD_TIMEOUT_S`. A long answer is written piece by piece,
a piece per turn of the loop and no faster than the peer reads. At most `MAX_CONNECTIONS` are open at one time, and
`MAX_PER_ADDRESS` from one address. The newest is always admitted: it replaces the oldest whose request is not complete, or else
the oldest that is being answered. So peers that send half a request, or never read, cannot keep a health check out.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from http import HTTPStatus
from typing import NamedTuple, cast

from horolog.broker.base.one_port import HTTP_LISTEN, at_one_port, cannot_listen, port_of
from horolog.broker.base.unix_sockets import UnixServer
from horolog.broker.security.tls_wire import TlsDoor
from horolog.version import __version__

log = logging.getLogger(__name__)

MAX_CONNECTIONS = 32
MAX_PER_ADDRESS = 16
MAX_HEAD_BYTES = 24 * 1024
"""A thousand timestamps in milliseconds have room in it."""
HEAD_TIMEOUT_S = 2.0
ANSWER_TIMEOUT_S = 30.0
HEAD_END = re.compile(rb"\n\r?\n")

MORE_TOLD = {
    HTTPStatus.METHOD_NOT_ALLOWED: "Allow: GET, HEAD\r\n",
    HTTPStatus.UNAUTHORIZED: "WWW-Authenticate: Bearer\r\n",
}
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
JSON_TYPE = "application/json"
TEXT_TYPE = "text/plain; charset=utf-8"
LOG_PREFIX = "/log/"
INDEX = f"horolog {__version__}\n/metrics\n/health\n/ready\n{LOG_PREFIX}TOPIC\n".encode()


class HttpResponse(NamedTuple):
    """One answer; its length is not known before it is written, so it ends with the connection."""

    status: HTTPStatus
    type: str
    pieces: Iterable[bytes]


def failure(status: HTTPStatus) -> HttpResponse:
    return HttpResponse(status, TEXT_TYPE, [f"{status.value} {status.phrase}\n".encode()])


def refusal(status: HTTPStatus, reason: str) -> HttpResponse:
    """A refusal with its reason as JSON, for programs that use it."""
    return json_answer(status, {"error": reason})


def json_answer(status: HTTPStatus, value: object) -> HttpResponse:
    return HttpResponse(status, JSON_TYPE, [json.dumps(value).encode() + b"\n"])


class HttpServer(ABC):
    """Connections at one address, and within bounds."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._server: asyncio.Server | UnixServer | None = None
        self.connections: dict[HttpConnection, None] = {}  # the oldest first
        self.port = 0
        self._token: bytes | None = None
        self._door: TlsDoor | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} on port {self.port}, {len(self.connections)} connections>"

    @abstractmethod
    def respond(self, path: str, query: str, done: Callable[[HttpResponse], None]) -> None:
        """Call `done` with the answer, now or later; the query is what follows the question mark."""

    def protect(self, token: str | None, door: TlsDoor | None) -> None:
        """Require a token from now on, and speak TLS at an address."""
        self._token = None if token is None else token.encode()
        self._door = door

    def lets_in(self, head: bytes) -> bool:
        """Whether a request has the token, if one is required."""
        return self._token is None or hmac.compare_digest(_token_in(head), self._token)

    async def start(self, host: str, port: int) -> None:
        def connect() -> asyncio.Protocol:
            connection = HttpConnection(self, self._loop)
            return connection if self._door is None else self._door.wire(connection)

        try:
            server = await at_one_port(partial(self._loop.create_server, connect, host or None), port)
        except OSError as error:
            raise cannot_listen(error, host, port, HTTP_LISTEN) from error
        self._server, self.port = server, port_of(server)

    async def start_unix(self, path: str) -> None:
        """Listen on a Unix socket; the permissions of its folder decide which clients may connect."""
        self._token = None
        server = UnixServer(path, lambda: HttpConnection(self, self._loop))
        await server.start()
        self._server = server

    def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        for connection in list(self.connections):
            connection.close()

    def take_in(self, connection: HttpConnection) -> None:
        """Add a new connection; close an older one if a bound is reached."""
        alike = [one for one in self.connections if one.address == connection.address]
        if len(alike) >= MAX_PER_ADDRESS:
            self._make_room(alike)
        elif len(self.connections) >= MAX_CONNECTIONS:
            self._make_room(list(self.connections))
        self.connections[connection] = None

    def _make_room(self, connections: list[HttpConnection]) -> None:
        victim = next((one for one in connections if not one.is_answered), connections[0])
        del self.connections[victim]
        victim.close()


def read_request(head: bytes) -> tuple[str, str, str] | None:
    """Method, path and query; None if this is not an HTTP request."""
    words = head.split(b"\n", 1)[0].decode("latin-1").split()
    if len(words) != 3 or not words[2].startswith("HTTP/1.") or not words[1].startswith("/"):
        return None
    path, _, query = words[1].partition("?")
    return words[0], path, query


def _token_in(head: bytes) -> bytes:
    """The token after `Authorization: Bearer`; empty if there is no such line."""
    for line in head.split(b"\n")[1:]:
        name, _, value = line.partition(b":")
        kind, _, token = value.strip().partition(b" ")
        if name.lower() == b"authorization" and kind.lower() == b"bearer":
            return token.strip()
    return b""


class HttpConnection(asyncio.Protocol):
    """Reads one request, writes one answer, closes."""

    def __init__(self, server: HttpServer, loop: asyncio.AbstractEventLoop) -> None:
        self._server = server
        self._loop = loop
        self._head = bytearray()
        self._transport: asyncio.Transport | None = None
        self._pieces: Iterator[bytes] | None = None
        self._timeout: asyncio.TimerHandle | None = None
        self._paused = False
        self.address: str | None = None
        self.is_answered = False
        """Its request is complete."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        self.address = peer[0] if peer else None
        self._server.take_in(self)
        self._timeout = self._loop.call_later(HEAD_TIMEOUT_S, self.close)

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - however it ended, it has ended
        self._transport = None
        self._pieces = None
        self._server.connections.pop(self, None)
        if self._timeout is not None:
            self._timeout.cancel()

    def data_received(self, data: bytes) -> None:
        if self.is_answered or self._transport is None:
            return  # what follows the first request is not read
        self._head += data[: MAX_HEAD_BYTES + 1]
        end = HEAD_END.search(self._head)
        if end is not None:
            self._answer(bytes(self._head[: end.start()]))
        elif len(self._head) > MAX_HEAD_BYTES:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)

    def _answer(self, head: bytes) -> None:
        request = read_request(head)
        if request is None:
            self._refuse(HTTPStatus.BAD_REQUEST)
            return
        if not self._server.lets_in(head):
            self._refuse(HTTPStatus.UNAUTHORIZED)
            return
        method, path, query = request
        if method not in {"GET", "HEAD"}:
            self._refuse(HTTPStatus.METHOD_NOT_ALLOWED)
            return
        self._is_asked()
        self._server.respond(path, query, partial(self._begin, with_body=method == "GET"))

    def _is_asked(self) -> None:
        """The request is complete: from now on the timeout of the answer applies."""
        self.is_answered = True
        if self._timeout is not None:
            self._timeout.cancel()
        self._timeout = self._loop.call_later(ANSWER_TIMEOUT_S, self.close)

    def _refuse(self, status: HTTPStatus) -> None:
        self._is_asked()
        self._begin(failure(status), with_body=True)

    def _begin(self, answer: HttpResponse, *, with_body: bool) -> None:
        if self._transport is None:
            return
        status = answer.status
        more = MORE_TOLD.get(status, "")
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {answer.type}\r\n"
            f"{more}Cache-Control: no-store\r\nConnection: close\r\n\r\n"
        )
        self._transport.write(head.encode("ascii"))
        self._pieces = iter(answer.pieces if with_body else ())
        self._write_on()

    def _write_on(self) -> None:
        """Write one piece; the next one follows in the next turn of the loop."""
        if self._transport is None or self._pieces is None or self._paused:
            return
        try:
            piece = next(self._pieces, None)
        except Exception:
            log.exception("a response of the HTTP server was interrupted")
            self._transport.abort()
            return
        if piece is None:
            self._transport.close()
            return
        self._transport.write(piece)
        self._loop.call_soon(self._write_on)

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._write_on()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()
