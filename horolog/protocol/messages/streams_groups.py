"""StreamsGroupHeartbeat and StreamsGroupDescribe: groups whose members run a topology (KIP-1071)."""

from horolog.protocol.wire import Message, Struct, array, boolean, field, int8, int16, int32, int64, string, uint16


class KeyValue(Struct):
    key: str = field(string)
    value: str = field(string)


class TopicInfo(Struct):
    name: str = field(string)
    partitions: int = field(int32)
    replication_factor: int = field(int16)
    topic_configs: list[KeyValue] = field(array(KeyValue))


class CopartitionGroup(Struct):
    source_topics: list[int] = field(array(int16))
    source_topic_regex: list[int] = field(array(int16))
    repartition_source_topics: list[int] = field(array(int16))


class Subtopology(Struct):
    subtopology_id: str = field(string)
    source_topics: list[str] = field(array(string))
    source_topic_regex: list[str] = field(array(string))
    state_changelog_topics: list[TopicInfo] = field(array(TopicInfo))
    repartition_sink_topics: list[str] = field(array(string))
    repartition_source_topics: list[TopicInfo] = field(array(TopicInfo))
    copartition_groups: list[CopartitionGroup] = field(array(CopartitionGroup))


class Topology(Struct):
    epoch: int = field(int32)
    subtopologies: list[Subtopology] = field(array(Subtopology))


class TaskIds(Struct):
    subtopology_id: str = field(string)
    partitions: list[int] = field(array(int32))


class Endpoint(Struct):
    host: str = field(string)
    port: int = field(uint16)


class TaskOffset(Struct):
    subtopology_id: str = field(string)
    partition: int = field(int32)
    offset: int = field(int64)


class StreamsGroupHeartbeatRequest(Message, versions="0", flexible="0+"):
    group_id: str = field(string)
    member_id: str = field(string)
    member_epoch: int = field(int32)
    endpoint_information_epoch: int = field(int32)
    instance_id: str | None = field(string, nullable="0+")
    rack_id: str | None = field(string, nullable="0+")
    rebalance_timeout_ms: int = field(int32, default=-1)
    topology: Topology | None = field(Topology, nullable="0+", default=None)
    active_tasks: list[TaskIds] | None = field(array(TaskIds), nullable="0+", default=None)
    standby_tasks: list[TaskIds] | None = field(array(TaskIds), nullable="0+", default=None)
    warmup_tasks: list[TaskIds] | None = field(array(TaskIds), nullable="0+", default=None)
    process_id: str | None = field(string, nullable="0+")
    user_endpoint: Endpoint | None = field(Endpoint, nullable="0+", default=None)
    client_tags: list[KeyValue] | None = field(array(KeyValue), nullable="0+", default=None)
    task_offsets: list[TaskOffset] | None = field(array(TaskOffset), nullable="0+", default=None)
    task_end_offsets: list[TaskOffset] | None = field(array(TaskOffset), nullable="0+", default=None)
    shutdown_application: bool = field(boolean)


class Status(Struct):
    status_code: int = field(int8)
    status_detail: str = field(string)


class StreamsGroupHeartbeatResponseTaskIds(Struct):
    subtopology_id: str = field(string)
    partitions: list[int] = field(array(int32))


class StreamsGroupHeartbeatResponseEndpoint(Struct):
    host: str = field(string)
    port: int = field(uint16)


class TopicPartition(Struct):
    topic: str = field(string)
    partitions: list[int] = field(array(int32))


class EndpointToPartitions(Struct):
    user_endpoint: StreamsGroupHeartbeatResponseEndpoint = field(StreamsGroupHeartbeatResponseEndpoint)
    active_partitions: list[TopicPartition] = field(array(TopicPartition))
    standby_partitions: list[TopicPartition] = field(array(TopicPartition))


