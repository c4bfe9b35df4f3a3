"""One connection to a broker: requests go out in order, responses come back in the same order, each within its timeout."""

import asyncio
import struct
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from horolog.client.values.errors import (
    ConnectionFailed,
    KafkaError,
    MalformedAnswer,
    RequestTimedOut,
    TlsFailed,
    UnsupportedVersion,
)
from horolog.protocol.apis import Api, ApiKey
from horolog.protocol.compile import decoder, encoder
from horolog.protocol.errors import DecodeError, EncodeError, ErrorCode, FrameError
from horolog.protocol.framing import FrameReader
from horolog.protocol.messages.api_versions import ApiVersionsResponse
from horolog.protocol.primitives import Buffer, skip_tags
from horolog.protocol.wire import Message

if TYPE_CHECKING:
    from ssl import SSLContext

MAX_IN_FLIGHT = 64  # unanswered requests on one connection; further ones wait to be sent
MAX_CORRELATION_ID = 0x7FFF_FFFF
_HEAD = struct.Struct(">ihhih")  # size, key, version, correlation id, length of the client id
_CORRELATION = struct.Struct(">i")
_SIZE_BYTES = 4
_UNSUPPORTED = ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")
_TLS_ALERT = b"\x15\x03"  # how a TLS peer begins its answer to a plaintext request


class _Waiter(NamedTuple):
    answer: "asyncio.Future[Any]"
    decode: Callable[[Buffer, int], tuple[Any, int]]
    flexible: bool
    what: str


class Connection(asyncio.Protocol):
    """Made by `connect`; any fault ends it, and fails every waiting request with that fault."""

    def __init__(self, name: str, client_id: str, max_answer_bytes: int, *, is_tls: bool = False) -> None:
        self.name = name
        self.why_closed: KafkaError | None = None
        self.renewal: asyncio.TimerHandle | None = None
        """When to log in again, on a connection whose session ends."""
        self._is_tls = is_tls
        self._client_id = client_id.encode()
        self._reader = FrameReader(max_answer_bytes)
        self._waiters: OrderedDict[int, _Waiter] = OrderedDict()
        self._slots = asyncio.Semaphore(MAX_IN_FLIGHT)
        self._next_id = 0
        self._transport: asyncio.Transport | None = None
        self._writable = asyncio.Event()
        self._writable.set()
        self._is_full = False
        self._is_held = False

    def __repr__(self) -> str:
        return f"<Connection {self.name} {'open' if self.is_open else 'closed'}, {len(self._waiters)} waiting>"

    @property
    def is_open(self) -> bool:
        return self._transport is not None and self.why_closed is None

    @property
    def certificate(self) -> bytes | None:
        """The broker's certificate, as DER; None without TLS."""
        tls = None if self._transport is None else self._transport.get_extra_info("ssl_object")
        return None if tls is None else tls.getpeercert(binary_form=True)

    async def request(self, api: Api, version: int, message: Message, timeout_ms: float) -> Any:
        """The response; a timeout closes the connection, since a late response could be taken for another request's."""
        try:
            async with asyncio.timeout(timeout_ms / 1000), self._slots:
                while not self._writable.is_set():
                    await self._writable.wait()
                return await self.send(api, version, message)
        except TimeoutError:
            raise self._close_late(api, timeout_ms) from None

    async def request_ahead(self, api: Api, version: int, message: Message, timeout_ms: float) -> Any:
        """The same for a login, ahead of the requests that wait for it."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await self.send(api, version, message)
        except TimeoutError:
            raise self._close_late(api, timeout_ms) from None

    def _close_late(self, api: Api, timeout_ms: float) -> KafkaError:
        error = RequestTimedOut(f"{self.name} did not answer {api.name} within {timeout_ms:.0f} ms")
        self.close(error)
        return error

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Requests in flight are answered first; new ones wait for the end of the block."""
        self._is_held = True
        self._writable.clear()
        try:
            while waiting := [waiter.answer for waiter in self._waiters.values() if not waiter.answer.done()]:
                await asyncio.wait(waiting)
            yield
        finally:
            self._is_held = False
            self._allow_writing()

    def send(self, api: Api, version: int, message: Message) -> "asyncio.Future[Any]":
        """Write a request; the future gets the response, or the error that ended the connection."""
        correlation_id = self._next_id
        self._next_id = (correlation_id + 1) & MAX_CORRELATION_ID
        self._write(api, version, correlation_id, message)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        decode = decoder(api.response, version) if api.key is not ApiKey.API_VERSIONS else _versions_decoder(version)
        flexible = api.response_header_version(version) > 0
        self._waiters[correlation_id] = _Waiter(answer, decode, flexible, f"{api.name} v{version}")
        return answer

    async def send_unanswered(self, api: Api, version: int, message: Message) -> None:
        """Write a request that gets no response: Produce with acks=0."""
        while not self._writable.is_set():
            await self._writable.wait()
        self._write(api, version, 0, message)

    def _write(self, api: Api, version: int, correlation_id: int, message: Message) -> None:
        if self._transport is None or self.why_closed is not None:
            raise self.why_closed or ConnectionFailed(f"{self.name} is not connected")
        parts: list[Buffer] = []
        try:
            encoder(type(message), version)(message, parts)
        except EncodeError as error:
            raise UnsupportedVersion(f"{self.name} serves {api.name} v{version}: {error}") from error
        label = self._client_id
        flexible = b"\x00" if version >= api.flexible_from else b""
        size = _HEAD.size - _SIZE_BYTES + len(label) + len(flexible) + sum(map(len, parts))
        head = _HEAD.pack(size, api.key, version, correlation_id, len(label)) + label + flexible
        if len(parts) == 1:
            self._transport.write(head + parts[0])
        else:
            self._transport.writelines([head, *parts])

    def close(self, why: KafkaError | None = None) -> None:
        """Close the connection; waiting requests fail with `why`."""
        if self.why_closed is None:
            self.why_closed = why or ConnectionFailed(f"the connection to {self.name} was closed")
        if self.renewal is not None:
            self.renewal.cancel()
        if self._transport is not None:
            self._transport.abort()
        waiters, self._waiters = self._waiters, OrderedDict()
        for waiter in waiters.values():
            if not waiter.answer.done():
                waiter.answer.set_exception(self.why_closed)
        self._writable.set()

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._is_tls and exc is not None:
            self.close(_tls_fault(exc, self.name))
        else:
            self.close(ConnectionFailed(f"{self.name} closed the connection{f': {exc}' if exc else self._hint()}"))

    def _hint(self) -> str:
        """Why the broker may have hung up: a listener that wants a login answers ApiVersions first, one that wants TLS nothing."""
        unanswered = next(iter(self._waiters), None)
        if unanswered == 1:
            return " at the first request: its listener may require credentials"
        if unanswered != 0:
            return ""
        wanted = "a client certificate, or another one" if self._is_tls else "TLS"
        return f" at once: its listener may require {wanted}"

    def pause_writing(self) -> None:
        self._is_full = True
        self._writable.clear()

    def resume_writing(self) -> None:
        self._is_full = False
        self._allow_writing()

    def _allow_writing(self) -> None:
        if not (self._is_full or self._is_held):
            self._writable.set()

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._reader.feed(data):
                self._take(frame)
        except (FrameError, DecodeError) as error:
            if data.startswith(_TLS_ALERT) and not self._is_tls:
                self.close(TlsFailed(f"{self.name} speaks TLS: set security.protocol=SSL or SASL_SSL"))
            else:
                self.close(MalformedAnswer(f"{self.name}: {error}"))

    def _take(self, frame: memoryview) -> None:
        if len(frame) < _CORRELATION.size:
            raise DecodeError("an answer without a correlation id")
        (correlation_id,) = _CORRELATION.unpack_from(frame)
        first = next(iter(self._waiters), None)
        if correlation_id != first:
            raise DecodeError(f"expected the answer to request {first}, found that to {correlation_id}")
        waiter = self._waiters.pop(correlation_id)
        if waiter.answer.done():
            return  # the caller no longer waits
        try:
            waiter.answer.set_result(waiter.decode(frame, self._body_start(frame, waiter.flexible))[0])
        except DecodeError as error:
            fault = MalformedAnswer(f"{self.name}, {waiter.what}: {error}")
            waiter.answer.set_exception(fault)
            self.close(fault)

    @staticmethod
    def _body_start(frame: memoryview, flexible: bool) -> int:
        if not flexible:
            return _CORRELATION.size
        if len(frame) <= _CORRELATION.size:
            raise DecodeError("the answer ends inside its header")
        return skip_tags(frame, _CORRELATION.size + 1, frame[_CORRELATION.size], len(frame))[0]


