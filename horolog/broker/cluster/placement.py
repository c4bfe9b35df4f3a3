"""Says which broker leads what: handlers and coordinators look up the cluster's brokers and its partitions' leaders here alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from horolog.broker.cluster.cluster import Cluster
from horolog.broker.cluster.cluster_state import NO_EPOCH, NO_NODE, Lead
from horolog.broker.cluster.membership import Members
from horolog.broker.cluster.topic import Topic
from horolog.broker.log.partition import Partition
from horolog.protocol.errors import ErrorCode

NOBODY = Lead(NO_NODE, NO_EPOCH)


class Endpoint(NamedTuple):
    """A live broker, and where clients of a listener find it."""

    node: int
    host: str
    port: int
    rack: str | None = None


class Endpoints(Protocol):
    """The addresses advertised to clients of each listener."""

    def advertised(self, listener: str, node: int) -> tuple[str, int]: ...

    def rack(self, node: int, mine: str | None) -> str | None:
        """The rack of a broker; `mine` is that of this one."""
        ...


class Reader(NamedTuple):
    """A client that names its rack in Fetch."""

    rack: str
    client_id: str | None
    host: str


class ReplicaSelector(Protocol):
    """Has clients read closed segments from brokers of their rack (KIP-392)."""

    def readers(self, topic: Topic, index: int) -> Sequence[int]:
        """The brokers that serve a partition beside its leader."""
        ...

    def preferred(self, partition: Partition, offset: int, reader: Reader) -> int | None:
        """The broker that a reader of a partition that is led here is sent to; None if it is served here."""
        ...

    def followed(
        self, topic: Topic, index: int, offset: int, reader: Reader, *, committed: bool
    ) -> Partition | ErrorCode:
        """A partition that another broker leads; NOT_LEADER_OR_FOLLOWER sends the reader to the leader."""
        ...

    def leader_for(self, topic: Topic, index: int, offset: int, reader: Reader) -> int | None:
        """The leader, for a reader that was sent there by an error and has come back; None for others."""
        ...


class Placement:
    """The brokers of the cluster and the partitions that each of them leads."""

    def __init__(self, cluster: Cluster, endpoints: Endpoints, members: Members) -> None:
        self.members = members
        self.selector: ReplicaSelector | None = None
        self._cluster = cluster
        self._endpoints = endpoints

    def __repr__(self) -> str:
        return f"<Placement of {self.me}, live are {sorted(self.members.live)}>"

    @property
    def me(self) -> int:
        """The number of this broker."""
        return self.members.me

    def live_are(self, nodes: frozenset[int]) -> None:
        """Other nodes serve from now on."""
        self.members = self.members.with_live(nodes)

    def lead(self, topic_id: bytes, index: int) -> Lead:
        """The leader of a partition; `NOBODY` if there is none, or no such partition."""
        topic, state = self._cluster.by_id.get(topic_id), self._cluster.state
        if topic is None or not topic.has(index):
            return NOBODY
        node = state.leader(topic_id, index)
        if node == self.me:
            partition = topic.find(index)
            return NOBODY if isinstance(partition, ErrorCode) else Lead(node, partition.leader_epoch)
        return Lead(node if node in self.members.live else NO_NODE, state.epoch(topic_id, index))

    def coordinator(self, topic_id: bytes, index: int) -> int:
        """The live broker that coordinates what a partition keeps, also while it opens the partition; NO_NODE if there is none."""
        return self.me if self._cluster.is_opening((topic_id, index)) else self.lead(topic_id, index).node

    def keeper(self, topic_id: bytes, index: int) -> int:
        """The broker that keeps a partition, live or not; NO_NODE if there is no such partition."""
        topic = self._cluster.by_id.get(topic_id)
        return NO_NODE if topic is None or not topic.has(index) else self._cluster.state.leader(topic_id, index)

    def recorded_epoch(self, topic_id: bytes, index: int) -> int:
        """The leader epoch of a partition on record, also while its leader does not serve it."""
        return self._cluster.state.epoch(topic_id, index)

    def readers(self, topic: Topic, index: int) -> Sequence[int]:
        """The live brokers that serve some records of a partition beside its leader."""
        selector = self.selector
        return () if selector is None else [one for one in selector.readers(topic, index) if one in self.members.live]

    def brokers(self, listener: str) -> Sequence[Endpoint]:
        """Every live broker, in the order of numbers."""
        mine, endpoints = self._cluster.settings.broker_rack, self._endpoints
        return tuple(
            Endpoint(node, *endpoints.advertised(listener, node), endpoints.rack(node, mine))
            for node in sorted(self.members.live)
        )

    def controller(self) -> int:
        """The broker that admin clients are sent to."""
        return min(self.members.live)


def endpoint_of(placement: Placement, node: int, listener: str) -> Endpoint | None:
    """Where clients of a listener find one broker; None if it is not live."""
    return next((one for one in placement.brokers(listener) if one.node == node), None)
