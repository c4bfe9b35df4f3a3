"""A client's view of the cluster: brokers, topics, and the leader of each partition; taken from Metadata responses, pure."""

from dataclasses import dataclass, field

from horolog.client.values.errors import KafkaError, error_of
from horolog.client.values.types import TopicPartition
from horolog.protocol.errors import ErrorCode
from horolog.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic


@dataclass(frozen=True, slots=True)
class Node:
    id: int
    host: str
    port: int
    rack: str | None = None

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class PartitionView:
    index: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    error_code: int = 0


@dataclass(frozen=True, slots=True)
class TopicView:
    name: str
    id: bytes
    internal: bool
    partitions: dict[int, PartitionView]
    error_code: int = 0
    updated_at: float = 0.0  # seconds of the monotonic clock
    numbers: list[int] = field(default_factory=list)  # of the partitions, ascending


@dataclass(slots=True)
class ClusterView:
    cluster_id: str | None = None
    controller_id: int = -1
    nodes: dict[int, Node] = field(default_factory=dict)
    topics: dict[str, TopicView] = field(default_factory=dict)

    def update(self, response: MetadataResponse, now: float) -> None:
        """Apply a response: its brokers replace all known ones, its topics replace those of the same name."""
        self.cluster_id = response.cluster_id
        self.controller_id = response.controller_id
        self.nodes = {each.node_id: Node(each.node_id, each.host, each.port, each.rack) for each in response.brokers}
        for topic in response.topics:
            if topic.name is None:
                continue
            if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                self.topics.pop(topic.name, None)
            else:
                self.topics[topic.name] = _topic_view(topic, now)

    def leader(self, partition: TopicPartition) -> Node:
        """The broker that leads a partition; raises a KafkaError that says why there is none."""
        topic = self.topics.get(partition.topic)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {partition.topic!r}")
        if topic.error_code:
            reason = f"topic {partition.topic!r}: {error_of(topic.error_code).message}"
            raise error_of(topic.error_code, reason, topic=partition.topic)
        view = topic.partitions.get(partition.partition)
        if view is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {partition}")
        node = self.nodes.get(view.leader)
        if node is None:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{partition} has no leader at the moment")
        return node

    def controller(self) -> Node:
        node = self.nodes.get(self.controller_id)
        if node is None:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "the controller is unknown")
        return node


def _topic_view(topic: MetadataResponseTopic, now: float) -> TopicView:
    partitions = {
        each.partition_index: PartitionView(
            each.partition_index,
            each.leader_id,
            each.leader_epoch,
            tuple(each.replica_nodes),
            tuple(each.isr_nodes),
            each.error_code,
        )
        for each in sorted(topic.partitions, key=lambda each: each.partition_index)
    }
    return TopicView(
        topic.name or "", topic.topic_id, topic.is_internal, partitions, topic.error_code, now, list(partitions)
    )
