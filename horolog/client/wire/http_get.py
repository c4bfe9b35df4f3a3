"""One GET to a server that may be slow, wrong, or send too much: a response within time and size limits, or the reason why not."""

import asyncio
import ssl
from http.client import HTTPException, HTTPResponse
from io import BytesIO
from typing import NamedTuple, Protocol

from horolog.version import __version__

MOST_BYTES = 4 << 20
_CHUNK = 64 << 10


class Access(Protocol):
    """A server's address and credentials."""

    @property
    def scheme(self) -> str: ...
    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def path(self) -> str: ...
    @property
    def authorization(self) -> str | None: ...
    @property
    def ca_file(self) -> str | None: ...
    @property
    def timeout_ms(self) -> int: ...


class NoAnswer(Exception):
    """There is no answer; the message says why, as the end of a sentence."""


class HttpResponse(NamedTuple):
    status: int
    body: bytes


class _Received:
    """As much of a socket as the standard library's response reader uses."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def makefile(self, mode: str) -> BytesIO:  # noqa: ARG002 - the reader asks for bytes
        return BytesIO(self.data)


async def get(
    access: Access, path: str, *, accept: str = "application/json", most_bytes: int = MOST_BYTES
) -> HttpResponse:
    """The server's response to GET. Raises NoAnswer."""
    try:
        async with asyncio.timeout(access.timeout_ms / 1000):
            received = await _exchange(access, _request(access, path, accept), most_bytes)
    except TimeoutError as error:
        raise NoAnswer(f"did not answer within {access.timeout_ms} ms") from error
    except ssl.SSLError as error:
        reason = getattr(error, "verify_message", "") or error.reason or str(error)
        raise NoAnswer(f"cannot be reached over TLS: {reason}") from error
    except OSError as error:
        raise NoAnswer(f"cannot be reached: {error.strerror or error}") from error
    response = HTTPResponse(_Received(received))  # type: ignore[arg-type]
    try:
        response.begin()
        return HttpResponse(response.status, response.read())
    except (HTTPException, ValueError) as error:
        raise NoAnswer("answered with something that is not HTTP") from error


async def _exchange(access: Access, request: bytes, most_bytes: int) -> bytes:
    tls = _tls(access) if access.scheme == "https" else None
    reader, writer = await asyncio.open_connection(access.host, access.port, ssl=tls)
    try:
        writer.write(request)
        await writer.drain()
        received = bytearray()
        while chunk := await reader.read(_CHUNK):
            received += chunk
            if len(received) > most_bytes:
                raise NoAnswer(f"answers more than {most_bytes >> 20} MiB")
        return bytes(received)
    finally:
        writer.transport.abort()


def _tls(access: Access) -> ssl.SSLContext:
    if access.ca_file is None:
        return ssl.create_default_context()
    try:
        return ssl.create_default_context(cafile=access.ca_file)
    except (OSError, ssl.SSLError) as error:
        raise NoAnswer(f"cannot be reached: {access.ca_file} is not a file of certificates (PEM)") from error


def _request(access: Access, path: str, accept: str) -> bytes:
    host = f"[{access.host}]" if ":" in access.host else access.host
    lines = [
        f"GET {access.path}{path} HTTP/1.1",
        f"Host: {host}:{access.port}",
        f"Accept: {accept}",
        f"User-Agent: horolog/{__version__}",
        "Connection: close",
    ]
    if access.authorization is not None:
        lines.append(f"Authorization: {access.authorization}")
    return "\r\n".join([*lines, "", ""]).encode()
