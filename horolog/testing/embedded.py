"""A broker on the event loop of an asynchronous test: `async with horolog_broker() as broker`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from horolog.broker.app import Broker
from horolog.broker.cluster import Created
from horolog.broker.cluster_errors import ClusterError
from horolog.broker.log.storage import MemoryStorage, RealStorage, Storage
from horolog.broker.new_topics import NewTopic
from horolog.broker.settings import load
from horolog.protocol.errors import ErrorCode
from horolog.testing.clock import BrokerClock, Moment

MEMORY = "memory"
FOLDER_IN_MEMORY = "/horolog"
TEST_SETTINGS: Mapping[str, str] = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "group.initial.rebalance.delay.ms": "0",
    "horolog.clock.jump.wait.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
"""Differences from a broker's defaults: a free port, groups that do not wait for more members, small internal topics,
and a clock that is believed whatever it says."""


class Offsets(NamedTuple):
    """The first offset that is still there, and the one that the next record gets."""

    first: int
    end: int


class EmbeddedBroker:
    """A running broker: `bootstrap` is its address, `clock` its clock, `broker` the whole of it."""

    def __init__(self, broker: Broker, clock: BrokerClock) -> None:
        self.broker = broker
        self.clock = clock

    def __repr__(self) -> str:
        return f"<EmbeddedBroker at {self.bootstrap}>"

    @property
    def host(self) -> str:
        return self.broker.listeners[0].host

    @property
    def port(self) -> int:
        return self.broker.listeners[0].port

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def addresses(self) -> dict[str, str]:
        """HOST:PORT that clients of each listener are told, by its name."""
        told = {each.name: self.broker.placement.brokers(each.name)[0] for each in self.broker.listeners}
        return {name: f"{one.host}:{one.port}" for name, one in told.items()}

    @property
    def http(self) -> str | None:
        """Where /metrics, /health and /ready are, if `horolog_http_listen` asks for them."""
        metrics_server = self.broker.metrics_server
        scheme = self.broker.settings.horolog_http_protocol.lower()
        return None if metrics_server is None else f"{scheme}://{self.host}:{metrics_server.port}"

    def create_topic(self, name: str, partitions: int = 1, **configs: object) -> None:
        """Make a topic without a client; raises `broker.cluster_errors.ClusterError`."""
        overrides = {_key(key): _text(value) for key, value in configs.items()}
        outcomes: Created = []
        self.broker.cluster.create_topics([NewTopic(name, partitions, 1, overrides)], outcomes.extend)
        for outcome in outcomes:
            if isinstance(outcome, ClusterError):
                raise outcome

    def offsets(self, topic: str, partition: int = 0) -> Offsets:
        """From where to where a partition goes now, without a client; raises `broker.cluster_errors.ClusterError`."""
        known = self.broker.cluster.topics.get(topic)
        found = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if known is None else known.find(partition)
        if isinstance(found, ErrorCode):
            raise ClusterError(found, f"there is no {topic}-{partition}")
        return Offsets(found.log_start_offset, found.high_watermark)


@asynccontextmanager
async def horolog_broker(
    *,
    clock: BrokerClock | Moment | None = None,
    storage: str | Path = MEMORY,
    settings: Mapping[str, object] | None = None,
    **more: object,
) -> AsyncIterator[EmbeddedBroker]:
    """Run a broker of the test's own while the block lasts.

    `clock` is a BrokerClock, or the time at which one stands still; `storage` is "memory" or a data folder, which is kept. Settings
    go by their names, `settings={"log.retention.ms": 1000}`, or as words, `log_retention_ms=1000`. The environment plays no part.
    """
    given = {_key(key): _text(value) for key, value in (*(settings or {}).items(), *more.items())}
    loaded, _ = load(None, {}, {**TEST_SETTINGS, **given})
    own_clock = clock if isinstance(clock, BrokerClock) else BrokerClock(clock)
    files, folder = _storage(storage, own_clock)
    running = Broker(loaded, own_clock, files, [folder], asyncio.get_running_loop())
    try:
        await running.start()
        own_clock.on_moved = running.time_has_moved
        yield EmbeddedBroker(running, own_clock)
    finally:
        own_clock.on_moved = lambda: None
        await running.stop()


def _storage(storage: str | Path, clock: BrokerClock) -> tuple[Storage, str]:
    if storage == MEMORY:
        return MemoryStorage(lambda: clock.wall_ms() * 1_000_000), FOLDER_IN_MEMORY
    return RealStorage(), str(Path(storage).resolve())


def _key(name: str) -> str:
    return name if "." in name else name.replace("_", ".")


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
