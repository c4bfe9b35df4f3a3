"""A group coordinator over a log in memory, in virtual time: it can be killed and restarted, and its disk can fail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from horolog.base.clock import ManualClock
from horolog.broker.base.own_thread import AtOnce
from horolog.broker.cluster.cluster import Cluster
from horolog.broker.cluster.membership import SoleMember
from horolog.broker.commit.committer import Commit, InternalCommit
from horolog.broker.config.settings import load
from horolog.broker.coordination.timers import Timers
from horolog.broker.groups.classic_events import Client
from horolog.broker.groups.coordinator import GroupCoordinator
from horolog.broker.log.manager import LogManager
from horolog.broker.log.partition import Partition
from horolog.broker.log.storage import MemoryStorage, StorageFault
from horolog.broker.on_record.cluster_file import ClusterFile

DATA = "/data"
CLIENT = Client("client", "/127.0.0.1")


class TickCommitter:
    """Writes and answers when the test ends a tick of the loop."""

    def __init__(self) -> None:
        self.queued: list[Commit] = []
        self.has_room = True
        self.holds = False

    def submit(self, commit: Commit) -> None:
        self.queued.append(commit)

    def submit_own(self, partitions: Any, done: Any, *, durable: bool, records: int = 1) -> None:
        assert records
        self.submit(InternalCommit(partitions, done, durable=durable))

    def tick(self) -> None:
        queued, self.queued = self.queued, []
        failures: dict[Partition, StorageFault] = {}
        for partition in dict.fromkeys(one for commit in queued for one in commit.partitions):
            try:
                partition.flush()
            except StorageFault as fault:
                failures[partition] = fault
        for commit in queued:
            commit.finish({one: failures[one] for one in commit.partitions if one in failures})


class GroupWorld:
    """One broker's groups; `coordinator` is a new object after `restart`."""

    def __init__(self, settings: Mapping[str, object] | None = None) -> None:
        flags = {"group.initial.rebalance.delay.ms": "0", "offsets.topic.num.partitions": "3"}
        flags |= {key: str(value) for key, value in (settings or {}).items()}
        self.settings, _ = load(None, {}, flags)
        self.storage = MemoryStorage()
        self.clock = ManualClock()
        self.start()

    def offsets_partition(self, group_id: str) -> Any:
        """The partition that keeps a group's offsets."""
        topic, shard = self.coordinator.offsets_place(group_id)
        return self.cluster.topics[topic].find(shard)

    def start(self) -> None:
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
        self.committer = TickCommitter()
        self.timers = Timers(self.clock)
        self.coordinator = GroupCoordinator(self.cluster, self.committer, self.clock, self.timers)  # type: ignore[arg-type]
        for _ in self.coordinator.load():
            pass

    def restart(self) -> None:
        """Kill the process: unwritten data is lost, and waiting requests get no response."""
        self.storage.heal()
        self.storage.locks.clear()
        self.start()

    def topic(self, name: str = "t", partitions: int = 4) -> None:
        self.cluster.create_topic(name, partitions)

    def tick(self) -> None:
        """End this tick of the loop, and the ticks that follow from it; not while the disk does not answer."""
        while self.committer.queued and not self.committer.holds:
            self.committer.tick()

    def advance(self, ms: int) -> None:
        """Let time pass; everything due in between happens at its time."""
        end_s = self.clock.monotonic() + ms / 1000
        while (due_s := self.timers.next_due()) is not None and due_s <= end_s:
            self.clock.advance(max(0, round((due_s - self.clock.monotonic()) * 1000)))
            if self.clock.monotonic() < due_s:
                self.clock.advance(1)  # a timer due between two milliseconds is run with the later one
            self.timers.run_due()
            self.tick()
        self.clock.advance(max(0, round((end_s - self.clock.monotonic()) * 1000)))
