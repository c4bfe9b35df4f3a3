"""A broker on the event loop of an asynchronous test: `async with horolog_broker() as broker`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple, Unpack

from horolog.broker.cluster.cluster import Created
from horolog.broker.cluster.new_topics import NewTopic
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.broker.server.app import Broker
from horolog.protocol.errors import ErrorCode
from horolog.testing import expecting
from horolog.testing import snapshot as snapshots
from horolog.testing.clock import BrokerClock, Moment, Span, Watcher
from horolog.testing.faults import Faults
from horolog.testing.full_disk import Fullness
from horolog.testing.matching import Conditions, ExpectedRecord
from horolog.testing.reading import Seen, records_of, topic_named
from horolog.testing.restoring import restore
from horolog.testing.runs import MEMORY, BrokerRuns
from horolog.testing.secured import OPEN, Secured, secured_by
from horolog.testing.settling import settle
from horolog.testing.snapshot_files import compare

DEFAULT_WITHIN = "1s"
TEST_SETTINGS: Mapping[str, str] = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "group.initial.rebalance.delay.ms": "0",
    "horolog.clock.jump.wait.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
"""Differences from a broker's defaults: a free port, groups that do not wait for more members, small internal topics,
and a clock that is always trusted."""


class Offsets(NamedTuple):
    """The first remaining offset, and the offset of the next record."""

    first: int
    end: int


class EmbeddedBroker(Watcher):
    """A running broker: `bootstrap` is its address, `clock` its clock, `faults` arms faults, `broker` is the broker itself."""

    def __init__(self, runs: BrokerRuns, clock: BrokerClock, fullness: Fullness, secured: Secured = OPEN) -> None:
        self._runs = runs
        self._secured = secured
        self.clock = clock
        self.faults = Faults(runs.broker, fullness)
        first = runs.broker.listeners[0]
        self.host, self.port = first.host, first.port

    def __repr__(self) -> str:
        return f"<EmbeddedBroker at {self.bootstrap}>"

    @property
    def broker(self) -> Broker:
        """The broker itself; each start makes another one. Raises `horolog.testing.runs.NotRunning` while it is down."""
        return self._runs.broker

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def client_settings(self) -> dict[str, str]:
        """What a client of librdkafka needs to connect: address, protocol, authority, name and password."""
        return {"bootstrap.servers": self.bootstrap, **self._secured.client}

    @property
    def addresses(self) -> dict[str, str]:
        """The advertised HOST:PORT of each listener, by its name."""
        told = {each.name: self.broker.placement.brokers(each.name)[0] for each in self.broker.listeners}
        return {name: f"{one.host}:{one.port}" for name, one in told.items()}

    @property
    def http(self) -> str | None:
        """The address of /metrics, /health and /ready, if `horolog_http_listen` is set."""
        metrics_server = self.broker.metrics_server
        scheme = self.broker.settings.horolog_http_protocol.lower()
        return None if metrics_server is None else f"{scheme}://{self.host}:{metrics_server.port}"

    def create_topic(self, /, name: str, partitions: int = 1, **configs: object) -> None:
        """Create a topic without a client; raises `broker.on_record.cluster_errors.ClusterError`."""
        overrides = {setting_key(key): setting_text(value) for key, value in configs.items()}
        outcomes: Created = []
        self.broker.cluster.create_topics([NewTopic(name, partitions, 1, overrides)], outcomes.extend)
        for outcome in outcomes:
            if isinstance(outcome, ClusterError):
                raise outcome

    def moved(self, seconds: float) -> None:
        if self._runs.is_running:
            self.faults.timers.run_due()
            self.broker.time_has_moved(seconds)

    async def settle(self) -> None:
        if self._runs.is_running:
            await settle(self.broker)

    async def kill(self, *, power_cut: bool = False) -> None:
        """End the broker as `kill -9` does: connections break, and nothing is written any more.

        `power_cut=True` also loses everything that was not synced, which needs storage in memory. `start()` starts it again.
        """
        await self._runs.kill(power_cut=power_cut)

    async def start(self) -> None:
        """Start again after `kill()`, on the same port and data; armed faults are over."""
        if not self._runs.is_running:
            self.faults.forget_all()
        self.faults.follow(await self._runs.start())

    async def restart(self) -> None:
        """Stop cleanly, as on SIGTERM, and start again on the same port and data."""
        await self._runs.stop()
        await self.start()

    def offsets(self, topic: str, partition: int = 0) -> Offsets:
        """A partition's first and next offset, without a client; raises `broker.on_record.cluster_errors.ClusterError`."""
        known = self.broker.cluster.topics.get(topic)
        found = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if known is None else known.find(partition)
        if isinstance(found, ErrorCode):
            raise ClusterError(found, f"there is no {topic}-{partition}")
        return Offsets(found.log_start_offset, found.high_watermark)

    # -- the log

    def topics(self) -> dict[str, int]:
        """All topics except internal ones, each with its number of partitions."""
        return {name: one.partition_count for name, one in self.broker.cluster.topics.items() if not one.internal}

    def records(self, topic: str) -> list[Seen]:
        """All records of a topic in log order, partition by partition; raises `ClusterError` if there is no such topic."""
        return records_of(topic_named(self.broker.cluster, topic))

    async def expect(
        self,
        topic: str,
        count: int | None = None,
        *,
        within: Span | float = DEFAULT_WITHIN,
        **wanted: Unpack[Conditions],
    ) -> list[Seen]:
        """Wait until `count` records match, or at least one without a `count`; returns them.

        Conditions are `key`, `value`, `headers`, `partition`, `where` (a function that is given each record) and `committed`. A value
        or key is a text, bytes, None, or JSON: an object matches if the record has at least these members. A timeout, by the
        machine's clock, raises `ExpectationFailed`, an AssertionError that shows the records.
        """
        return await expecting.expect(self.broker, topic, ExpectedRecord(**wanted), count, within)

    async def expect_none(self, topic: str, *, within: Span | float = 0, **wanted: Unpack[Conditions]) -> None:
        """No record matches, now and until the time is over; the conditions are those of `expect`."""
        await expecting.expect_none(self.broker, topic, ExpectedRecord(**wanted), within)

    async def expect_committed(
        self, group: str, topic: str, offset: int, *, partition: int = 0, within: Span | float = DEFAULT_WITHIN
    ) -> None:
        """Wait until a group has committed this offset, that of its next record."""
        await expecting.expect_committed(self.broker, group, topic, offset, partition, within)

    # -- snapshots

    def snapshot(self, topic: str, *, times: str = snapshots.RELATIVE, marks: bool = False) -> str:
        """A topic as readable text: see `horolog.testing.snapshot`. `times` is "relative", "absolute" or "none"."""
        found = topic_named(self.broker.cluster, topic)
        start_ms = self.clock.start_ms
        return snapshots.write(
            topic, found.partition_count, records_of(found), start_ms=start_ms, times=times, marks=marks
        )

    async def restore(self, snapshot: str | Path, topic: str | None = None) -> int:
        """Append a snapshot's records, from a file or its text, to its topic or another one; returns their number."""
        text = snapshot.read_text("utf-8") if isinstance(snapshot, Path) else snapshot  # noqa: ASYNC240 - a small file
        parsed = snapshots.parse(text, start_ms=self.clock.start_ms)
        return await restore(self.broker, parsed, topic or parsed.topic)

    def expect_snapshot(
        self,
        topic: str,
        file: str | Path,
        *,
        times: str = snapshots.RELATIVE,
        marks: bool = False,
        update: bool | None = None,
    ) -> None:
        """Compare the topic with the file: AssertionError shows the difference; `update` writes the file instead.

        If `update` is None, HOROLOG_UPDATE_SNAPSHOTS=1 or `pytest --horolog-update-snapshots` turns it on.
        """
        compare(self.snapshot(topic, times=times, marks=marks), Path(file), update=update)


