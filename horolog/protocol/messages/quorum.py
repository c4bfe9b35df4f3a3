"""The metadata quorum, its voters, feature levels and the registration of brokers, as admin tools see them."""

from horolog.protocol.wire import (
    Message,
    Struct,
    array,
    boolean,
    field,
    int8,
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


class FeatureUpdateKey(Struct):
    feature: str = field(string)
    max_version_level: int = field(int16)
    allow_downgrade: bool = field(boolean, "0")
    upgrade_type: int = field(int8, "1+", default=1)


class UpdateFeaturesRequest(Message, versions="0-2", flexible="0+"):
    timeout_ms: int = field(int32, default=60000)
    feature_updates: list[FeatureUpdateKey] = field(array(FeatureUpdateKey))
    validate_only: bool = field(boolean, "1+")


class UpdatableFeatureResult(Struct):
    feature: str = field(string)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")


class UpdateFeaturesResponse(Message, versions="0-2", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    results: list[UpdatableFeatureResult] = field(array(UpdatableFeatureResult), "0-1", ignorable=True)


class UnregisterBrokerRequest(Message, versions="0", flexible="0+"):
    broker_id: int = field(int32)


class UnregisterBrokerResponse(Message, versions="0", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")


class AddRaftVoterRequestListener(Struct):
    name: str = field(string)
    host: str = field(string)
    port: int = field(uint16)


class AddRaftVoterRequest(Message, versions="0-1", flexible="0+"):
    cluster_id: str | None = field(string, nullable="0+")
    timeout_ms: int = field(int32)
    voter_id: int = field(int32)
    voter_directory_id: bytes = field(uuid)
    listeners: list[AddRaftVoterRequestListener] = field(array(AddRaftVoterRequestListener))
    ack_when_committed: bool = field(boolean, "1+", default=True)


class AddRaftVoterResponse(Message, versions="0-1", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")


class RemoveRaftVoterRequest(Message, versions="0", flexible="0+"):
    cluster_id: str | None = field(string, nullable="0+")
    voter_id: int = field(int32)
    voter_directory_id: bytes = field(uuid)


class RemoveRaftVoterResponse(Message, versions="0", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
