"""ShareFetch and ShareAcknowledge: records handed out one by one and acknowledged (KIP-932)."""

from horolog.protocol.primitives import Records
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
    record_set,
    string,
    uuid,
)


class AcknowledgementBatch(Struct):
    first_offset: int = field(int64)
    last_offset: int = field(int64)
    acknowledge_types: list[int] = field(array(int8))


class FetchPartition(Struct):
    partition_index: int = field(int32)
    # up to v2 a message that does not fit is cut off, later it is sent whole when it is the first
    partition_max_bytes: int = field(int32, "0")
    acknowledgement_batches: list[AcknowledgementBatch] = field(array(AcknowledgementBatch))


class FetchTopic(Struct):
    topic_id: bytes = field(uuid)
    partitions: list[FetchPartition] = field(array(FetchPartition))


class ForgottenTopic(Struct):
    topic_id: bytes = field(uuid)
    partitions: list[int] = field(array(int32))


class ShareFetchRequest(Message, versions="0-2", flexible="0+"):
    """v0 was for early access and limits bytes per partition, v1 and later limit records."""

    group_id: str | None = field(string, nullable="0+")
    member_id: str | None = field(string, nullable="0+")
    # 0 opens a session, -1 closes it
    share_session_epoch: int = field(int32)
    max_wait_ms: int = field(int32)
    min_bytes: int = field(int32)
    max_bytes: int = field(int32, default=0x7FFF_FFFF)
    max_records: int = field(int32, "1+")
    batch_size: int = field(int32, "1+")
    share_acquire_mode: int = field(int8, "2+", ignorable=True)
    is_renew_ack: bool = field(boolean, "2+")
    topics: list[FetchTopic] = field(array(FetchTopic))
    forgotten_topics_data: list[ForgottenTopic] = field(array(ForgottenTopic))


class LeaderIdAndEpoch(Struct):
    leader_id: int = field(int32)
    leader_epoch: int = field(int32)


class AcquiredRecords(Struct):
    first_offset: int = field(int64)
    last_offset: int = field(int64)
    delivery_count: int = field(int16)


class PartitionData(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    acknowledge_error_code: int = field(int16)
    acknowledge_error_message: str | None = field(string, nullable="0+")
    current_leader: LeaderIdAndEpoch = field(LeaderIdAndEpoch)
    records: Records = field(record_set, nullable="0")
    acquired_records: list[AcquiredRecords] = field(array(AcquiredRecords))


class ShareFetchableTopicResponse(Struct):
    topic_id: bytes = field(uuid)
    partitions: list[PartitionData] = field(array(PartitionData))


class NodeEndpoint(Struct):
    node_id: int = field(int32)
    host: str = field(string)
    port: int = field(int32)
    rack: str | None = field(string, nullable="0+")


class ShareFetchResponse(Message, versions="0-2", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    acquisition_lock_timeout_ms: int = field(int32, "1+")
    responses: list[ShareFetchableTopicResponse] = field(array(ShareFetchableTopicResponse))
    node_endpoints: list[NodeEndpoint] = field(array(NodeEndpoint))


class ShareAcknowledgeRequestAcknowledgementBatch(Struct):
    first_offset: int = field(int64)
    last_offset: int = field(int64)
    acknowledge_types: list[int] = field(array(int8))


class AcknowledgePartition(Struct):
    partition_index: int = field(int32)
    acknowledgement_batches: list[ShareAcknowledgeRequestAcknowledgementBatch] = field(
        array(ShareAcknowledgeRequestAcknowledgementBatch)
    )


class AcknowledgeTopic(Struct):
    topic_id: bytes = field(uuid)
    partitions: list[AcknowledgePartition] = field(array(AcknowledgePartition))


class ShareAcknowledgeRequest(Message, versions="0-2", flexible="0+"):
    group_id: str | None = field(string, nullable="0+")
    member_id: str | None = field(string, nullable="0+")
    share_session_epoch: int = field(int32)
    is_renew_ack: bool = field(boolean, "2+")
    topics: list[AcknowledgeTopic] = field(array(AcknowledgeTopic))


class ShareAcknowledgeResponseLeaderIdAndEpoch(Struct):
    leader_id: int = field(int32)
    leader_epoch: int = field(int32)


class ShareAcknowledgeResponsePartitionData(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    current_leader: ShareAcknowledgeResponseLeaderIdAndEpoch = field(ShareAcknowledgeResponseLeaderIdAndEpoch)


class ShareAcknowledgeTopicResponse(Struct):
    topic_id: bytes = field(uuid)
    partitions: list[ShareAcknowledgeResponsePartitionData] = field(array(ShareAcknowledgeResponsePartitionData))


class ShareAcknowledgeResponseNodeEndpoint(Struct):
    node_id: int = field(int32)
    host: str = field(string)
    port: int = field(int32)
    rack: str | None = field(string, nullable="0+")


class ShareAcknowledgeResponse(Message, versions="0-2", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    acquisition_lock_timeout_ms: int = field(int32, "2+", ignorable=True)
    responses: list[ShareAcknowledgeTopicResponse] = field(array(ShareAcknowledgeTopicResponse))
    node_endpoints: list[ShareAcknowledgeResponseNodeEndpoint] = field(array(ShareAcknowledgeResponseNodeEndpoint))
