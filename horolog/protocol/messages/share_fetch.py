"""ShareFetch and ShareAcknowledge: members of a share group read records and say what became of them (KIP-932)."""

from horolog.protocol.primitives import Records, Unread
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
    # one for all offsets, or one for each: 0 gap, 1 accept, 2 release, 3 reject, 4 renew (v2)
    acknowledge_types: list[int] = field(array(int8))


class ShareFetchPartition(Struct):
    partition_index: int = field(int32)
    acknowledgement_batches: list[AcknowledgementBatch] = field(array(AcknowledgementBatch))


class ShareFetchTopic(Struct):
    topic_id: bytes = field(uuid)
    partitions: list[ShareFetchPartition] = field(array(ShareFetchPartition))


class ShareForgottenTopic(Struct):
    topic_id: bytes = field(uuid)
    partitions: list[int] = field(array(int32))


class ShareFetchRequest(Message, versions="1-2", flexible="0+"):
    """v2 adds strict limits of records (KIP-1206) and renewed locks (KIP-1222)."""

    group_id: str | None = field(string, nullable="0+")
    member_id: str | None = field(string, nullable="0+")
    # 0 opens a session, -1 closes it, and it grows by one with every request between
    share_session_epoch: int = field(int32)
    max_wait_ms: int = field(int32)
    min_bytes: int = field(int32)
    max_bytes: int = field(int32, default=0x7FFF_FFFF)
    # may be exceeded so that a batch is not divided
    max_records: int = field(int32)
    # how many records a batch of acquired ones should have
    batch_size: int = field(int32)
    # 0 whole batches, 1 never more than max_records
    share_acquire_mode: int = field(int8, "2+", ignorable=True)
    is_renew_ack: bool = field(boolean, "2+")
    topics: list[ShareFetchTopic] = field(array(ShareFetchTopic))
    # partitions that leave the session
    forgotten_topics_data: list[ShareForgottenTopic] = field(array(ShareForgottenTopic))


class ShareLeader(Struct):
    leader_id: int = field(int32)
    leader_epoch: int = field(int32)


class AcquiredRecords(Struct):
    first_offset: int = field(int64)
    last_offset: int = field(int64)
    delivery_count: int = field(int16)


class SharePartitionData(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    acknowledge_error_code: int = field(int16)
    acknowledge_error_message: str | None = field(string, nullable="0+")
    current_leader: ShareLeader = field(ShareLeader)
    # more than what was acquired: whole batches of the log
    records: Records | Unread = field(record_set, nullable="0")
    acquired_records: list[AcquiredRecords] = field(array(AcquiredRecords))


class ShareFetchableTopic(Struct):
    topic_id: bytes = field(uuid)
    partitions: list[SharePartitionData] = field(array(SharePartitionData))


class ShareNode(Struct):
    node_id: int = field(int32)
    host: str = field(string)
    port: int = field(int32)
    rack: str | None = field(string, nullable="0+")


class ShareFetchResponse(Message, versions="1-2", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    acquisition_lock_timeout_ms: int = field(int32)
    responses: list[ShareFetchableTopic] = field(array(ShareFetchableTopic))
    # where the leaders named above are
    node_endpoints: list[ShareNode] = field(array(ShareNode))


class AcknowledgePartition(Struct):
    partition_index: int = field(int32)
    acknowledgement_batches: list[AcknowledgementBatch] = field(array(AcknowledgementBatch))


class AcknowledgeTopic(Struct):
    topic_id: bytes = field(uuid)
    partitions: list[AcknowledgePartition] = field(array(AcknowledgePartition))


class ShareAcknowledgeRequest(Message, versions="1-2", flexible="0+"):
    group_id: str | None = field(string, nullable="0+")
    member_id: str | None = field(string, nullable="0+")
    # as of ShareFetch, but that no session is opened so
    share_session_epoch: int = field(int32)
    is_renew_ack: bool = field(boolean, "2+")
    topics: list[AcknowledgeTopic] = field(array(AcknowledgeTopic))


class AcknowledgedPartition(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    current_leader: ShareLeader = field(ShareLeader)


class AcknowledgedTopic(Struct):
    topic_id: bytes = field(uuid)
    partitions: list[AcknowledgedPartition] = field(array(AcknowledgedPartition))


class ShareAcknowledgeResponse(Message, versions="1-2", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    acquisition_lock_timeout_ms: int = field(int32, "2+", ignorable=True)
    responses: list[AcknowledgedTopic] = field(array(AcknowledgedTopic))
    node_endpoints: list[ShareNode] = field(array(ShareNode))
