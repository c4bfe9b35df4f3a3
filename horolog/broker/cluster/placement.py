"""Says which broker leads what: handlers and coordinators look up the cluster's brokers and its partitions' leaders here alone.

`SoleBroker` is the placement of a broker that is a whole cluster: it leads every partition that the state names no leader of.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from horolog.broker.cluster.cluster import Cluster
from horolog.broker.cluster.cluster_state import Lead
from horolog.protocol.errors import ErrorCode

NO_NODE = -1
NO_EPOCH = -1
NOBODY = Lead(NO_NODE, NO_EPOCH)


class Endpoint(NamedTuple):
    """A live broker, and where clients of a listener find it."""

    node: int
    host: str
    port: int
    rack: str | None = None


class Placement(Protocol):
    """The brokers of the cluster and the partitions that each of them leads."""

    @property
    def me(self) -> int:
        """The number of this broker."""
        ...

    def lead(self, topic_id: bytes, index: int) -> Lead:
        """The leader of a partition; NOBODY if there is none, or no such partition."""
        ...

    def keeper(self, topic_id: bytes, index: int) -> int:
        """The broker that keeps a partition, live or not; NO_NODE if there is no such partition."""
        ...

    def brokers(self, listener: str) -> Sequence[Endpoint]:
        """Every live broker, in the order of numbers."""
        ...

    def controller(self) -> int:
        """The broker that admin clients are sent to."""
        ...


class Endpoints(Protocol):
    """The addresses advertised to clients of each listener."""

    def advertised(self, listener: str) -> tuple[str, int]: ...


class SoleBroker:
    """The placement of one broker alone."""

    def __init__(self, cluster: Cluster, endpoints: Endpoints) -> None:
        self._cluster = cluster
        self._endpoints = endpoints

    def __repr__(self) -> str:
        return f"<SoleBroker {self.me} of {self._cluster!r}>"

    @property
    def me(self) -> int:
        return self._cluster.settings.node_id

    def lead(self, topic_id: bytes, index: int) -> Lead:
        moved = self._cluster.state.leads.get((topic_id, index))
        if moved is not None:
            return moved
        topic = self._cluster.by_id.get(topic_id)
        partition = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None else topic.find(index)
        return NOBODY if isinstance(partition, ErrorCode) else Lead(self.me, partition.leader_epoch)

    def keeper(self, topic_id: bytes, index: int) -> int:
        return self.lead(topic_id, index).node

    def brokers(self, listener: str) -> Sequence[Endpoint]:
        host, port = self._endpoints.advertised(listener)
        return (Endpoint(self.me, host, port, self._cluster.settings.broker_rack),)

    def controller(self) -> int:
        return self.me


def endpoint_of(placement: Placement, node: int, listener: str) -> Endpoint | None:
    """Where clients of a listener find one broker; None if it is not live."""
    return next((one for one in placement.brokers(listener) if one.node == node), None)
