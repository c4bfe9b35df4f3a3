"""The simulated machine: a disk and clocks in memory, one whole broker on them, and connections that carry real frames.

Everything that is random comes from `chance`. A `PowerCut` that the storage raises ends the broker wherever it is; `after_end`
says what becomes of the disk, and `start` begins the next broker on the rest.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import random
import struct
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Protocol
from unittest.mock import patch

from horolog.base.clock import ManualClock
from horolog.broker.base.own_thread import OwnThread
from horolog.broker.base.principal import ANONYMOUS, Principal
from horolog.broker.config.settings import load
from horolog.broker.log.partition import Partition
from horolog.broker.log.storage import MemoryStorage, StorageFault
from horolog.broker.network.conversation import Conversation, HandshakeFactory
from horolog.broker.network.dispatch import Dispatcher
from horolog.broker.network.limits import ConnectionLimits
from horolog.broker.server.app import Broker
from horolog.broker.server.process import sole
from horolog.protocol.apis import API
from horolog.protocol.compile import decode, encode
from horolog.protocol.errors import ErrorCode
from horolog.protocol.wire import Message
from tests.simulation.loop import SimulatedLoop

DATA = "/data"
START_MS = 1_700_000_000_000
NEVER_MS = 1 << 40
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "horolog.offsets.commit.sync": "true",
    "log.cleaner.backoff.ms": str(NEVER_MS),
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.index.interval.bytes": "120",
    "log.initial.task.delay.ms": str(NEVER_MS),
    "log.retention.check.interval.ms": str(NEVER_MS),
    "log.segment.delete.delay.ms": "2000",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.segment.bytes": "2000",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.segment.bytes": "2000",
}
API_BY_REQUEST = {f"{api.name}Request": api for api in API.values()}
LAST_TRACE_LINES = 400

Answered = Callable[[Any], None]
"""Told the answer, or None if none will come."""


class SimulationFailure(Exception):
    """A promise was broken."""


class ErrorWatch(logging.Handler):
    """Keeps what the broker's log says of exceptions that are nobody's fault but its own."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and not isinstance(error, StorageFault):
            self.found.append(f"{record.getMessage()}: {error!r}")


class Host(Protocol):
    """Where a broker runs."""

    dispatcher: Dispatcher
    limits: ConnectionLimits
    clock: ManualClock


class Client:
    """The client's end of a conversation; an answer is handed out when the world delivers it."""

    def __init__(self, host: Host, principal: Principal = ANONYMOUS, asks: HandshakeFactory | None = None) -> None:
        """`principal` is believed, unless the handshake that `asks` makes finds out who it is."""
        self._last_id = 0
        self._received = bytearray()
        self._waiting: deque[tuple[Message, int, Answered]] = deque()
        self._is_lost = False
        self._conversation = Conversation(
            host.dispatcher.dispatch,
            host.limits,
            host.clock.monotonic,
            listener="PLAINTEXT",
            handshake=None if asks is None else asks(),
        )
        if asks is None:
            self._conversation.serve_as(principal)

    @property
    def closed(self) -> bool:
        return self._is_lost or self._conversation.closing

    def send(self, request: Message, version: int, answered: Answered | None) -> None:
        """Send a request; without `answered` it is one that gets no answer."""
        api = API_BY_REQUEST[type(request).__name__]
        self._last_id += 1
        header = struct.pack(">hhih4s", api.key, version, self._last_id, 4, b"test")
        header += b"\0" * (api.request_header_version(version) - 1)
        body = header + encode(request, version)
        if answered is not None:
            self._waiting.append((request, version, answered))
        self._hand_over(struct.pack(">i", len(body)) + body)

    def _hand_over(self, data: bytes) -> None:
        self._conversation.receive(data)

    def _take(self) -> None:
        self._received += b"".join(self._conversation.take_output())
        while self._conversation.wants_turn:
            self._conversation.resume_if_allowed()
            self._received += b"".join(self._conversation.take_output())

    def deliver(self) -> None:
        """Hand out the answers that have come; whoever waits on a connection that is closed gets none."""
        self._take()
        while len(self._received) >= 4:
            (size,) = struct.unpack_from(">i", self._received)
            frame = bytes(self._received[4 : 4 + size])
            del self._received[: 4 + size]
            request, version, answered = self._waiting.popleft()
            api = API_BY_REQUEST[type(request).__name__]
            start = 4 + api.response_header_version(version)
            answered(decode(api.response, version, frame, start, to_the_end=True))
        if self.closed:
            self.lose()

    def lose(self) -> None:
        self._is_lost = True
        waiting, self._waiting = self._waiting, deque()
        for _, _, answered in waiting:
            answered(None)

    def hang_up(self) -> None:
        """The client goes away without a word."""
        self._conversation.lost()
        self.lose()