@asynccontextmanager
async def horolog_broker(
    *,
    clock: BrokerClock | Moment | None = None,
    storage: str | Path = MEMORY,
    settings: Mapping[str, object] | None = None,
    security: str | None = None,
    **more: object,
) -> AsyncIterator[EmbeddedBroker]:
    """Run a broker for the duration of the block.

    `clock` is a BrokerClock, or the time at which one stands still; `storage` is "memory" or a data folder, which is kept. Settings
    are given by name, `settings={"log.retention.ms": 1000}`, or as keywords, `log_retention_ms=1000`. The environment is ignored.
    `security` is "tls", "sasl" or "sasl_tls": clients then need `client_settings`.
    """
    given = {setting_key(key): setting_text(value) for key, value in (*(settings or {}).items(), *more.items())}
    own_clock = clock if isinstance(clock, BrokerClock) else BrokerClock(clock)
    fullness = Fullness()
    secured = secured_by(security)
    runs = BrokerRuns({**TEST_SETTINGS, **secured.broker, **given}, own_clock, storage, fullness)
    await runs.start()
    embedded = EmbeddedBroker(runs, own_clock, fullness, secured)
    own_clock.watchers.append(embedded)
    try:
        yield embedded
    finally:
        own_clock.watchers.remove(embedded)
        embedded.faults.close()
        await runs.stop()


def setting_key(name: str) -> str:
    """`log_retention_ms` is the key `log.retention.ms`."""
    return name if "." in name else name.replace("_", ".")


def setting_text(value: object) -> str:
    """A value in a broker's form."""
    return str(value).lower() if isinstance(value, bool) else str(value)
