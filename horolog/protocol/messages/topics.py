"""CreateTopics, DeleteTopics, CreatePartitions and DeleteRecords."""

from horolog.protocol.wire import Message, Struct, array, boolean, field, int8, int16, int32, int64, string, uuid


class CreatableReplicaAssignment(Struct):
    partition_index: int = field(int32)
    broker_ids: list[int] = field(array(int32))


class CreatableTopicConfig(Struct):
    name: str = field(string)
    value: str | None = field(string, nullable="0+")


class CreatableTopic(Struct):
    name: str = field(string)
    num_partitions: int = field(int32)
    replication_factor: int = field(int16)
    # either these or counts
    assignments: list[CreatableReplicaAssignment] = field(array(CreatableReplicaAssignment))
    configs: list[CreatableTopicConfig] = field(array(CreatableTopicConfig))


class CreateTopicsRequest(Message, versions="0-7", flexible="5+"):
    """From v4 on -1 partitions or replicas stand for the default of the broker."""

    topics: list[CreatableTopic] = field(array(CreatableTopic))
    timeout_ms: int = field(int32, default=60000)
    # check and answer, create nothing
    validate_only: bool = field(boolean, "1+")


class CreatableTopicConfigs(Struct):
    name: str = field(string)
    value: str | None = field(string, nullable="0+")
    read_only: bool = field(boolean)
    config_source: int = field(int8, default=-1)
    is_sensitive: bool = field(boolean)


class CreatableTopicResult(Struct):
    name: str = field(string)
    topic_id: bytes = field(uuid, "7+", ignorable=True)
    error_code: int = field(int16)
    error_message: str | None = field(string, "1+", nullable="0+", ignorable=True)
    topic_config_error_code: int = field(int16, "5+", tag=0, ignorable=True)
    num_partitions: int = field(int32, "5+", default=-1, ignorable=True)
    replication_factor: int = field(int16, "5+", default=-1, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = field(
        array(CreatableTopicConfigs), "5+", nullable="0+", ignorable=True
    )


class CreateTopicsResponse(Message, versions="0-7", flexible="5+"):
    throttle_time_ms: int = field(int32, "2+", ignorable=True)
    topics: list[CreatableTopicResult] = field(array(CreatableTopicResult))


class DeleteTopicState(Struct):
    name: str | None = field(string, nullable="0+")
    topic_id: bytes = field(uuid)


class DeleteTopicsRequest(Message, versions="0-6", flexible="4+"):
    """From v6 on topics are named by name or by id."""

    topics: list[DeleteTopicState] = field(array(DeleteTopicState), "6+")
    topic_names: list[str] = field(array(string), "0-5", ignorable=True)
    timeout_ms: int = field(int32)


class DeletableTopicResult(Struct):
    name: str | None = field(string, nullable="6+")
    topic_id: bytes = field(uuid, "6+", ignorable=True)
    error_code: int = field(int16)
    error_message: str | None = field(string, "5+", nullable="0+", ignorable=True)


class DeleteTopicsResponse(Message, versions="0-6", flexible="4+"):
    throttle_time_ms: int = field(int32, "1+", ignorable=True)
    responses: list[DeletableTopicResult] = field(array(DeletableTopicResult))


class CreatePartitionsAssignment(Struct):
    broker_ids: list[int] = field(array(int32))


class CreatePartitionsTopic(Struct):
    name: str = field(string)
    # in all, not in addition
    count: int = field(int32)
    assignments: list[CreatePartitionsAssignment] | None = field(array(CreatePartitionsAssignment), nullable="0+")


class CreatePartitionsRequest(Message, versions="0-3", flexible="2+"):
    topics: list[CreatePartitionsTopic] = field(array(CreatePartitionsTopic))
    timeout_ms: int = field(int32)
    validate_only: bool = field(boolean)


class CreatePartitionsTopicResult(Struct):
    name: str = field(string)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")


class CreatePartitionsResponse(Message, versions="0-3", flexible="2+"):
    throttle_time_ms: int = field(int32)
    results: list[CreatePartitionsTopicResult] = field(array(CreatePartitionsTopicResult))


class DeleteRecordsPartition(Struct):
    partition_index: int = field(int32)
    # -1: the high watermark
    offset: int = field(int64)


class DeleteRecordsTopic(Struct):
    name: str = field(string)
    partitions: list[DeleteRecordsPartition] = field(array(DeleteRecordsPartition))


class DeleteRecordsRequest(Message, versions="0-2", flexible="2+"):
    topics: list[DeleteRecordsTopic] = field(array(DeleteRecordsTopic))
    timeout_ms: int = field(int32)


class DeleteRecordsPartitionResult(Struct):
    partition_index: int = field(int32)
    # the log start of the slowest replica
    low_watermark: int = field(int64)
    error_code: int = field(int16)


class DeleteRecordsTopicResult(Struct):
    name: str = field(string)
    partitions: list[DeleteRecordsPartitionResult] = field(array(DeleteRecordsPartitionResult))


class DeleteRecordsResponse(Message, versions="0-2", flexible="2+"):
    throttle_time_ms: int = field(int32)
    topics: list[DeleteRecordsTopicResult] = field(array(DeleteRecordsTopicResult))
