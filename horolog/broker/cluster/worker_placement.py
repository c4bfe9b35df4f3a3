"""Which worker leads which partition: by `spread` and by recorded changes of leaders, while that worker is live."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from horolog.broker.cluster.cluster_state import Lead
from horolog.broker.cluster.placement import NO_NODE, NOBODY, Endpoint, Endpoints
from horolog.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from horolog.broker.cluster.cluster import Cluster
    from horolog.broker.cluster.link import Link
    from horolog.broker.cluster.worker_context import WorkerContext


class WorkersPlacement:
    """The placement of one worker among several: it knows who leads, and for its own partitions in which epoch."""

    def __init__(self, cluster: Cluster, endpoints: Endpoints, context: WorkerContext, link: Link) -> None:
        self._cluster = cluster
        self._endpoints = endpoints
        self._context = context
        self._link = link

    def __repr__(self) -> str:
        return f"<WorkersPlacement of {self.me}, live are {sorted(self.live())}>"

    @property
    def me(self) -> int:
        return self._context.node

    def live(self) -> frozenset[int]:
        """All ready workers, and this one, which serves even if the supervisor does not know that yet."""
        return self._link.live | {self._context.node}

    def lead(self, topic_id: bytes, index: int) -> Lead:
        topic, state = self._cluster.by_id.get(topic_id), self._cluster.state
        if topic is None or not topic.has(index):
            return NOBODY
        node = state.leader(topic_id, index)
        if node == self._context.node:
            partition = topic.find(index)
            return NOBODY if isinstance(partition, ErrorCode) else Lead(node, partition.leader_epoch)
        return Lead(node if node in self._link.live else NO_NODE, state.epoch(topic_id, index))

    def keeper(self, topic_id: bytes, index: int) -> int:
        topic = self._cluster.by_id.get(topic_id)
        return NO_NODE if topic is None or not topic.has(index) else self._cluster.state.leader(topic_id, index)

    def brokers(self, listener: str) -> Sequence[Endpoint]:
        host, _ = self._endpoints.advertised(listener)
        ports, rack = self._context.ports[listener], self._cluster.settings.broker_rack
        return tuple(Endpoint(node, host, ports[node], rack) for node in sorted(self.live()))

    def controller(self) -> int:
        return min(self.live())
