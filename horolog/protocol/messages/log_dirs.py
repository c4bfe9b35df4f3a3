"""AlterReplicaLogDirs and DescribeLogDirs: which replicas lie in which data folder."""

from horolog.protocol.wire import Message, Struct, array, boolean, field, int16, int32, int64, string


class AlterReplicaLogDirTopic(Struct):
    name: str = field(string)
    partitions: list[int] = field(array(int32))


class AlterReplicaLogDir(Struct):
    path: str = field(string)
    topics: list[AlterReplicaLogDirTopic] = field(array(AlterReplicaLogDirTopic))


class AlterReplicaLogDirsRequest(Message, versions="0-2", flexible="2+"):
    dirs: list[AlterReplicaLogDir] = field(array(AlterReplicaLogDir))


class AlterReplicaLogDirPartitionResult(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)


class AlterReplicaLogDirTopicResult(Struct):
    topic_name: str = field(string)
    partitions: list[AlterReplicaLogDirPartitionResult] = field(array(AlterReplicaLogDirPartitionResult))


class AlterReplicaLogDirsResponse(Message, versions="0-2", flexible="2+"):
    throttle_time_ms: int = field(int32)
    results: list[AlterReplicaLogDirTopicResult] = field(array(AlterReplicaLogDirTopicResult))


class DescribableLogDirTopic(Struct):
    topic: str = field(string)
    partitions: list[int] = field(array(int32))


class DescribeLogDirsRequest(Message, versions="0-5", flexible="2+"):
    """A null list of topics asks for everything."""

    topics: list[DescribableLogDirTopic] | None = field(array(DescribableLogDirTopic), nullable="0+")


class DescribeLogDirsPartition(Struct):
    partition_index: int = field(int32)
    partition_size: int = field(int64)
    offset_lag: int = field(int64)
    is_future_key: bool = field(boolean)


class DescribeLogDirsTopic(Struct):
    name: str = field(string)
    partitions: list[DescribeLogDirsPartition] = field(array(DescribeLogDirsPartition))


class DescribeLogDirsResult(Struct):
    error_code: int = field(int16)
    log_dir: str = field(string)
    topics: list[DescribeLogDirsTopic] = field(array(DescribeLogDirsTopic))
    # -1: unknown; so is usable_bytes
    total_bytes: int = field(int64, "4+", default=-1, ignorable=True)
    usable_bytes: int = field(int64, "4+", default=-1, ignorable=True)
    is_cordoned: bool = field(boolean, "5+", ignorable=True)


class DescribeLogDirsResponse(Message, versions="0-5", flexible="2+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16, "3+", ignorable=True)
    results: list[DescribeLogDirsResult] = field(array(DescribeLogDirsResult))