class StreamsGroupHeartbeatResponse(Message, versions="0", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    member_id: str = field(string)
    member_epoch: int = field(int32)
    heartbeat_interval_ms: int = field(int32)
    acceptable_recovery_lag: int = field(int32)
    task_offset_interval_ms: int = field(int32)
    status: list[Status] | None = field(array(Status), nullable="0+")
    active_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = field(
        array(StreamsGroupHeartbeatResponseTaskIds), nullable="0+", default=None
    )
    standby_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = field(
        array(StreamsGroupHeartbeatResponseTaskIds), nullable="0+", default=None
    )
    warmup_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = field(
        array(StreamsGroupHeartbeatResponseTaskIds), nullable="0+", default=None
    )
    endpoint_information_epoch: int = field(int32)
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = field(
        array(EndpointToPartitions), nullable="0+", default=None
    )


class StreamsGroupDescribeRequest(Message, versions="0", flexible="0+"):
    group_ids: list[str] = field(array(string))
    include_authorized_operations: bool = field(boolean)


class StreamsGroupDescribeResponseKeyValue(Struct):
    key: str = field(string)
    value: str = field(string)


class StreamsGroupDescribeResponseTopicInfo(Struct):
    name: str = field(string)
    partitions: int = field(int32)
    replication_factor: int = field(int16)
    topic_configs: list[StreamsGroupDescribeResponseKeyValue] = field(array(StreamsGroupDescribeResponseKeyValue))


class StreamsGroupDescribeResponseSubtopology(Struct):
    subtopology_id: str = field(string)
    source_topics: list[str] = field(array(string))
    repartition_sink_topics: list[str] = field(array(string))
    state_changelog_topics: list[StreamsGroupDescribeResponseTopicInfo] = field(
        array(StreamsGroupDescribeResponseTopicInfo)
    )
    repartition_source_topics: list[StreamsGroupDescribeResponseTopicInfo] = field(
        array(StreamsGroupDescribeResponseTopicInfo)
    )


class StreamsGroupDescribeResponseTopology(Struct):
    epoch: int = field(int32)
    subtopologies: list[StreamsGroupDescribeResponseSubtopology] | None = field(
        array(StreamsGroupDescribeResponseSubtopology), nullable="0+", default=None
    )


class StreamsGroupDescribeResponseEndpoint(Struct):
    host: str = field(string)
    port: int = field(uint16)


class StreamsGroupDescribeResponseTaskOffset(Struct):
    subtopology_id: str = field(string)
    partition: int = field(int32)
    offset: int = field(int64)


class StreamsGroupDescribeResponseTaskIds(Struct):
    subtopology_id: str = field(string)
    partitions: list[int] = field(array(int32))


class Assignment(Struct):
    active_tasks: list[StreamsGroupDescribeResponseTaskIds] = field(array(StreamsGroupDescribeResponseTaskIds))
    standby_tasks: list[StreamsGroupDescribeResponseTaskIds] = field(array(StreamsGroupDescribeResponseTaskIds))
    warmup_tasks: list[StreamsGroupDescribeResponseTaskIds] = field(array(StreamsGroupDescribeResponseTaskIds))


class Member(Struct):
    member_id: str = field(string)
    member_epoch: int = field(int32)
    instance_id: str | None = field(string, nullable="0+")
    rack_id: str | None = field(string, nullable="0+")
    client_id: str = field(string)
    client_host: str = field(string)
    topology_epoch: int = field(int32)
    process_id: str = field(string)
    user_endpoint: StreamsGroupDescribeResponseEndpoint | None = field(
        StreamsGroupDescribeResponseEndpoint, nullable="0+", default=None
    )
    client_tags: list[StreamsGroupDescribeResponseKeyValue] = field(array(StreamsGroupDescribeResponseKeyValue))
    task_offsets: list[StreamsGroupDescribeResponseTaskOffset] = field(array(StreamsGroupDescribeResponseTaskOffset))
    task_end_offsets: list[StreamsGroupDescribeResponseTaskOffset] = field(
        array(StreamsGroupDescribeResponseTaskOffset)
    )
    assignment: Assignment = field(Assignment)
    target_assignment: Assignment = field(Assignment)
    is_classic: bool = field(boolean)


class DescribedGroup(Struct):
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    group_id: str = field(string)
    group_state: str = field(string)
    group_epoch: int = field(int32)
    assignment_epoch: int = field(int32)
    topology: StreamsGroupDescribeResponseTopology | None = field(
        StreamsGroupDescribeResponseTopology, nullable="0+", default=None
    )
    members: list[Member] = field(array(Member))
    authorized_operations: int = field(int32, default=-2147483648)


class StreamsGroupDescribeResponse(Message, versions="0", flexible="0+"):
    throttle_time_ms: int = field(int32)
    groups: list[DescribedGroup] = field(array(DescribedGroup))
