"""A small HTTP server for machines that watch: `/metrics`, `/health`, `/ready` and an index; GET and HEAD only.

One request per connection, at most `MAX_HEAD_BYTES` long and `HEAD_TIMEOUT_S` in coming. A long answer is written piece by piece, a
piece per turn of the loop and no faster than the peer reads. At most `MAX_CONNECTIONS` are open at one time, and
`MAX_PER_ADDRESS` from one address. The newest is always taken in: for it goes the oldest whose request is not whole, or else
the oldest that is being answered. So peers that send half a request, or never read, cannot keep a health check out.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from http import HTTPStatus
from typing import NamedTuple, cast

from horolog.broker.observability.exposition import Exposition
from horolog.broker.observability.health import readiness
from horolog.broker.observability.loop_lag import LoopLag
from horolog.broker.observability.watched import Watched
from horolog.version import __version__

log = logging.getLogger(__name__)

MAX_CONNECTIONS = 32
MAX_PER_ADDRESS = 16
MAX_HEAD_BYTES = 8192
HEAD_TIMEOUT_S = 2.0
ANSWER_TIMEOUT_S = 30.0
HEAD_ENDS = (b"\r\n\r\n", b"\n\n")

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
JSON_TYPE = "application/json"
TEXT_TYPE = "text/plain; charset=utf-8"


class Answer(NamedTuple):
    """One answer; its length is not known before it is written, the end of the connection ends it."""

    status: HTTPStatus
    type: str
    pieces: Iterable[bytes]


def failure(status: HTTPStatus) -> Answer:
    return Answer(status, TEXT_TYPE, [f"{status.value} {status.phrase}\n".encode()])


class MetricsServer:
    """Answers whoever watches: `/metrics`, `/health`, `/ready`."""

    def __init__(self, broker: Watched, loop: asyncio.AbstractEventLoop) -> None:
        self._broker = broker
        self._loop = loop
        self._exposition = Exposition(broker)
        self._server: asyncio.Server | None = None
        self._lag: LoopLag | None = None
        self.connections: dict[HttpConnection, None] = {}  # the oldest first
        self.port = 0

    def __repr__(self) -> str:
        return f"<MetricsServer on port {self.port}, {len(self.connections)} connections>"

    async def start(self, host: str, port: int) -> None:
        self._server = await self._loop.create_server(lambda: HttpConnection(self, self._loop), host or None, port)
        self.port = self._server.sockets[0].getsockname()[1]
        self._lag = LoopLag(self._loop, self._broker.metrics)

    def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        if self._lag is not None:
            self._lag.stop()
        for connection in list(self.connections):
            connection.close()

    def take_in(self, connection: HttpConnection) -> None:
        """Keep count of a new connection, and within the bounds by closing an older one."""
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

    def answer(self, path: str) -> Answer:
        if path == "/metrics":
            return Answer(HTTPStatus.OK, METRICS_TYPE, self._exposition.pieces())
        if path == "/health":
            return _json(HTTPStatus.OK, {"alive": True, "phase": self._broker.phase.value, "version": __version__})
        if path == "/ready":
            found = readiness(self._broker)
            return _json(HTTPStatus.OK if found.ready else HTTPStatus.SERVICE_UNAVAILABLE, asdict(found))
        if path == "/":
            return Answer(HTTPStatus.OK, TEXT_TYPE, [f"horolog {__version__}\n/metrics\n/health\n/ready\n".encode()])
        return failure(HTTPStatus.NOT_FOUND)


def _json(status: HTTPStatus, value: object) -> Answer:
    return Answer(status, JSON_TYPE, [json.dumps(value).encode() + b"\n"])


def read_request(head: bytes) -> tuple[str, str] | None:
    """Method and path, without its query; None if this is no HTTP request."""
    words = head.split(b"\n", 1)[0].decode("latin-1").split()
    if len(words) != 3 or not words[2].startswith("HTTP/1.") or not words[1].startswith("/"):
        return None
    return words[0], words[1].partition("?")[0]


class HttpConnection(asyncio.Protocol):
    """Reads one request, writes one answer, closes."""

    def __init__(self, metrics_server: MetricsServer, loop: asyncio.AbstractEventLoop) -> None:
        self._metrics_server = metrics_server
        self._loop = loop
        self._head = bytearray()
        self._transport: asyncio.Transport | None = None
        self._pieces: Iterator[bytes] | None = None
        self._timeout: asyncio.TimerHandle | None = None
        self._paused = False
        self.address: str | None = None

    @property
    def is_answered(self) -> bool:
        """Its request is whole."""
        return self._pieces is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        self.address = peer[0] if peer else None
        self._metrics_server.take_in(self)
        self._timeout = self._loop.call_later(HEAD_TIMEOUT_S, self.close)

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002 - however it ended, it has ended
        self._transport = None
        self._pieces = None
        self._metrics_server.connections.pop(self, None)
        if self._timeout is not None:
            self._timeout.cancel()

    def data_received(self, data: bytes) -> None:
        if self._pieces is not None:
            return  # whatever comes behind the first request is not read
        self._head += data[: MAX_HEAD_BYTES + 1]
        if any(end in self._head for end in HEAD_ENDS):
            self._answer(bytes(self._head))
        elif len(self._head) > MAX_HEAD_BYTES:
            self._begin(failure(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE), with_body=True)

    def _answer(self, head: bytes) -> None:
        request = read_request(head)
        if request is None:
            self._begin(failure(HTTPStatus.BAD_REQUEST), with_body=True)
            return
        method, path = request
        if method not in {"GET", "HEAD"}:
            self._begin(failure(HTTPStatus.METHOD_NOT_ALLOWED), with_body=True)
            return
        self._begin(self._metrics_server.answer(path), with_body=method == "GET")

    def _begin(self, answer: Answer, *, with_body: bool) -> None:
        if self._transport is None:
            return
        status = answer.status
        allow = "Allow: GET, HEAD\r\n" if status is HTTPStatus.METHOD_NOT_ALLOWED else ""
        head = (
            f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {answer.type}\r\n"
            f"{allow}Cache-Control: no-store\r\nConnection: close\r\n\r\n"
        )
        self._transport.write(head.encode("ascii"))
        self._pieces = iter(answer.pieces if with_body else ())
        if self._timeout is not None:
            self._timeout.cancel()
        self._timeout = self._loop.call_later(ANSWER_TIMEOUT_S, self.close)
        self._write_on()

    def _write_on(self) -> None:
        """One piece, and the next one in the next turn of the loop."""
        if self._transport is None or self._pieces is None or self._paused:
            return
        try:
            piece = next(self._pieces, None)
        except Exception:
            log.exception("an answer of the HTTP server broke off")
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