def _versions_decoder(version: int) -> Callable[[Buffer, int], tuple[Any, int]]:
    """A broker that does not know this version of ApiVersions answers in v0, whose first field is the error code."""

    def decode(frame: Buffer, start: int) -> tuple[Any, int]:
        refused = bytes(frame[start : start + 2]) == _UNSUPPORTED
        return decoder(ApiVersionsResponse, 0 if refused else version)(frame, start)

    return decode


def _tls_fault(error: Exception, name: str) -> KafkaError:
    from horolog.client.security.tls import fault_of

    return fault_of(error, name) if isinstance(error, OSError) else ConnectionFailed(f"{name}: {error}")


async def connect(
    host: str, port: int, client_id: str, timeout_ms: float, max_answer_bytes: int, tls: "SSLContext | None" = None
) -> Connection:
    name = f"{host}:{port}"
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            _, connection = await loop.create_connection(
                lambda: Connection(name, client_id, max_answer_bytes, is_tls=tls is not None), host, port, ssl=tls
            )
    except TimeoutError:
        raise ConnectionFailed(f"{name} did not accept a connection within {timeout_ms:.0f} ms") from None
    except OSError as error:
        if tls is not None and not _is_refusal(error):
            raise _tls_fault(error, name) from error
        raise ConnectionFailed(f"cannot connect to {name}: {error.strerror or error}") from error
    return connection


def _is_refusal(error: OSError) -> bool:
    """Whether the failure came before there was a connection."""
    from socket import gaierror

    ended = isinstance(error, (ConnectionResetError, ConnectionAbortedError, BrokenPipeError))
    return isinstance(error, gaierror) or (type(error).__module__ != "ssl" and not ended)
