"""StreamsGroupHeartbeat and StreamsGroupDescribe: groups whose members run the tasks of a topology (KIP-1071)."""

from horolog.protocol.wire import Message, Struct, array, boolean, field, int8, int16, int32, int64, string, uint16


class StreamsKeyValue(Struct):
    key: str = field(string)
    value: str = field(string)


class StreamsTopicInfo(Struct):
    name: str = field(string)
    # 0: the broker derives it from the source topics; always 0 for changelogs
    partitions: int = field(int32)
    # 0: the broker's default
    replication_factor: int = field(int16)
    topic_configs: list[StreamsKeyValue] = field(array(StreamsKeyValue))


class StreamsEndpoint(Struct):
    host: str = field(string)
    port: int = field(uint16)


class StreamsTaskOffset(Struct):
    subtopology_id: str = field(string)
    partition: int = field(int32)
    offset: int = field(int64)


class StreamsTaskIds(Struct):
    subtopology_id: str = field(string)
    partitions: list[int] = field(array(int32))


class StreamsCopartitionGroup(Struct):
    """Topics with equal numbers of partitions, as indexes into the arrays of their subtopology."""

    source_topics: list[int] = field(array(int16))
    source_topic_regex: list[int] = field(array(int16))
    repartition_source_topics: list[int] = field(array(int16))


class StreamsSubtopology(Struct):
    subtopology_id: str = field(string)
    source_topics: list[str] = field(array(string))
    source_topic_regex: list[str] = field(array(string))
    state_changelog_topics: list[StreamsTopicInfo] = field(array(StreamsTopicInfo))
    repartition_sink_topics: list[str] = field(array(string))
    repartition_source_topics: list[StreamsTopicInfo] = field(array(StreamsTopicInfo))
    copartition_groups: list[StreamsCopartitionGroup] = field(array(StreamsCopartitionGroup))


class StreamsTopology(Struct):
    epoch: int = field(int32)
    subtopologies: list[StreamsSubtopology] = field(array(StreamsSubtopology))


class StreamsGroupHeartbeatRequest(Message, versions="0", flexible="0+"):
    group_id: str = field(string)
    member_id: str = field(string)
    # 0 joins, -1 leaves, -2 leaves for a while
    member_epoch: int = field(int32)
    endpoint_information_epoch: int = field(int32)
    # null, or -1, in the following fields: unchanged since the last heartbeat
    instance_id: str | None = field(string, nullable="0+", default=None)
    rack_id: str | None = field(string, nullable="0+", default=None)
    rebalance_timeout_ms: int = field(int32, default=-1)
    topology: StreamsTopology | None = field(StreamsTopology, nullable="0+", default=None)
    active_tasks: list[StreamsTaskIds] | None = field(array(StreamsTaskIds), nullable="0+", default=None)
    standby_tasks: list[StreamsTaskIds] | None = field(array(StreamsTaskIds), nullable="0+", default=None)
    warmup_tasks: list[StreamsTaskIds] | None = field(array(StreamsTaskIds), nullable="0+", default=None)
    process_id: str | None = field(string, nullable="0+", default=None)
    user_endpoint: StreamsEndpoint | None = field(StreamsEndpoint, nullable="0+", default=None)
    client_tags: list[StreamsKeyValue] | None = field(array(StreamsKeyValue), nullable="0+", default=None)
    task_offsets: list[StreamsTaskOffset] | None = field(array(StreamsTaskOffset), nullable="0+", default=None)
    task_end_offsets: list[StreamsTaskOffset] | None = field(array(StreamsTaskOffset), nullable="0+", default=None)
    shutdown_application: bool = field(boolean)


class StreamsStatus(Struct):
    status_code: int = field(int8)
    status_detail: str = field(string)


class StreamsTopicPartitions(Struct):
    topic: str = field(string)
    partitions: list[int] = field(array(int32))


