"""The metadata quorum, as admin tools see it."""

from horolog.protocol.wire import (
    Message,
    Struct,
    array,
    field,
    int16,
    int32,
    int64,
    string,
    uint16,
    uuid,
)


class PartitionData(Struct):
    partition_index: int = field(int32)


class TopicData(Struct):
    topic_name: str = field(string)
    partitions: list[PartitionData] = field(array(PartitionData))


class DescribeQuorumRequest(Message, versions="0-2", flexible="0+"):
    topics: list[TopicData] = field(array(TopicData))


class ReplicaState(Struct):
    replica_id: int = field(int32)
    replica_directory_id: bytes = field(uuid, "2+")
    log_end_offset: int = field(int64)
    last_fetch_timestamp: int = field(int64, "1+", default=-1, ignorable=True)
    last_caught_up_timestamp: int = field(int64, "1+", default=-1, ignorable=True)


class DescribeQuorumResponsePartitionData(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, "2+", nullable="0+", ignorable=True)
    leader_id: int = field(int32)
    leader_epoch: int = field(int32)
    high_watermark: int = field(int64)
    current_voters: list[ReplicaState] = field(array(ReplicaState))
    observers: list[ReplicaState] = field(array(ReplicaState))


class DescribeQuorumResponseTopicData(Struct):
    topic_name: str = field(string)
    partitions: list[DescribeQuorumResponsePartitionData] = field(array(DescribeQuorumResponsePartitionData))


class Listener(Struct):
    name: str = field(string)
    host: str = field(string)
    port: int = field(uint16)


class Node(Struct):
    node_id: int = field(int32)
    listeners: list[Listener] = field(array(Listener))


class DescribeQuorumResponse(Message, versions="0-2", flexible="0+"):
    error_code: int = field(int16)
    error_message: str | None = field(string, "2+", nullable="0+", ignorable=True)
    topics: list[DescribeQuorumResponseTopicData] = field(array(DescribeQuorumResponseTopicData))
    nodes: list[Node] = field(array(Node), "2+")
