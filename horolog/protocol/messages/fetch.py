"""Fetch: record sets on their way from a partition, with or without a session between broker and client."""

from horolog.protocol.primitives import Records
from horolog.protocol.wire import Message, Struct, array, field, int8, int16, int32, int64, record_set, string, uuid


class ReplicaState(Struct):
    replica_id: int = field(int32, default=-1)
    replica_epoch: int = field(int64, default=-1)


class FetchPartition(Struct):
    partition: int = field(int32)
    current_leader_epoch: int = field(int32, "9+", default=-1, ignorable=True)
    fetch_offset: int = field(int64)
    last_fetched_epoch: int = field(int32, "12+", default=-1)
    # of a follower; consumers send -1
    log_start_offset: int = field(int64, "5+", default=-1, ignorable=True)
    # up to v2 a message that does not fit is cut off, later it is sent whole when it is the first
    partition_max_bytes: int = field(int32)
    replica_directory_id: bytes = field(uuid, "17+", tag=0, ignorable=True)
    high_watermark: int = field(int64, "18+", default=0x7FFF_FFFF_FFFF_FFFF, tag=1, ignorable=True)


class FetchTopic(Struct):
    topic: str = field(string, "0-12", ignorable=True)
    topic_id: bytes = field(uuid, "13+", ignorable=True)
    partitions: list[FetchPartition] = field(array(FetchPartition))


class ForgottenTopic(Struct):
    topic: str = field(string, "7-12", ignorable=True)
    topic_id: bytes = field(uuid, "13+", ignorable=True)
    partitions: list[int] = field(array(int32))


class FetchRequest(Message, versions="0-18", flexible="12+"):
    """v2 is answered with magic 1 at most, v3 and older never with magic 2; v3 bounds the whole answer and makes the order of the
    partitions matter; v7 adds sessions, v10 may be answered with zstd, v13 names topics by id.
    """

    cluster_id: str | None = field(string, "12+", nullable="0+", tag=0, ignorable=True)
    # -1 for consumers; brokers use replica_state from v15 on
    replica_id: int = field(int32, "0-14", default=-1)
    replica_state: ReplicaState | None = field(ReplicaState, "15+", tag=1)
    max_wait_ms: int = field(int32)
    min_bytes: int = field(int32)
    # a soft bound: from v3 on the first batch found is sent whole
    max_bytes: int = field(int32, "3+", default=0x7FFF_FFFF, ignorable=True)
    # 0: everything up to the high watermark, 1: up to the last stable offset
    isolation_level: int = field(int8, "4+", ignorable=True)
    # 0 asks for a new session when session_epoch is 0
    session_id: int = field(int32, "7+", ignorable=True)
    # -1: no session; 0: a full request that begins one; above: only what changed
    session_epoch: int = field(int32, "7+", default=-1, ignorable=True)
    topics: list[FetchTopic] = field(array(FetchTopic))
    # partitions that leave the session
    forgotten_topics_data: list[ForgottenTopic] = field(array(ForgottenTopic), "7+")
    rack_id: str = field(string, "11+", ignorable=True)


class EpochEndOffset(Struct):
    epoch: int = field(int32, default=-1)
    end_offset: int = field(int64, default=-1)


class LeaderIdAndEpoch(Struct):
    leader_id: int = field(int32, default=-1)
    leader_epoch: int = field(int32, default=-1)


class SnapshotId(Struct):
    end_offset: int = field(int64, default=-1)
    epoch: int = field(int32, default=-1)


class AbortedTransaction(Struct):
    producer_id: int = field(int64)
    first_offset: int = field(int64)


class PartitionData(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)
    high_watermark: int = field(int64)
    # -1 in answers with an error
    last_stable_offset: int = field(int64, "4+", default=-1, ignorable=True)
    log_start_offset: int = field(int64, "5+", default=-1, ignorable=True)
    diverging_epoch: EpochEndOffset | None = field(EpochEndOffset, "12+", tag=0)
    current_leader: LeaderIdAndEpoch | None = field(LeaderIdAndEpoch, "12+", tag=1)
    snapshot_id: SnapshotId | None = field(SnapshotId, "12+", tag=2)
    # null for readers of uncommitted data
    aborted_transactions: list[AbortedTransaction] | None = field(
        array(AbortedTransaction), "4+", nullable="0+", ignorable=True
    )
    # -1: keep on reading here
    preferred_read_replica: int = field(int32, "11+", default=-1)
    records: Records = field(record_set, nullable="0+")


class FetchableTopicResponse(Struct):
    topic: str = field(string, "0-12", ignorable=True)
    topic_id: bytes = field(uuid, "13+", ignorable=True)
    partitions: list[PartitionData] = field(array(PartitionData))


class NodeEndpoint(Struct):
    node_id: int = field(int32)
    host: str = field(string)
    port: int = field(int32)
    rack: str | None = field(string, nullable="0+")


class FetchResponse(Message, versions="0-18", flexible="12+"):
    """v7 adds an error for the request as a whole (sessions); v4 the aborted transactions."""

    throttle_time_ms: int = field(int32, "1+", ignorable=True)
    error_code: int = field(int16, "7+", ignorable=True)
    session_id: int = field(int32, "7+")
    responses: list[FetchableTopicResponse] = field(array(FetchableTopicResponse))
    node_endpoints: list[NodeEndpoint] = field(array(NodeEndpoint), "16+", tag=0)
