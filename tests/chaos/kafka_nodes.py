"""Three nodes of Apache Kafka, each broker and controller, for the faults and figures that brokers over a store have."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import kafka
from benchmarks.process import free_ports
from tests.chaos.brokers import NODES, Brokers

STOPPED_BY_TERM = 143


class KafkaNodes(Brokers):
    """Replication factor 3, two replicas in sync for an acknowledgement of all."""

    replication_factor = len(NODES)

    def __init__(self, folder: Path, version: str, heap_mib: int = 512) -> None:
        super().__init__(folder)
        self._version, self._heap_mib = version, heap_mib
        self._controllers = dict(zip(NODES, free_ports(len(NODES)), strict=True))

    def _settings(self, node: int) -> dict[str, str]:
        client, controller = (f"127.0.0.1:{ports[node]}" for ports in (self.ports, self._controllers))
        internal = ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
        return {
            "node.id": str(node),
            "controller.quorum.voters": ",".join(f"{one}@127.0.0.1:{port}" for one, port in self._controllers.items()),
            "listeners": f"PLAINTEXT://{client},CONTROLLER://{controller}",
            "advertised.listeners": f"PLAINTEXT://{client}",
            "min.insync.replicas": "2",
            "offsets.topic.num.partitions": "6",
            "transaction.state.log.num.partitions": "6",
            "transaction.state.log.min.isr": "2",
            "share.coordinator.state.topic.min.isr": "2",
            **{f"{topic}.replication.factor": str(len(NODES)) for topic in internal},
        }

    def start(self, node: int) -> None:
        started = kafka.start(
            self._version, self.place(node), self._settings(node), port=self.ports[node], heap_mib=self._heap_mib
        )
        self.processes[node] = kafka.process_of(started)

    def start_all(self) -> None:
        """None answers before two are there."""
        threads = [threading.Thread(target=self.start, args=(node,)) for node in NODES]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def ended(self, node: int, code: int) -> None:
        super().ended(node, 0 if code == STOPPED_BY_TERM else code)


@contextmanager
def of_kafka(folder: Path, version: str) -> Iterator[KafkaNodes]:
    """Three nodes that answer; all end with the block."""
    nodes = KafkaNodes(folder, version)
    try:
        nodes.start_all()
        yield nodes
    finally:
        nodes.end_all()
