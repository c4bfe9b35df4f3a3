"""The transaction coordinator over a log in memory, in virtual time: the test triggers every tick, sync, kill and power cut.

The committer is the real one. Its loop and its workers are lists: `step` runs one waiting call, so that syncs end in any order.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

from horolog.base.clock import ManualClock
from horolog.broker.base.metrics import Metrics
from horolog.broker.base.own_thread import AtOnce
from horolog.broker.cluster.cluster import Cluster
from horolog.broker.cluster.membership import SoleMember
from horolog.broker.commit.committer import Committer
from horolog.broker.commit.safety import Failures, LocalSafety
from horolog.broker.config.settings import load
from horolog.broker.coordination.keyed_queue import KeyedQueue, RetryGuard
from horolog.broker.handlers import transactional_produce
from horolog.broker.log.manager import LogManager
from horolog.broker.log.partition import Partition
from horolog.broker.log.storage import MemoryStorage, StorageFault
from horolog.broker.log.storage.memory_disk import ALL
from horolog.broker.log.validation import RefusedSet
from horolog.broker.on_record.cluster_file import ClusterFile
from horolog.broker.transactions.coordinator import TransactionCoordinator
from tests.support.at_once import at_once
from tests.support.history import Place, Row
from tests.support.members import nobody_else
from tests.support.transactional import committed_records

DATA = "/data"
TOPIC = "t"
PARTITIONS = 3
SMALL_SEGMENTS = {"segment.bytes": "700", "index.interval.bytes": "100", "retention.ms": "-1"}


class SimulatedLoop:
    """The part of an event loop, and of an executor, that the committer uses."""

    def __init__(self) -> None:
        self.callbacks: list[tuple[Callable[..., None], tuple[Any, ...]]] = []
        self.tasks: list[tuple[Callable[[], Any], Future[Any]]] = []

    def call_soon(self, callback: Callable[..., None], *arguments: Any) -> None:
        self.callbacks.append((callback, arguments))

    call_soon_threadsafe = call_soon

    def submit(self, task: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        self.tasks.append((task, future))
        return future

    def step(self, chance: random.Random) -> bool:
        """Run one waiting call; False if there is none."""
        if self.tasks and (not self.callbacks or chance.random() < 0.5):
            task, future = self.tasks.pop(chance.randrange(len(self.tasks)))
            try:
                outcome = task()
            except StorageFault as fault:
                future.set_exception(fault)
            else:
                future.set_result(outcome)
            return True
        if self.callbacks:
            callback, arguments = self.callbacks.pop(0)
            callback(*arguments)
            return True
        return False


class Write:
    """An append that waits for its acknowledgement."""

    def __init__(self, partition: Partition, done: Callable[[bool], None]) -> None:
        self.partitions: Sequence[Partition] = (partition,)
        self.durable = True
        self._done = done

    def finish(self, failures: Failures) -> None:
        self._done(not failures)


class TransactionWorld:
    """One broker's transactions; a restart makes all its parts again. `starts` counts the starts."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.settings, _ = load(None, {}, {"transaction.state.log.num.partitions": "2"})
        self.storage = MemoryStorage()
        self.clock = ManualClock()
        self.starts = 0
        self.start()
        self.cluster.create_topic(TOPIC, PARTITIONS, SMALL_SEGMENTS)

    def start(self) -> None:
        self.starts += 1
        self.loop = SimulatedLoop()
        self.logs = LogManager([DATA], self.storage, self.clock, self.settings)
        file = ClusterFile(self.storage, DATA)
        self.cluster = Cluster(
            self.logs.cluster_id,
            self.settings,
            self.logs,
            file,
            SoleMember(self.settings.node_id, self.logs, file, AtOnce()),
        )
        self.cluster.open(self.clock.wall_ms())
        safety = LocalSafety(self.loop, self.loop, Metrics(), self.clock.monotonic)  # type: ignore[arg-type]
        self.committer = Committer(self.loop, safety, lambda _: None, Metrics(), self.clock.monotonic)  # type: ignore[arg-type]
        self.coordinator = TransactionCoordinator(
            self.cluster, self.committer, self.clock, lambda _producer_id, _committed: None, nobody_else(self.cluster)
        )
        self.coordinator.open()

    def kill(self) -> None:
        """Kill the process but not the machine: everything written remains."""
        self.storage.power_off_after(ALL)
        self.logs.abandon()
        self.start()

    def cut_power(self) -> None:
        """Cut the power: unsynced data may be lost, in part or altogether."""
        self.logs.abandon()
        self.storage.crash(self.chance)
        self.start()

    def settle(self) -> None:
        while self.loop.step(self.chance):
            pass

    # -- clients

    def produce(
        self, transactional_id: str, place: Place, records: bytes, version: int, done: Callable[[bool], None]
    ) -> int | None:
        """Append in a transaction; returns the offset, or None if refused. `done` says later whether it is on the disk."""
        partition = self.partition(place)
        view = memoryview(records)
        broker: Any = SimpleNamespace(
            joining=self.coordinator, turns=KeyedQueue(), sent_back=RetryGuard(self.clock.monotonic)
        )
        if at_once(transactional_produce.verify, broker, transactional_id, [(partition, view)], version):
            return None
        try:
            offset = partition.append(view, self.clock.wall_ms(), produce_version=version).base_offset
        except (RefusedSet, StorageFault):
            return None
        self.committer.submit(Write(partition, done))
        return offset

    def partition(self, place: Place) -> Partition:
        return self.cluster.topics[place[0]].find(place[1])

    def places(self) -> list[Place]:
        return [(TOPIC, index) for index in range(PARTITIONS)]

    def read_committed(self, place: Place, offset: int) -> tuple[list[Row], int]:
        """What a read_committed reader sees from an offset on, and where it continues."""
        partition = self.partition(place)
        stable_offset = partition.last_stable_offset
        rows: list[Row] = []
        while offset < stable_offset:
            data = partition.read(offset, 1000, upto=stable_offset)
            aborted = [
                (one.first_offset, one.producer_id) for one in partition.aborted.overlapping(offset, stable_offset)
            ]
            rows += [(at, value or b"") for at, value in committed_records(data, aborted, offset)]
            offset = _behind(data)
        return rows, offset


def _behind(data: bytes) -> int:
    """The offset after the last batch."""
    position = behind = 0
    while position < len(data):
        behind = int.from_bytes(data[position : position + 8], "big") + 1
        behind += int.from_bytes(data[position + 23 : position + 27], "big")
        position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
    return behind
