"""Faulty peers: one that answers as a test says, and a proxy between a client and a broker that breaks connections."""

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

from horolog.protocol.apis import API, ApiKey
from horolog.protocol.compile import decode, encode
from horolog.protocol.framing import FrameReader, encode_response, read_request_header
from horolog.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from horolog.protocol.messages.groups import Coordinator, FindCoordinatorResponse
from horolog.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from horolog.protocol.wire import Message

SIZE = struct.Struct(">i")
MAX_FRAME_BYTES = 64 << 20


class HangUp(Exception):
    """Raised by an answer function to close the connection."""


# (api key, version, correlation id, body): a message, raw bytes to send, or None for no response
Answer = Callable[[int, int, int, memoryview], "bytes | Message | None"]


class _Framed(asyncio.Protocol):
    """One end of a connection; `take` gets every whole frame."""

    def __init__(self, take: Callable[[memoryview], None], everyone: set["_Framed"]) -> None:
        self.take = take
        self.other: _Framed | None = None  # closes with this one
        self.gone = asyncio.Event()
        self.transport: asyncio.Transport | None = None
        self._everyone = everyone
        self._reader = FrameReader(MAX_FRAME_BYTES)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._everyone.add(self)

    def data_received(self, data: bytes) -> None:
        try:
            for frame in self._reader.feed(data):
                self.take(frame)
        except HangUp:
            self.end()

    def connection_lost(self, exc: Exception | None) -> None:
        self._everyone.discard(self)
        self.gone.set()
        if self.other is not None:
            self.other.end()

    def write(self, data: bytes) -> None:
        if self.transport is not None:
            self.transport.write(data)

    def end(self) -> None:
        if self.transport is not None:
            self.transport.abort()


@asynccontextmanager
async def _serving(make: Callable[[set[_Framed]], _Framed], tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    everyone: set[_Framed] = set()
    server = await asyncio.get_running_loop().create_server(lambda: make(everyone), "127.0.0.1", 0, ssl=tls)
    host, port = server.sockets[0].getsockname()[:2]
    try:
        yield f"{host}:{port}"
    finally:
        server.close()
        for each in list(everyone):
            each.end()
            await each.gone.wait()


@asynccontextmanager
async def fake_broker(answer: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Serve on a free port; a Message is encoded with the right header, bytes are sent unchanged."""

    def make(everyone: set[_Framed]) -> _Framed:
        def take(frame: memoryview) -> None:
            header = read_request_header(frame)
            given = answer(header.api_key, header.version, header.correlation_id, frame[header.body_start :])
            if isinstance(given, Message):
                given = response(header.api_key, header.version, header.correlation_id, given)
            if given is not None:
                peer.write(given)

        peer = _Framed(take, everyone)
        return peer

    async with _serving(make, tls) as address:
        yield address


def response(key: int, version: int, correlation_id: int, message: Message, body_version: int | None = None) -> bytes:
    body = encode(message, version if body_version is None else body_version)
    return b"".join(encode_response(API[key].response_header_version(version), correlation_id, [body]))


@asynccontextmanager
async def go_between(
    broker_host: str,
    broker_port: int,
    cuts: Callable[[int, bool], bool] = lambda *_: False,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[str]:
    """Pass whole frames in both directions, and replace the broker's port in its responses.

    `cuts(api key, whether this is the response)` is called for each: True closes the connection instead.
    """
    own_port = 0
    dials: set[asyncio.Task[object]] = set()

    def make(everyone: set[_Framed]) -> _Framed:
        keys: dict[int, int] = {}
        early: list[bytes] = []

        def forwards(frame: memoryview) -> None:
            key, _, correlation_id = struct.unpack_from(">hhi", frame)
            keys[correlation_id] = key
            if cuts(key, False):
                raise HangUp
            whole = SIZE.pack(len(frame)) + frame
            if behind.transport is None:
                early.append(whole)
            else:
                behind.write(whole)

        def backwards(frame: memoryview) -> None:
            (correlation_id,) = struct.unpack_from(">i", frame)
            if cuts(keys.pop(correlation_id), True):
                raise HangUp
            # Nothing else in these responses is likely to contain the port's four bytes.
            changed = bytes(frame).replace(struct.pack(">i", broker_port), struct.pack(">i", own_port))
            front.write(SIZE.pack(len(changed)) + changed)

        async def dial() -> None:
            try:
                await asyncio.get_running_loop().create_connection(lambda: behind, broker_host, broker_port)
            except OSError:
                front.end()
            for whole in early:
                behind.write(whole)

        front, behind = _Framed(forwards, everyone), _Framed(backwards, everyone)
        front.other, behind.other = behind, front
        task: asyncio.Task[object] = asyncio.create_task(dial())
        dials.add(task)
        task.add_done_callback(dials.discard)
        return front

    async with _serving(make, tls) as address:
        own_port = int(address.rpartition(":")[2])
        yield address
        await asyncio.gather(*dials)


class Scripted:
    """A broker of one topic whose responses a test changes: `scripts[api key]` is called with the decoded request."""

    def __init__(self, topic: str = "t", partitions: int = 1) -> None:
        self.topic = topic
        self.partitions = partitions
        self.port = 0
        self.asked: list[ApiKey] = []
        self.versions: dict[int, tuple[int, int]] = {
            key: (api.min_version, api.max_version) for key, api in API.items()
        }
        self.scripts: dict[int, Callable[[Any], bytes | Message | None]] = {
            ApiKey.API_VERSIONS: self.api_versions,
            ApiKey.METADATA: self.metadata,
            ApiKey.FIND_COORDINATOR: lambda request: self.coordinator(request.coordinator_keys),
        }

    def answer(self, key: int, version: int, _correlation_id: int, body: memoryview) -> bytes | Message | None:
        self.asked.append(ApiKey(key))
        if key not in self.scripts:
            raise HangUp
        return self.scripts[key](decode(API[key].request, version, body))

    def count(self, key: ApiKey) -> int:
        return self.asked.count(key)

    def api_versions(self, _request: Any) -> Message:
        keys = [
            ApiVersion(api_key=key, min_version=low, max_version=high) for key, (low, high) in self.versions.items()
        ]
        return ApiVersionsResponse(api_keys=keys)

    def metadata(self, _request: Any) -> Message:
        partitions = [MetadataResponsePartition(partition_index=each, leader_id=1) for each in range(self.partitions)]
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=1, host="127.0.0.1", port=self.port)],
            controller_id=1,
            topics=[MetadataResponseTopic(name=self.topic, partitions=partitions)],
        )

    def coordinator(self, keys: list[str], error_code: int = 0) -> Message:
        found = [
            Coordinator(key=key, node_id=1, host="127.0.0.1", port=self.port, error_code=error_code) for key in keys
        ]
        return FindCoordinatorResponse(coordinators=found)

    @asynccontextmanager
    async def serving(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
        async with fake_broker(self.answer, tls) as address:
            self.port = int(address.rpartition(":")[2])
            yield address
