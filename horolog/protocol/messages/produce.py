"""Produce: record sets on their way to a partition, and where they were put."""

from horolog.protocol.primitives import Records
from horolog.protocol.wire import Message, Struct, array, field, int16, int32, int64, record_set, string, uuid


class PartitionProduceData(Struct):
    index: int = field(int32)
    records: Records = field(record_set, nullable="0+")


class TopicProduceData(Struct):
    name: str = field(string, "0-12", ignorable=True)
    topic_id: bytes = field(uuid, "13+", ignorable=True)
    partition_data: list[PartitionProduceData] = field(array(PartitionProduceData))


class ProduceRequest(Message, versions="0-13", flexible="9+"):
    """v0 and v1 carry message sets of magic 0 or 1, v2 adds timestamps (magic 1), v3 and later exactly one batch of magic 2;
    v7 allows zstd, v13 names topics by id.
    """

    transactional_id: str | None = field(string, "3+", nullable="0+")
    # 0: no answer at all, 1: written by the leader, -1: written by all in-sync replicas
    acks: int = field(int16)
    timeout_ms: int = field(int32)
    topic_data: list[TopicProduceData] = field(array(TopicProduceData))


class BatchIndexAndErrorMessage(Struct):
    batch_index: int = field(int32)
    batch_index_error_message: str | None = field(string, nullable="0+")


class LeaderIdAndEpoch(Struct):
    leader_id: int = field(int32, default=-1)
    leader_epoch: int = field(int32, default=-1)


class PartitionProduceResponse(Struct):
    index: int = field(int32)
    error_code: int = field(int16)
    # of the first record, also in a compressed set
    base_offset: int = field(int64)
    # -1 where the topic keeps the times of the producers
    log_append_time_ms: int = field(int64, "2+", default=-1, ignorable=True)
    log_start_offset: int = field(int64, "5+", default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = field(array(BatchIndexAndErrorMessage), "8+", ignorable=True)
    error_message: str | None = field(string, "8+", nullable="0+", ignorable=True)
    current_leader: LeaderIdAndEpoch | None = field(LeaderIdAndEpoch, "10+", tag=0)


class TopicProduceResponse(Struct):
    name: str = field(string, "0-12", ignorable=True)
    topic_id: bytes = field(uuid, "13+", ignorable=True)
    partition_responses: list[PartitionProduceResponse] = field(array(PartitionProduceResponse))


class NodeEndpoint(Struct):
    node_id: int = field(int32)
    host: str = field(string)
    port: int = field(int32)
    rack: str | None = field(string, nullable="0+")


class ProduceResponse(Message, versions="0-13", flexible="9+"):
    """v1 adds the throttle time, v2 the append time, v5 the log start, v8 the records that were refused, v10 the new leader."""

    responses: list[TopicProduceResponse] = field(array(TopicProduceResponse))
    throttle_time_ms: int = field(int32, "1+", ignorable=True)
    node_endpoints: list[NodeEndpoint] = field(array(NodeEndpoint), "10+", tag=0)
