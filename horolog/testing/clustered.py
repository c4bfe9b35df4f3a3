"""Several brokers that are one cluster, on the event loop of an asynchronous test: `async with horolog_cluster() as cluster`.

They share an object store in memory, as brokers over a bucket do: partitions have leaders, leaders move, and a broker that is
killed loses its disk and no acknowledged record. A broker that a busy machine has kept silent for too long is fenced by the others,
and begins anew, as a process would.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from horolog.base.clock import SystemClock
from horolog.broker.bucket.shipped_safety import ShippingLimits
from horolog.broker.cluster.new_topics import NewTopic
from horolog.broker.config.settings import load
from horolog.broker.log.storage import MemoryStorage, NotHere
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.broker.server.app import Broker
from horolog.broker.server.over_store import OverStore, StoreUse
from horolog.stores.faults import StoreError
from horolog.stores.memory_store import MemoryStore
from horolog.stores.requests import ThreadedRequests
from horolog.testing.clock import Span, span_ms
from horolog.testing.embedded import TEST_SETTINGS, setting_key, setting_text
from horolog.testing.reading import Seen, records_of
from horolog.testing.runs import AlreadyRunning, NotRunning

if TYPE_CHECKING:
    from horolog.broker.bucket.names import Wal
    from horolog.stores.object_store import Created as ObjectCreated
    from horolog.stores.requests import Deleted, Folders, Got, GotPart, Listing

HOST = "127.0.0.1"
FOLDER = "/horolog"
BROKERS = 3
REQUESTS_AT_ONCE = 4
USE = StoreUse(ShippingLimits(5, 1 << 20, 1 << 24), lease_ms=2_000, peers_timeout_ms=2_000, balances=False)
"""Records are safe within milliseconds, and partitions stay where the test has moved them."""
DEFAULT_WITHIN = "30s"
LOOK_AGAIN_S = 0.01
LEAVES_WITHIN_S = 5.0
KILLED = "the broker was killed"

Result = TypeVar("Result")


class StoreOfOne:
    """The requests of one broker to the store; after `cut` none is sent, and each is answered with an error."""

    def __init__(self, store: MemoryStore, loop: asyncio.AbstractEventLoop) -> None:
        self._requests = ThreadedRequests(store, loop.call_soon_threadsafe, REQUESTS_AT_ONCE)
        self._loop = loop
        self._is_cut = False

    def __repr__(self) -> str:
        return f"<StoreOfOne, {'cut' if self._is_cut else 'open'}>"

    def create(self, key: str, data: bytes, done: Callable[[ObjectCreated], None]) -> None:
        from horolog.stores.object_store import Created as ObjectCreated
        from horolog.stores.object_store import Outcome

        if not self._refused(done, ObjectCreated(Outcome.UNKNOWN, KILLED)):
            self._requests.create(key, data, done)

    def get(self, key: str, done: Callable[[Got], None]) -> None:
        if not self._refused(done, StoreError(KILLED)):
            self._requests.get(key, done)

    def get_range(self, key: str, start: int, end: int, done: Callable[[GotPart], None]) -> None:
        if not self._refused(done, StoreError(KILLED)):
            self._requests.get_range(key, start, end, done)

    def list(self, prefix: str, done: Callable[[Listing], None], limit: int | None = None) -> None:
        if not self._refused(done, StoreError(KILLED)):
            self._requests.list(prefix, done, limit)

    def folders(self, prefix: str, done: Callable[[Folders], None]) -> None:
        if not self._refused(done, StoreError(KILLED)):
            self._requests.folders(prefix, done)

    def delete(self, key: str, done: Callable[[Deleted], None]) -> None:
        if not self._refused(done, StoreError(KILLED)):
            self._requests.delete(key, done)

    def _refused(self, done: Callable[[Any], None], answer: object) -> bool:
        if self._is_cut:
            self._loop.call_soon(done, answer)
        return self._is_cut

    def cut(self) -> None:
        self._is_cut = True

    def close(self) -> None:
        self._requests.close()


class ClusterBroker:
    """One broker of a cluster, with one run after the other on the same port."""

    def __init__(self, number: int, settings: Mapping[str, str], store: MemoryStore) -> None:
        self.number = number
        self.port = free_port()
        given = {"node.id": str(number), "log.dirs": FOLDER, "listeners": f"PLAINTEXT://{HOST}:{self.port}"}
        self._settings, _ = load(None, {}, {**settings, **given})
        self._store = store
        self._before: Wal | None = None
        self._requests: StoreOfOne | None = None
        self._over: OverStore | None = None
        self._broker: Broker | None = None
        self._minding: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<ClusterBroker {self.number} at {self.address}, {'running' if self.is_running else 'down'}>"

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def is_running(self) -> bool:
        return self._broker is not None

    @property
    def broker(self) -> Broker:
        """The broker itself; each start makes another one. Raises NotRunning."""
        if self._broker is None:
            raise NotRunning(f"broker {self.number} is down: start({self.number}) starts it again")
        return self._broker

    async def start(self) -> None:
        """Join the cluster and serve, with an empty disk."""
        if self._broker is not None:
            raise AlreadyRunning(f"broker {self.number} is running: kill({self.number}) ends this run")
        loop, clock = asyncio.get_running_loop(), SystemClock()
        requests = StoreOfOne(self._store, loop)
        over = OverStore(self._settings, requests, USE, loop)
        process = await over.register(self._before)
        self._before = over.wal
        storage = MemoryStorage(lambda: clock.wall_ms() * 1_000_000)
        broker = Broker(self._settings, clock, storage, [FOLDER], loop, process)
        over.attach(broker)
        await broker.start()
        self._requests, self._over, self._broker = requests, over, broker
        self._minding = asyncio.ensure_future(self._mind(over))

    async def _mind(self, over: OverStore) -> None:
        """Begin anew once the others have fenced this run."""
        await over.ended.wait()
        self._minding = None
        await self._end()
        await self.start()

    async def stop(self) -> None:
        """Give all partitions to others, then stop."""
        await self._end()

    async def kill(self) -> None:
        """End as a machine that loses its power: connections break, nothing more reaches the store, and the disk is lost."""
        broker = self.broker
        for listener in broker.listeners:
            await listener.stop_accepting()
            listener.cut()
        assert self._requests is not None
        assert self._over is not None
        self._requests.cut()
        self._over.is_fenced = True  # its end waits for nothing
        await self._end()

    async def _end(self) -> None:
        if self._minding is not None:
            self._minding.cancel()
            with suppress(asyncio.CancelledError):
                await self._minding
        over, broker, requests = self._over, self._broker, self._requests
        self._over = self._broker = self._requests = self._minding = None
        if over is None or broker is None or requests is None:
            return
        with suppress(TimeoutError):
            await asyncio.wait_for(over.leave(), LEAVES_WITHIN_S)
        await broker.stop()
        await asyncio.get_running_loop().run_in_executor(None, requests.close)


class EmbeddedCluster:
    """Brokers by their numbers, from 1. `bootstrap` has the addresses of all, also of those that are down."""

    def __init__(self, brokers: Sequence[ClusterBroker]) -> None:
        self._brokers = {one.number: one for one in brokers}

    def __repr__(self) -> str:
        return f"<EmbeddedCluster {', '.join(map(repr, self._brokers.values()))}>"

    @property
    def bootstrap(self) -> str:
        return ",".join(one.address for one in self._brokers.values())

    @property
    def addresses(self) -> dict[int, str]:
        """HOST:PORT of each broker, by its number."""
        return {number: one.address for number, one in self._brokers.items()}

    @property
    def running(self) -> list[int]:
        """The numbers of the brokers that run."""
        return [number for number, one in self._brokers.items() if one.is_running]

    def broker(self, number: int) -> Broker:
        """The broker itself. Raises `horolog.testing.runs.NotRunning` while it is down."""
        return self._named(number).broker

    def _named(self, number: int) -> ClusterBroker:
        if number not in self._brokers:
            raise ValueError(f"there is no broker {number}: the cluster has {', '.join(map(str, self._brokers))}")
        return self._brokers[number]

    def _any(self) -> Broker:
        running = self.running
        if not running:
            raise NotRunning("all brokers of the cluster are down")
        return self.broker(running[0])

    # -- brokers that come and go

    async def kill(self, number: int) -> None:
        """End a broker as a power cut does, and lose its disk. The others take its partitions over."""
        await self._named(number).kill()

    async def stop(self, number: int) -> None:
        """Stop a broker cleanly, as on SIGTERM: it first gives its partitions to the others."""
        await self._named(number).stop()

    async def start(self, number: int) -> None:
        """Start a broker again, on the same port, and wait until the others know it."""
        await self._named(number).start()
        await _until(partial(self._is_known, number), f"brokers do not know broker {number}", DEFAULT_WITHIN)

    def _is_known(self, number: int) -> bool:
        return all(number in self.broker(one).placement.members.live for one in self.running)

    async def restart(self, number: int) -> None:
        """Stop a broker cleanly, and start it again."""
        await self.stop(number)
        await self.start(number)

    async def close(self) -> None:
        """Stop all brokers, one after the other."""
        for number in self.running:
            await self.stop(number)

    # -- topics and their leaders

    async def create_topic(
        self, /, name: str, partitions: int = 3, *, within: Span | float = DEFAULT_WITHIN, **configs: object
    ) -> None:
        """Create a topic, and wait until all of its partitions have leaders. Raises `ClusterError`."""
        overrides = {setting_key(key): setting_text(value) for key, value in configs.items()}
        made = partial(self._any().cluster.create_topics, [NewTopic(name, partitions, 1, overrides)])
        for outcome in await answered(made):
            if isinstance(outcome, ClusterError):
                raise outcome
        await self.until_led(name, within=within)

    def leaders(self, topic: str) -> dict[int, int]:
        """The broker that leads each partition; one without a leader is missing."""
        found: dict[int, int] = {}
        for number in self.running:
            known = self.broker(number).cluster.topics.get(topic)
            found |= {one.index: number for one in known.led_here} if known is not None else {}
        return dict(sorted(found.items()))

    def leader(self, topic: str, partition: int = 0) -> int | None:
        """The broker that leads a partition; None while there is none."""
        return self.leaders(topic).get(partition)

    async def until_led(self, topic: str, *, within: Span | float = DEFAULT_WITHIN) -> dict[int, int]:
        """Wait until all partitions of a topic have leaders; returns them. Raises TimeoutError."""
        await _until(partial(self._is_led, topic), f"partitions of {topic} have no leader", within)
        return self.leaders(topic)

    def _is_led(self, topic: str) -> bool:
        known = self._any().cluster.topics.get(topic)
        return known is not None and len(self.leaders(topic)) == known.partition_count

    async def move(self, topic: str, partition: int, to: int, *, within: Span | float = DEFAULT_WITHIN) -> None:
        """Have another broker lead a partition, and wait until it does. Raises `ClusterError` and TimeoutError."""
        target, leader = self._named(to).broker, self.leader(topic, partition)
        if leader is None or not target.cluster.topics[topic].has(partition):
            raise ValueError(f"no broker leads {topic}-{partition}: until_led() waits for that")
        move = partial(self.broker(leader).hand_overs.move, topic, partition, to)
        error = await answered(move)
        if error is not None:
            raise error
        await _until(
            lambda: self.leader(topic, partition) == to, f"broker {to} does not lead {topic}-{partition}", within
        )

    async def records(self, topic: str, *, within: Span | float = DEFAULT_WITHIN) -> list[Seen]:
        """All records of a topic in log order, partition by partition, from their leaders, which first fetch what lies in the store alone. Raises TimeoutError."""
        found: list[Seen] = []
        await _until(partial(self._have_read, topic, found), f"records of {topic} have not come from the store", within)
        return sorted(found, key=lambda one: (one.partition, one.offset))

    def _have_read(self, topic: str, found: list[Seen]) -> bool:
        """Fill `found`; whether all records were here."""
        found.clear()
        for number in self.running:
            known = self.broker(number).cluster.topics.get(topic)
            try:
                found += records_of(known) if known is not None else ()
            except NotHere:
                return False
        return True


async def answered(begin: Callable[[Callable[[Result], None]], object]) -> Result:
    """What a call of the broker hands to its last argument, now or later."""
    found: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
    begin(found.set_result)
    return await found


async def _until(condition: Callable[[], bool], otherwise: str, within: Span | float) -> None:
    wait_ms = span_ms(within)
    clock = SystemClock()
    latest_s = clock.monotonic() + wait_ms / 1000
    while not condition():
        if clock.monotonic() > latest_s:
            raise TimeoutError(f"{otherwise} after {wait_ms:.0f} ms")
        await asyncio.sleep(LOOK_AGAIN_S)


def free_port() -> int:
    """A port for a broker, which has to name it before it listens."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


@asynccontextmanager
async def horolog_cluster(
    brokers: int = BROKERS, *, settings: Mapping[str, object] | None = None, **more: object
) -> AsyncIterator[EmbeddedCluster]:
    """Run several brokers that are one cluster for the duration of the block.

    Settings are given by name, `settings={"log.retention.ms": 1000}`, or as keywords, `log_retention_ms=1000`; all brokers have them.
    The brokers use the machine's clock, and keep their data in memory.
    """
    if brokers < 1:
        raise ValueError(f"brokers={brokers}: expected at least 1")
    given = {setting_key(key): setting_text(value) for key, value in (*(settings or {}).items(), *more.items())}
    store = MemoryStore(SystemClock())
    numbers = range(1, brokers + 1)
    cluster = EmbeddedCluster([ClusterBroker(number, {**TEST_SETTINGS, **given}, store) for number in numbers])
    try:
        for number in numbers:
            await cluster.start(number)
        yield cluster
    finally:
        await cluster.close()