class World:
    """See the module's docstring. `starts` counts the brokers that there have been."""

    def __init__(self, seed: int, settings: Mapping[str, str] = MappingProxyType({})) -> None:
        """`settings` besides those that every history has."""
        self.chance = random.Random(seed)
        self.clock = ManualClock(START_MS)
        self.storage = MemoryStorage(lambda: self.clock.wall_ms() * 1_000_000)
        self.given = {**SETTINGS, **settings}
        self.settings, _ = load(None, {}, self.given)
        self.limits = ConnectionLimits.of(self.settings)
        self.starts = 0
        self.counts: Counter[str] = Counter()
        """How often each kind of thing has happened."""
        self.errors = ErrorWatch()
        self.lines: deque[str] = deque(maxlen=LAST_TRACE_LINES)
        self._digest = hashlib.blake2b(digest_size=12)
        self._clients: list[Client] = []
        self.loop: SimulatedLoop
        self.broker: Broker
        self.dispatcher: Dispatcher

    # -- the trace

    def note(self, kind: str, *details: object) -> None:
        """Something has happened: count it and put it into the trace."""
        self.counts[kind] += 1
        line = f"{self.clock.wall_ms() - START_MS} {kind} {' '.join(map(str, details))}"
        self._digest.update(line.encode())
        self.lines.append(line)

    @property
    def trace_hash(self) -> str:
        return self._digest.hexdigest()

    # -- brokers come and go

    def set(self, key: str, value: str) -> None:
        """For whoever starts from now on."""
        self.given[key] = value
        self.settings, _ = load(None, {}, self.given)

    def start(self) -> None:
        self.starts += 1
        self.loop = SimulatedLoop(self.clock, self.chance)
        self.storage.while_syncing = self.loop.while_syncing
        with (
            patch("horolog.broker.server.app.ThreadPoolExecutor", lambda *_, **__: self.loop),
            patch("horolog.broker.server.app.listen_addresses", lambda _: ()),
        ):
            loop: Any = self.loop
            self.broker = Broker(
                self.settings, self.clock, self.storage, [DATA], loop, sole(self.settings, OwnThread(loop, "journal"))
            )
            with contextlib.suppress(StopIteration):
                self.broker.start().send(None)
                raise AssertionError("a start without listeners has nothing to wait for")
        self.dispatcher = Dispatcher(self.broker)
        self.loop.settle()

    def stop(self) -> None:
        """A clean stop; the disk may refuse to be left clean."""
        self.loop.settle()
        self.deliver()
        asyncio.run(self.broker.stop())
        self.lose_clients()

    def lose_clients(self) -> None:
        """Every connection ends with the broker."""
        self.counts["loop goes on during a sync"] += self.loop.overlaps
        clients, self._clients = self._clients, []
        for client in clients:
            client.lose()

    # -- what runs in it

    def partitions(self) -> list[Partition]:
        """Every partition that is led."""
        return list(self.broker.logs.partitions.values())

    def find(self, topic: str, index: int) -> Partition | ErrorCode:
        """A partition where it is led."""
        return self.broker.cluster.topics[topic].find(index)

    def each_broker(self, action: Callable[[Broker], None]) -> None:
        action(self.broker)

    # -- clients

    def connect(self, principal: Principal = ANONYMOUS, *, door: str | None = None) -> Client:
        """As whoever is believed, or at a door where nobody is known."""
        asks = None if door is None else self.broker._handshakes(door, self.dispatcher)
        client = Client(self, principal, asks)
        self._clients.append(client)
        return client

    def deliver(self) -> None:
        """Hand out every answer that is there."""
        for client in list(self._clients):
            client.deliver()
            if client.closed:
                self._clients.remove(client)
        if self.errors.found:
            raise SimulationFailure(f"an exception inside the broker: {self.errors.found[0]}")

    def ask(self, request: Message, version: int) -> Any:
        """Send a request on a connection of its own and wait for its answer; None if none comes."""
        client = self.connect()
        answers: list[Any] = []
        client.send(request, version, answers.append)
        while not answers:
            client.deliver()
            if not answers and not self.loop.step():
                raise SimulationFailure(f"{type(request).__name__} v{version} is never answered")
        self._clients.remove(client)
        return answers[0]


@contextlib.contextmanager
def in_simulation(world: World) -> Iterator[None]:
    """What of the process the simulation has to govern: random ids and the log."""
    log = logging.getLogger("horolog.broker")
    level, propagates = log.level, log.propagate
    log.addHandler(world.errors)
    log.setLevel(logging.ERROR)
    log.propagate = False
    identities = random.Random(world.chance.random())
    try:
        with patch.object(uuid, "uuid4", lambda: uuid.UUID(int=identities.getrandbits(128), version=4)):
            yield
    finally:
        log.removeHandler(world.errors)
        log.setLevel(level)
        log.propagate = propagates
