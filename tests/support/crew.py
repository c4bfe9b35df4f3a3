"""Workers in one process: their clusters over one storage in memory or one real folder, linked without a supervisor."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from horolog.base.clock import ManualClock
from horolog.broker.base.own_thread import AtOnce, Beside
from horolog.broker.cluster import settling
from horolog.broker.cluster.cluster import Cluster
from horolog.broker.cluster.worker_context import WorkerContext
from horolog.broker.cluster.worker_folder_checkpoints import share_of
from horolog.broker.cluster.worker_membership import WorkerMembership
from horolog.broker.config.settings import Layers, Settings, from_layers
from horolog.broker.log.manager import LogManager
from horolog.broker.log.storage import MemoryStorage, Storage
from horolog.broker.on_record.cluster_file import ClusterFile
from horolog.broker.on_record.stored_rules import Rules
from tests.support.log_model import NOW_MS


def context_of(node: int, nodes: tuple[int, ...]) -> WorkerContext:
    ports = {"PLAINTEXT": {one: 9100 + one for one in nodes}}
    return WorkerContext(node, nodes, "/sockets", ports, is_first=node == nodes[0])


class Tie:
    """The link of one worker: its messages reach the others at once, or when `Crew.deliver` is called."""

    def __init__(self, crew: Crew, node: int) -> None:
        self._crew = crew
        self._node = node
        self.on_live_changed: Callable[[frozenset[int]], None] = lambda _: None
        self.on_journal: Callable[[int], None] = lambda _: None
        self.applied_up_to = 0
        self.parts_done = 0

    @property
    def live(self) -> frozenset[int]:
        return frozenset(self._crew.clusters)

    def journal_is_at(self, number: int, done: Callable[[], None]) -> None:
        self._crew.tell(self._node, number, done)

    def applied(self, number: int) -> None:
        self.applied_up_to = number

    def goes_on(self) -> None:
        self.parts_done += 1

    def applied_by(self, node: int) -> int:
        return self._crew.ties[node].applied_up_to


class Crew:
    """Workers on the folders; each has a log manager and a cluster of its own."""

    def __init__(
        self,
        nodes: Iterable[int] = (1, 2),
        storage: Storage | None = None,
        folders: Iterable[str] = ("/data",),
        *,
        at_once: bool = True,
        beside: Callable[[], Beside] = AtOnce,
        **settings: object,
    ) -> None:
        self.nodes = tuple(nodes)
        self.storage = storage or MemoryStorage()
        self.folders = list(folders)
        self.clock = ManualClock(NOW_MS)
        self.at_once = at_once
        self.beside = beside
        self.clusters: dict[int, Cluster] = {}
        self.logs: dict[int, LogManager] = {}
        self.ties: dict[int, Tie] = {}
        self._static: dict[str, str] = {}
        self.set(**settings)
        self._said: list[tuple[int, int, Callable[[], None]]] = []
        self._ids = 0

    def set(self, **settings: object) -> None:
        """Set the settings of workers that start from now on."""
        texts = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in settings.items()}
        self._static |= {key.replace("_", "."): text for key, text in texts.items()}

    def new_id(self) -> bytes:
        self._ids += 1
        return self._ids.to_bytes(16)

    def settings_of(self, node: int) -> Settings:
        return from_layers(Layers(static={**self._static, "node.id": str(node)}))

    def start(self, *nodes: int) -> Crew:
        """Settle the folders and start all workers, or these."""
        self.settle()
        for node in nodes or self.nodes:
            self.begin(node)
        return self

    def settle(self) -> None:
        settings = self.settings_of(self.nodes[0])
        settling.settle(self.storage, self.folders, self.clock, settings, self.nodes, self.new_id)

    def begin(self, node: int, rules_changed: Callable[[Rules], None] = lambda _: None) -> Cluster:
        """Start one worker, or its successor."""
        settings, tie = self.settings_of(node), Tie(self, node)
        share = share_of(node, self.nodes[0], is_first=node == self.nodes[0])
        logs = self.logs[node] = LogManager(self.folders, self.storage, self.clock, settings, share)
        file = ClusterFile(self.storage, self.folders[0], lambda: [one.path for one in logs.folders.usable()])
        membership = WorkerMembership(context_of(node, self.nodes), tie, logs, file, self.beside())
        cluster = Cluster(logs.cluster_id, settings, logs, file, membership, self.new_id)
        self.ties[node] = tie
        cluster.rule_watchers.append(rules_changed)
        cluster.open(self.clock.wall_ms())
        self.clusters[node] = cluster
        self._tell_who_is_live()
        return cluster

    def tell(self, node: int, number: int, done: Callable[[], None]) -> None:
        self._said.append((node, number, done))
        if self.at_once:
            self.deliver()

    def deliver(self) -> None:
        """Deliver every worker's messages to the others."""
        while self._said:
            node, number, done = self._said.pop(0)
            for other, tie in self.ties.items():
                if other != node and other in self.clusters:
                    tie.on_journal(number)
            done()

    def stop(self, *nodes: int) -> None:
        """Stop workers cleanly."""
        for node in nodes or tuple(self.clusters):
            del self.clusters[node]
            self.logs.pop(node).close()
        self._tell_who_is_live()

    def kill(self, *nodes: int) -> None:
        """End workers as if killed."""
        for node in nodes or tuple(self.clusters):
            del self.clusters[node]
            self.logs.pop(node).abandon()
        self._tell_who_is_live()

    def _tell_who_is_live(self) -> None:
        for node in self.clusters:
            self.ties[node].on_live_changed(self.ties[node].live)

    def merge(self) -> bool:
        return settling.merge(self.storage, self.folders)

    def partition(self, name: str, index: int) -> Any:
        """The partition at its leader; exactly one worker leads it."""
        topics = [cluster.topics[name] for cluster in self.clusters.values()]
        (found,) = [one for topic in topics for one in topic.led_here if one.index == index]
        return found
