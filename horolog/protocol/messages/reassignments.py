"""ElectLeaders, AlterPartitionReassignments and ListPartitionReassignments: the leaders and the replicas of partitions."""

from horolog.protocol.wire import Message, Struct, array, boolean, field, int8, int16, int32, string


class TopicPartitions(Struct):
    topic: str = field(string)
    partitions: list[int] = field(array(int32))


class ElectLeadersRequest(Message, versions="0-2", flexible="2+"):
    election_type: int = field(int8, "1+")
    topic_partitions: list[TopicPartitions] | None = field(array(TopicPartitions), nullable="0+")
    timeout_ms: int = field(int32, default=60000)


class PartitionResult(Struct):
    partition_id: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")


class ReplicaElectionResult(Struct):
    topic: str = field(string)
    partition_result: list[PartitionResult] = field(array(PartitionResult))


class ElectLeadersResponse(Message, versions="0-2", flexible="2+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16, "1+")
    replica_election_results: list[ReplicaElectionResult] = field(array(ReplicaElectionResult))


class ReassignablePartition(Struct):
    partition_index: int = field(int32)
    replicas: list[int] | None = field(array(int32), nullable="0+", default=None)


class ReassignableTopic(Struct):
    name: str = field(string)
    partitions: list[ReassignablePartition] = field(array(ReassignablePartition))


class AlterPartitionReassignmentsRequest(Message, versions="0-1", flexible="0+"):
    timeout_ms: int = field(int32, default=60000)
    allow_replication_factor_change: bool = field(boolean, "1+", default=True)
    topics: list[ReassignableTopic] = field(array(ReassignableTopic))


class ReassignablePartitionResponse(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")


class ReassignableTopicResponse(Struct):
    name: str = field(string)
    partitions: list[ReassignablePartitionResponse] = field(array(ReassignablePartitionResponse))


class AlterPartitionReassignmentsResponse(Message, versions="0-1", flexible="0+"):
    throttle_time_ms: int = field(int32)
    allow_replication_factor_change: bool = field(boolean, "1+", default=True, ignorable=True)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    responses: list[ReassignableTopicResponse] = field(array(ReassignableTopicResponse))


class ListPartitionReassignmentsTopics(Struct):
    name: str = field(string)
    partition_indexes: list[int] = field(array(int32))


class ListPartitionReassignmentsRequest(Message, versions="0", flexible="0+"):
    timeout_ms: int = field(int32, default=60000)
    topics: list[ListPartitionReassignmentsTopics] | None = field(
        array(ListPartitionReassignmentsTopics), nullable="0+", default=None
    )


class OngoingPartitionReassignment(Struct):
    partition_index: int = field(int32)
    replicas: list[int] = field(array(int32))
    adding_replicas: list[int] = field(array(int32))
    removing_replicas: list[int] = field(array(int32))


class OngoingTopicReassignment(Struct):
    name: str = field(string)
    partitions: list[OngoingPartitionReassignment] = field(array(OngoingPartitionReassignment))


class ListPartitionReassignmentsResponse(Message, versions="0", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    topics: list[OngoingTopicReassignment] = field(array(OngoingTopicReassignment))