class StreamsEndpointPartitions(Struct):
    user_endpoint: StreamsEndpoint = field(StreamsEndpoint)
    active_partitions: list[StreamsTopicPartitions] = field(array(StreamsTopicPartitions))
    standby_partitions: list[StreamsTopicPartitions] = field(array(StreamsTopicPartitions))


class StreamsGroupHeartbeatResponse(Message, versions="0", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+", default=None)
    member_id: str = field(string)
    member_epoch: int = field(int32)
    heartbeat_interval_ms: int = field(int32)
    acceptable_recovery_lag: int = field(int32)
    task_offset_interval_ms: int = field(int32)
    status: list[StreamsStatus] | None = field(array(StreamsStatus), nullable="0+")
    # null: unchanged since the last heartbeat
    active_tasks: list[StreamsTaskIds] | None = field(array(StreamsTaskIds), nullable="0+", default=None)
    standby_tasks: list[StreamsTaskIds] | None = field(array(StreamsTaskIds), nullable="0+", default=None)
    warmup_tasks: list[StreamsTaskIds] | None = field(array(StreamsTaskIds), nullable="0+", default=None)
    endpoint_information_epoch: int = field(int32)
    partitions_by_user_endpoint: list[StreamsEndpointPartitions] | None = field(
        array(StreamsEndpointPartitions), nullable="0+", default=None
    )


class StreamsGroupDescribeRequest(Message, versions="0", flexible="0+"):
    group_ids: list[str] = field(array(string))
    include_authorized_operations: bool = field(boolean)


class DescribedStreamsSubtopology(Struct):
    subtopology_id: str = field(string)
    source_topics: list[str] = field(array(string))
    repartition_sink_topics: list[str] = field(array(string))
    state_changelog_topics: list[StreamsTopicInfo] = field(array(StreamsTopicInfo))
    repartition_source_topics: list[StreamsTopicInfo] = field(array(StreamsTopicInfo))


class DescribedStreamsTopology(Struct):
    epoch: int = field(int32)
    # null: source topics are missing, or numbers of partitions do not fit
    subtopologies: list[DescribedStreamsSubtopology] | None = field(
        array(DescribedStreamsSubtopology), nullable="0+", default=None
    )


class StreamsTasks(Struct):
    active_tasks: list[StreamsTaskIds] = field(array(StreamsTaskIds))
    standby_tasks: list[StreamsTaskIds] = field(array(StreamsTaskIds))
    warmup_tasks: list[StreamsTaskIds] = field(array(StreamsTaskIds))


class DescribedStreamsMember(Struct):
    member_id: str = field(string)
    member_epoch: int = field(int32)
    instance_id: str | None = field(string, nullable="0+", default=None)
    rack_id: str | None = field(string, nullable="0+", default=None)
    client_id: str = field(string)
    client_host: str = field(string)
    topology_epoch: int = field(int32)
    process_id: str = field(string)
    user_endpoint: StreamsEndpoint | None = field(StreamsEndpoint, nullable="0+", default=None)
    client_tags: list[StreamsKeyValue] = field(array(StreamsKeyValue))
    task_offsets: list[StreamsTaskOffset] = field(array(StreamsTaskOffset))
    task_end_offsets: list[StreamsTaskOffset] = field(array(StreamsTaskOffset))
    assignment: StreamsTasks = field(StreamsTasks)
    target_assignment: StreamsTasks = field(StreamsTasks)
    is_classic: bool = field(boolean)


class DescribedStreamsGroup(Struct):
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+", default=None)
    group_id: str = field(string)
    group_state: str = field(string)
    group_epoch: int = field(int32)
    assignment_epoch: int = field(int32)
    topology: DescribedStreamsTopology | None = field(DescribedStreamsTopology, nullable="0+", default=None)
    members: list[DescribedStreamsMember] = field(array(DescribedStreamsMember))
    authorized_operations: int = field(int32, default=-2147483648)


class StreamsGroupDescribeResponse(Message, versions="0", flexible="0+"):
    throttle_time_ms: int = field(int32)
    groups: list[DescribedStreamsGroup] = field(array(DescribedStreamsGroup))
