"""A whole broker in memory, without sockets: real frames go in, decoded responses come out, and the test sets the clock."""

from __future__ import annotations

import asyncio
import struct
from typing import Any, Self

from horolog.base.clock import ManualClock
from horolog.broker.base.own_thread import AtOnce
from horolog.broker.cluster.new_topics import NewTopic
from horolog.broker.cluster.topic import Topic
from horolog.broker.config.settings import load
from horolog.broker.log.storage import MemoryStorage
from horolog.broker.network.conversation import Conversation, Onlooker
from horolog.broker.network.dispatch import Dispatcher
from horolog.broker.network.limits import ConnectionLimits
from horolog.broker.server.app import Broker
from horolog.broker.server.process import sole
from horolog.protocol.apis import API
from horolog.protocol.compile import decode, encode
from horolog.protocol.wire import Message
from tests.support.at_once import at_once

NOW_MS = 1_700_000_000_000


def still() -> float:
    """A clock for conversations that always gives them their turn."""
    return 0.0


class Wire(Onlooker):
    """The client's end of a conversation."""

    def __init__(self, dispatcher: Dispatcher, limits: ConnectionLimits) -> None:
        self.received = bytearray()
        self._arrived = asyncio.Event()
        self.conversation = Conversation(dispatcher.dispatch, limits, still, listener="PLAINTEXT")
        self.conversation.carrier = self
        self._last_id = 0

    def output_ready(self) -> None:
        self.received += b"".join(self.conversation.take_output())
        self._arrived.set()

    @property
    def closed(self) -> bool:
        return self.conversation.closing

    def send(self, request: Message, version: int) -> int:
        """Send a request without waiting; its correlation id."""
        api = next(api for api in API.values() if api.name + "Request" == type(request).__name__)
        self._last_id += 1
        header = struct.pack(">hhih4s", api.key, version, self._last_id, 4, b"test")
        header += b"\0" * (api.request_header_version(version) - 1)
        body = header + encode(request, version)
        self.conversation.receive(struct.pack(">i", len(body)) + body)
        return self._last_id

    def answers(self) -> int:
        """How many responses have arrived and were not taken."""
        count = position = 0
        while position + 4 <= len(self.received):
            position += 4 + struct.unpack_from(">i", self.received, position)[0]
            count += 1
        return count

    async def take(self, request: Message, version: int, timeout_s: float = 5.0) -> Any:
        """The next response, which must be to this request."""
        api = next(api for api in API.values() if api.name + "Request" == type(request).__name__)
        async with asyncio.timeout(timeout_s):
            while not self.answers():
                self._arrived.clear()
                await self._arrived.wait()
        (size,) = struct.unpack_from(">i", self.received)
        frame = bytes(self.received[4 : 4 + size])
        del self.received[: 4 + size]
        return decode(api.response, version, frame, 4 + api.response_header_version(version), to_the_end=True)

    async def ask(self, request: Message, version: int) -> Any:
        self.send(request, version)
        return await self.take(request, version)


class MemoryBroker:
    """`async with MemoryBroker(**settings) as broker`; settings by their names with `_` for `.`."""

    def __init__(
        self, storage: MemoryStorage | None = None, folders: tuple[str, ...] = ("/data",), **settings: object
    ) -> None:
        self.folders = folders
        flags = {key.replace("_", "."): str(value) for key, value in settings.items()}
        self.settings, _ = load(None, {}, {"listeners": "PLAINTEXT://127.0.0.1:0", **flags})
        self.storage = storage or MemoryStorage()
        self.clock = ManualClock(NOW_MS)
        self.broker: Broker

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self.broker = Broker(
            self.settings, self.clock, self.storage, list(self.folders), loop, sole(self.settings, AtOnce())
        )
        await self.broker.start()
        self.dispatcher = Dispatcher(self.broker)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.broker.stop()

    def connect(self) -> Wire:
        return Wire(self.dispatcher, ConnectionLimits.of(self.settings))

    def topic(self, name: str = "t", partitions: int = 1, **configs: object) -> Topic:
        overrides = {key.replace("_", "."): str(value) for key, value in configs.items()}
        at_once(self.broker.cluster.create_topics, [NewTopic(name, partitions, 1, overrides)])
        return self.broker.cluster.topics[name]
