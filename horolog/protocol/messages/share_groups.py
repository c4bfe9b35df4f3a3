"""ShareGroupHeartbeat and ShareGroupDescribe, and the offsets of share groups: describe, alter and delete (KIP-932)."""

from horolog.protocol.wire import Message, Struct, array, boolean, field, int16, int32, int64, string, uuid


class ShareGroupHeartbeatRequest(Message, versions="1", flexible="0+"):
    group_id: str = field(string)
    member_id: str = field(string)
    # 0 joins, -1 leaves
    member_epoch: int = field(int32)
    rack_id: str | None = field(string, nullable="0+", default=None)
    # null: unchanged since the last heartbeat
    subscribed_topic_names: list[str] | None = field(array(string), nullable="0+", default=None)


class SharePartitionsById(Struct):
    topic_id: bytes = field(uuid)
    partitions: list[int] = field(array(int32))


class ShareAssignmentById(Struct):
    topic_partitions: list[SharePartitionsById] = field(array(SharePartitionsById))


class ShareGroupHeartbeatResponse(Message, versions="1", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+", default=None)
    member_id: str | None = field(string, nullable="0+", default=None)
    member_epoch: int = field(int32)
    heartbeat_interval_ms: int = field(int32)
    assignment: ShareAssignmentById | None = field(ShareAssignmentById, nullable="0+", default=None)


class ShareGroupDescribeRequest(Message, versions="1", flexible="0+"):
    group_ids: list[str] = field(array(string))
    include_authorized_operations: bool = field(boolean)


class SharePartitionsByName(Struct):
    topic_id: bytes = field(uuid)
    topic_name: str = field(string)
    partitions: list[int] = field(array(int32))


class ShareAssignmentByName(Struct):
    topic_partitions: list[SharePartitionsByName] = field(array(SharePartitionsByName))


class DescribedShareMember(Struct):
    member_id: str = field(string)
    rack_id: str | None = field(string, nullable="0+", default=None)
    member_epoch: int = field(int32)
    client_id: str = field(string)
    client_host: str = field(string)
    subscribed_topic_names: list[str] = field(array(string))
    assignment: ShareAssignmentByName = field(ShareAssignmentByName)


class DescribedShareGroup(Struct):
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+", default=None)
    group_id: str = field(string)
    group_state: str = field(string)
    group_epoch: int = field(int32)
    assignment_epoch: int = field(int32)
    assignor_name: str = field(string)
    members: list[DescribedShareMember] = field(array(DescribedShareMember))
    authorized_operations: int = field(int32, default=-2147483648)


class ShareGroupDescribeResponse(Message, versions="1", flexible="0+"):
    throttle_time_ms: int = field(int32)
    groups: list[DescribedShareGroup] = field(array(DescribedShareGroup))


class DescribeShareGroupOffsetsRequestTopic(Struct):
    topic_name: str = field(string)
    partitions: list[int] = field(array(int32))


class DescribeShareGroupOffsetsRequestGroup(Struct):
    group_id: str = field(string)
    # null: all topics of the group
    topics: list[DescribeShareGroupOffsetsRequestTopic] | None = field(
        array(DescribeShareGroupOffsetsRequestTopic), nullable="0+"
    )


class DescribeShareGroupOffsetsRequest(Message, versions="0-1", flexible="0+"):
    groups: list[DescribeShareGroupOffsetsRequestGroup] = field(array(DescribeShareGroupOffsetsRequestGroup))


class DescribeShareGroupOffsetsResponsePartition(Struct):
    partition_index: int = field(int32)
    start_offset: int = field(int64)
    leader_epoch: int = field(int32)
    lag: int = field(int64, "1+", default=-1, ignorable=True)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+", default=None)


class DescribeShareGroupOffsetsResponseTopic(Struct):
    topic_name: str = field(string)
    topic_id: bytes = field(uuid)
    partitions: list[DescribeShareGroupOffsetsResponsePartition] = field(
        array(DescribeShareGroupOffsetsResponsePartition)
    )


class DescribeShareGroupOffsetsResponseGroup(Struct):
    group_id: str = field(string)
    topics: list[DescribeShareGroupOffsetsResponseTopic] = field(array(DescribeShareGroupOffsetsResponseTopic))
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+", default=None)


class DescribeShareGroupOffsetsResponse(Message, versions="0-1", flexible="0+"):
    throttle_time_ms: int = field(int32)
    groups: list[DescribeShareGroupOffsetsResponseGroup] = field(array(DescribeShareGroupOffsetsResponseGroup))


class AlterShareGroupOffsetsRequestPartition(Struct):
    partition_index: int = field(int32)
    start_offset: int = field(int64)


class AlterShareGroupOffsetsRequestTopic(Struct):
    topic_name: str = field(string)
    partitions: list[AlterShareGroupOffsetsRequestPartition] = field(array(AlterShareGroupOffsetsRequestPartition))


class AlterShareGroupOffsetsRequest(Message, versions="0", flexible="0+"):
    group_id: str = field(string)
    topics: list[AlterShareGroupOffsetsRequestTopic] = field(array(AlterShareGroupOffsetsRequestTopic))


class AlterShareGroupOffsetsResponsePartition(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+", default=None)


class AlterShareGroupOffsetsResponseTopic(Struct):
    topic_name: str = field(string)
    topic_id: bytes = field(uuid)
    partitions: list[AlterShareGroupOffsetsResponsePartition] = field(array(AlterShareGroupOffsetsResponsePartition))


class AlterShareGroupOffsetsResponse(Message, versions="0", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+", default=None)
    responses: list[AlterShareGroupOffsetsResponseTopic] = field(array(AlterShareGroupOffsetsResponseTopic))


class DeleteShareGroupOffsetsRequestTopic(Struct):
    topic_name: str = field(string)


class DeleteShareGroupOffsetsRequest(Message, versions="0", flexible="0+"):
    group_id: str = field(string)
    topics: list[DeleteShareGroupOffsetsRequestTopic] = field(array(DeleteShareGroupOffsetsRequestTopic))


class DeleteShareGroupOffsetsResponseTopic(Struct):
    topic_name: str = field(string)
    topic_id: bytes = field(uuid)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+", default=None)


class DeleteShareGroupOffsetsResponse(Message, versions="0", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+", default=None)
    responses: list[DeleteShareGroupOffsetsResponseTopic] = field(array(DeleteShareGroupOffsetsResponseTopic))
