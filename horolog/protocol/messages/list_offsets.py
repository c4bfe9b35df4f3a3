"""ListOffsets and OffsetForLeaderEpoch: offsets by time and by leader epoch."""

from horolog.protocol.wire import Message, Struct, array, field, int8, int16, int32, int64, string


class ListOffsetsPartition(Struct):
    partition_index: int = field(int32)
    current_leader_epoch: int = field(int32, "4+", default=-1, ignorable=True)
    # -1 latest, -2 earliest; v7 adds -3 (largest timestamp), v8 -4 (earliest local), v9 -5 (latest tiered),
    # v11 -6 (earliest pending upload)
    timestamp: int = field(int64)
    max_num_offsets: int = field(int32, "0", default=1)


class ListOffsetsTopic(Struct):
    name: str = field(string)
    partitions: list[ListOffsetsPartition] = field(array(ListOffsetsPartition))


class ListOffsetsRequest(Message, versions="0-11", flexible="6+"):
    """v0 asks for up to max_num_offsets segment starts, v1 and later for one offset and its timestamp."""

    replica_id: int = field(int32)
    # bounds what -1 (latest) answers: 0 by the high watermark, 1 by the last stable offset
    isolation_level: int = field(int8, "2+")
    topics: list[ListOffsetsTopic] = field(array(ListOffsetsTopic))
    # for lookups that have to go to remote storage
    timeout_ms: int = field(int32, "10+", ignorable=True)


class ListOffsetsPartitionResponse(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)
    old_style_offsets: list[int] = field(array(int64), "0")
    # -1 where latest or earliest was asked for, or nothing was found
    timestamp: int = field(int64, "1+", default=-1)
    offset: int = field(int64, "1+", default=-1)
    leader_epoch: int = field(int32, "4+", default=-1)


class ListOffsetsTopicResponse(Struct):
    name: str = field(string)
    partitions: list[ListOffsetsPartitionResponse] = field(array(ListOffsetsPartitionResponse))


class ListOffsetsResponse(Message, versions="0-11", flexible="6+"):
    throttle_time_ms: int = field(int32, "2+", ignorable=True)
    topics: list[ListOffsetsTopicResponse] = field(array(ListOffsetsTopicResponse))


class OffsetForLeaderPartition(Struct):
    partition: int = field(int32)
    # -1: do not check
    current_leader_epoch: int = field(int32, "2+", default=-1, ignorable=True)
    leader_epoch: int = field(int32)


class OffsetForLeaderTopic(Struct):
    topic: str = field(string)
    partitions: list[OffsetForLeaderPartition] = field(array(OffsetForLeaderPartition))


class OffsetForLeaderEpochRequest(Message, versions="0-4", flexible="4+"):
    replica_id: int = field(int32, "3+", default=-2, ignorable=True)
    topics: list[OffsetForLeaderTopic] = field(array(OffsetForLeaderTopic))


class EpochEndOffset(Struct):
    error_code: int = field(int16)
    partition: int = field(int32)
    leader_epoch: int = field(int32, "1+", default=-1, ignorable=True)
    end_offset: int = field(int64, default=-1)


class OffsetForLeaderTopicResult(Struct):
    topic: str = field(string)
    partitions: list[EpochEndOffset] = field(array(EpochEndOffset))


class OffsetForLeaderEpochResponse(Message, versions="0-4", flexible="4+"):
    throttle_time_ms: int = field(int32, "2+", ignorable=True)
    topics: list[OffsetForLeaderTopicResult] = field(array(OffsetForLeaderTopicResult))
