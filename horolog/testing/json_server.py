"""A small HTTP server on loopback for tests: answers are JSON or plain text. One request per connection.

`JsonServer` reads a request within a time limit and hands it to its `answer`. `refusal` makes the body of an answer to a request
that is invalid (400), or that `answer` has failed on (500).
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

log = logging.getLogger(__name__)

LOOPBACK = "127.0.0.1"
MAX_HEAD_BYTES = 16 * 1024
MAX_BODY_BYTES = 64 * 1024 * 1024
REQUEST_TIMEOUT_S = 30.0
JSON_TYPE, TEXT_TYPE = "application/json", "text/plain; charset=utf-8"


class HttpRequest(NamedTuple):
    """One request; `name` is the variable part of its path."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    name: str = ""

    def arguments(self) -> dict[str, Any]:
        """The body as an object; raises ValueError or TypeError."""
        if not self.body.strip():
            return {}
        found = json.loads(self.body)
        if not isinstance(found, dict):
            raise TypeError("expected a JSON object as the body")
        return found


class Text(str):
    """A response that is plain text, not JSON."""

    __slots__ = ()


Answering = Callable[[HttpRequest], Awaitable[tuple[HTTPStatus, Any]]]
Refusal = Callable[[HTTPStatus, str], Any]


class JsonServer:
    """Listens on loopback between `start` and `stop`."""

    def __init__(self, answer: Answering, refusal: Refusal) -> None:
        self._answer = answer
        self._refusal = refusal
        self._server: asyncio.Server | None = None
        self.port = 0

    def __repr__(self) -> str:
        return f"<JsonServer at {self.url}>"

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    async def start(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._serve, LOOPBACK, port, limit=MAX_HEAD_BYTES)
        self.port = self._server.sockets[0].getsockname()[1]

    def stop(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(encoded(*await self._answer_to(reader)))
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            pass  # the client is gone
        finally:
            writer.close()

    async def _answer_to(self, reader: asyncio.StreamReader) -> tuple[HTTPStatus, Any]:
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT_S):
                asked = await read_request(reader)
        except (ValueError, asyncio.LimitOverrunError) as error:
            return HTTPStatus.BAD_REQUEST, self._refusal(HTTPStatus.BAD_REQUEST, str(error))
        try:
            return await self._answer(asked)
        except Exception as error:
            log.exception("%s %s failed", asked.method, asked.path)
            status = HTTPStatus.INTERNAL_SERVER_ERROR
            return status, self._refusal(status, f"{type(error).__name__}: {error}")


async def read_request(reader: asyncio.StreamReader) -> HttpRequest:
    """One request; raises ValueError, or an asyncio error."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    words = head[0].split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1.") or not words[1].startswith("/"):
        raise ValueError("this is not an HTTP request")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:-2])}
    if "chunked" in headers.get("transfer-encoding", ""):
        raise ValueError("a body needs its length (Content-Length)")
    length = headers.get("content-length", "0")
    if not length.isdigit() or int(length) > MAX_BODY_BYTES:
        raise ValueError(f"Content-Length {length}: expected 0 to {MAX_BODY_BYTES}")
    body = await reader.readexactly(int(length))
    target = urlsplit(words[1])
    return HttpRequest(words[0], target.path, dict(parse_qsl(target.query)), headers, body)


def encoded(status: HTTPStatus, answer: Any) -> bytes:
    """A response with its head; everything but texts is JSON."""
    is_text = isinstance(answer, Text)
    body = (answer if is_text else json.dumps(answer, ensure_ascii=False) + "\n").encode()
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: {TEXT_TYPE if is_text else JSON_TYPE}\r\n"
        f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode("ascii") + body
