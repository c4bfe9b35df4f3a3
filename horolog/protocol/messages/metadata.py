"""Metadata, DescribeCluster and DescribeTopicPartitions: the brokers, and which topics live where."""

from horolog.protocol.wire import Message, Struct, array, boolean, field, int8, int16, int32, string, uuid


class MetadataRequestTopic(Struct):
    topic_id: bytes = field(uuid, "10+", ignorable=True)
    name: str | None = field(string, nullable="10+")


class MetadataRequest(Message, versions="0-13", flexible="9+"):
    """v0 asks for all topics with an empty list, v1 and later with null, where an empty list asks for none."""

    topics: list[MetadataRequestTopic] | None = field(array(MetadataRequestTopic), nullable="1+")
    # older versions always create
    allow_auto_topic_creation: bool = field(boolean, "4+", default=True)
    include_cluster_authorized_operations: bool = field(boolean, "8-10")
    include_topic_authorized_operations: bool = field(boolean, "8+")


class MetadataResponseBroker(Struct):
    node_id: int = field(int32)
    host: str = field(string)
    port: int = field(int32)
    rack: str | None = field(string, "1+", nullable="0+", ignorable=True)


class MetadataResponsePartition(Struct):
    error_code: int = field(int16)
    partition_index: int = field(int32)
    leader_id: int = field(int32)
    leader_epoch: int = field(int32, "7+", default=-1, ignorable=True)
    replica_nodes: list[int] = field(array(int32))
    isr_nodes: list[int] = field(array(int32))
    offline_replicas: list[int] = field(array(int32), "5+", ignorable=True)


class MetadataResponseTopic(Struct):
    error_code: int = field(int16)
    # null when an unknown topic was asked for by id
    name: str | None = field(string, nullable="12+")
    topic_id: bytes = field(uuid, "10+", ignorable=True)
    is_internal: bool = field(boolean, "1+", ignorable=True)
    partitions: list[MetadataResponsePartition] = field(array(MetadataResponsePartition), may_be_encoded=True)
    # a bit per AclOperation; the smallest int32 when not asked for
    topic_authorized_operations: int = field(int32, "8+", default=-2147483648)


class MetadataResponse(Message, versions="0-13", flexible="9+"):
    throttle_time_ms: int = field(int32, "3+", ignorable=True)
    brokers: list[MetadataResponseBroker] = field(array(MetadataResponseBroker))
    cluster_id: str | None = field(string, "2+", nullable="0+", ignorable=True)
    controller_id: int = field(int32, "1+", default=-1, ignorable=True)
    topics: list[MetadataResponseTopic] = field(array(MetadataResponseTopic))
    cluster_authorized_operations: int = field(int32, "8-10", default=-2147483648)
    # for the request as a whole: REBOOTSTRAP_REQUIRED
    error_code: int = field(int16, "13+", ignorable=True)


class DescribeClusterRequest(Message, versions="0-2", flexible="0+"):
    include_cluster_authorized_operations: bool = field(boolean)
    # 1 brokers, 2 controllers
    endpoint_type: int = field(int8, "1+", default=1)
    include_fenced_brokers: bool = field(boolean, "2+")


class DescribeClusterBroker(Struct):
    broker_id: int = field(int32)
    host: str = field(string)
    port: int = field(int32)
    rack: str | None = field(string, nullable="0+")
    is_fenced: bool = field(boolean, "2+")


class DescribeClusterResponse(Message, versions="0-2", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    endpoint_type: int = field(int8, "1+", default=1)
    cluster_id: str = field(string)
    controller_id: int = field(int32, default=-1)
    brokers: list[DescribeClusterBroker] = field(array(DescribeClusterBroker))
    cluster_authorized_operations: int = field(int32, default=-2147483648)


class TopicRequest(Struct):
    name: str = field(string)


class Cursor(Struct):
    topic_name: str = field(string)
    partition_index: int = field(int32)


class DescribeTopicPartitionsRequest(Message, versions="0", flexible="0+"):
    topics: list[TopicRequest] = field(array(TopicRequest))
    response_partition_limit: int = field(int32, default=2000)
    cursor: Cursor | None = field(Cursor, nullable="0+", default=None)


class DescribeTopicPartitionsResponsePartition(Struct):
    error_code: int = field(int16)
    partition_index: int = field(int32)
    leader_id: int = field(int32)
    leader_epoch: int = field(int32, default=-1)
    replica_nodes: list[int] = field(array(int32))
    isr_nodes: list[int] = field(array(int32))
    eligible_leader_replicas: list[int] | None = field(array(int32), nullable="0+", default=None)
    last_known_elr: list[int] | None = field(array(int32), nullable="0+", default=None)
    offline_replicas: list[int] = field(array(int32))


class DescribeTopicPartitionsResponseTopic(Struct):
    error_code: int = field(int16)
    name: str | None = field(string, nullable="0+")
    topic_id: bytes = field(uuid)
    is_internal: bool = field(boolean)
    partitions: list[DescribeTopicPartitionsResponsePartition] = field(
        array(DescribeTopicPartitionsResponsePartition), may_be_encoded=True
    )
    topic_authorized_operations: int = field(int32, default=-2147483648)


class DescribeTopicPartitionsResponseCursor(Struct):
    topic_name: str = field(string)
    partition_index: int = field(int32)


class DescribeTopicPartitionsResponse(Message, versions="0", flexible="0+"):
    throttle_time_ms: int = field(int32)
    topics: list[DescribeTopicPartitionsResponseTopic] = field(array(DescribeTopicPartitionsResponseTopic))
    next_cursor: DescribeTopicPartitionsResponseCursor | None = field(
        DescribeTopicPartitionsResponseCursor, nullable="0+", default=None
    )
