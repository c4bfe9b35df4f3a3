"""OffsetCommit, OffsetFetch and OffsetDelete: how far a group has read."""

from horolog.protocol.wire import Message, Struct, array, boolean, field, int16, int32, int64, string, uuid


class OffsetCommitRequestPartition(Struct):
    partition_index: int = field(int32)
    committed_offset: int = field(int64)
    committed_leader_epoch: int = field(int32, "6+", default=-1, ignorable=True)
    # -1: now
    commit_timestamp: int = field(int64, "1", default=-1)
    committed_metadata: str | None = field(string, nullable="0+")


class OffsetCommitRequestTopic(Struct):
    name: str = field(string, "0-9", ignorable=True)
    topic_id: bytes = field(uuid, "10+", ignorable=True)
    partitions: list[OffsetCommitRequestPartition] = field(array(OffsetCommitRequestPartition))


class OffsetCommitRequest(Message, versions="0-10", flexible="8+"):
    """v0 stored offsets in ZooKeeper; v1 carries a time per partition, v2 to v4 a retention for all of them."""

    group_id: str = field(string)
    # -1 with an empty member id: a commit from outside of the group
    generation_id_or_member_epoch: int = field(int32, "1+", default=-1, ignorable=True)
    member_id: str = field(string, "1+", ignorable=True)
    group_instance_id: str | None = field(string, "7+", nullable="0+")
    # -1: as the broker is set
    retention_time_ms: int = field(int64, "2-4", default=-1, ignorable=True)
    topics: list[OffsetCommitRequestTopic] = field(array(OffsetCommitRequestTopic))


class OffsetCommitResponsePartition(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)


class OffsetCommitResponseTopic(Struct):
    name: str = field(string, "0-9", ignorable=True)
    topic_id: bytes = field(uuid, "10+", ignorable=True)
    partitions: list[OffsetCommitResponsePartition] = field(array(OffsetCommitResponsePartition))


class OffsetCommitResponse(Message, versions="0-10", flexible="8+"):
    throttle_time_ms: int = field(int32, "3+", ignorable=True)
    topics: list[OffsetCommitResponseTopic] = field(array(OffsetCommitResponseTopic))


class OffsetFetchRequestTopic(Struct):
    name: str = field(string)
    partition_indexes: list[int] = field(array(int32))


class OffsetFetchRequestTopics(Struct):
    name: str = field(string, "8-9", ignorable=True)
    topic_id: bytes = field(uuid, "10+", ignorable=True)
    partition_indexes: list[int] = field(array(int32))


class OffsetFetchRequestGroup(Struct):
    group_id: str = field(string)
    member_id: str | None = field(string, "9+", nullable="0+", ignorable=True)
    member_epoch: int = field(int32, "9+", default=-1, ignorable=True)
    topics: list[OffsetFetchRequestTopics] | None = field(array(OffsetFetchRequestTopics), nullable="0+")


class OffsetFetchRequest(Message, versions="0-10", flexible="6+"):
    """v2 asks for all topics with null, v8 asks for many groups at once, v10 names topics by id."""

    group_id: str = field(string, "0-7")
    topics: list[OffsetFetchRequestTopic] | None = field(array(OffsetFetchRequestTopic), "0-7", nullable="2-7")
    groups: list[OffsetFetchRequestGroup] = field(array(OffsetFetchRequestGroup), "8+")
    # wait for open transactions instead of answering an older offset
    require_stable: bool = field(boolean, "7+")


class OffsetFetchResponsePartition(Struct):
    partition_index: int = field(int32)
    # -1: none
    committed_offset: int = field(int64)
    committed_leader_epoch: int = field(int32, "5-7", default=-1, ignorable=True)
    metadata: str | None = field(string, nullable="0+")
    error_code: int = field(int16)


class OffsetFetchResponseTopic(Struct):
    name: str = field(string)
    partitions: list[OffsetFetchResponsePartition] = field(array(OffsetFetchResponsePartition))


class OffsetFetchResponsePartitions(Struct):
    partition_index: int = field(int32)
    # -1: none
    committed_offset: int = field(int64)
    committed_leader_epoch: int = field(int32, default=-1)
    metadata: str | None = field(string, nullable="0+")
    error_code: int = field(int16)


class OffsetFetchResponseTopics(Struct):
    name: str = field(string, "8-9", ignorable=True)
    topic_id: bytes = field(uuid, "10+", ignorable=True)
    partitions: list[OffsetFetchResponsePartitions] = field(array(OffsetFetchResponsePartitions))


class OffsetFetchResponseGroup(Struct):
    group_id: str = field(string)
    topics: list[OffsetFetchResponseTopics] = field(array(OffsetFetchResponseTopics))
    error_code: int = field(int16)


class OffsetFetchResponse(Message, versions="0-10", flexible="6+"):
    throttle_time_ms: int = field(int32, "3+", ignorable=True)
    topics: list[OffsetFetchResponseTopic] = field(array(OffsetFetchResponseTopic), "0-7")
    error_code: int = field(int16, "2-7", ignorable=True)
    groups: list[OffsetFetchResponseGroup] = field(array(OffsetFetchResponseGroup), "8+")


class OffsetDeleteRequestPartition(Struct):
    partition_index: int = field(int32)


class OffsetDeleteRequestTopic(Struct):
    name: str = field(string)
    partitions: list[OffsetDeleteRequestPartition] = field(array(OffsetDeleteRequestPartition))


class OffsetDeleteRequest(Message, versions="0"):
    group_id: str = field(string)
    topics: list[OffsetDeleteRequestTopic] = field(array(OffsetDeleteRequestTopic))


class OffsetDeleteResponsePartition(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)


class OffsetDeleteResponseTopic(Struct):
    name: str = field(string)
    partitions: list[OffsetDeleteResponsePartition] = field(array(OffsetDeleteResponsePartition))


class OffsetDeleteResponse(Message, versions="0"):
    error_code: int = field(int16)
    throttle_time_ms: int = field(int32)
    topics: list[OffsetDeleteResponseTopic] = field(array(OffsetDeleteResponseTopic))
