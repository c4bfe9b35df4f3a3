"""Producer ids, the steps of a transaction, its markers, and looking at producers and transactions."""

from horolog.protocol.wire import Message, Struct, array, boolean, field, int8, int16, int32, int64, string


class InitProducerIdRequest(Message, versions="0-6", flexible="2+"):
    """A null transactional id asks for an idempotent producer outside of transactions."""

    transactional_id: str | None = field(string, nullable="0+")
    transaction_timeout_ms: int = field(int32)
    # -1 unless a producer recovers with its old id and epoch
    producer_id: int = field(int64, "3+", default=-1)
    producer_epoch: int = field(int16, "3+", default=-1)
    enable2_pc: bool = field(boolean, "6+")
    keep_prepared_txn: bool = field(boolean, "6+")


class InitProducerIdResponse(Message, versions="0-6", flexible="2+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    producer_id: int = field(int64, default=-1)
    producer_epoch: int = field(int16)
    ongoing_txn_producer_id: int = field(int64, "6+", default=-1)
    ongoing_txn_producer_epoch: int = field(int16, "6+", default=-1)


class AddPartitionsToTxnTopic(Struct):
    name: str = field(string)
    partitions: list[int] = field(array(int32))


class AddPartitionsToTxnTransaction(Struct):
    transactional_id: str = field(string)
    producer_id: int = field(int64)
    producer_epoch: int = field(int16)
    # check whether they belong to it, add nothing
    verify_only: bool = field(boolean)
    topics: list[AddPartitionsToTxnTopic] = field(array(AddPartitionsToTxnTopic))


class AddPartitionsToTxnRequest(Message, versions="0-5", flexible="3+"):
    """Clients use v3 and older, one transaction each; brokers send several at once with v4 and later."""

    transactions: list[AddPartitionsToTxnTransaction] = field(array(AddPartitionsToTxnTransaction), "4+")
    v3_and_below_transactional_id: str = field(string, "0-3")
    v3_and_below_producer_id: int = field(int64, "0-3")
    v3_and_below_producer_epoch: int = field(int16, "0-3")
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = field(array(AddPartitionsToTxnTopic), "0-3")


class AddPartitionsToTxnPartitionResult(Struct):
    partition_index: int = field(int32)
    partition_error_code: int = field(int16)


class AddPartitionsToTxnTopicResult(Struct):
    name: str = field(string)
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = field(array(AddPartitionsToTxnPartitionResult))


class AddPartitionsToTxnResult(Struct):
    transactional_id: str = field(string)
    topic_results: list[AddPartitionsToTxnTopicResult] = field(array(AddPartitionsToTxnTopicResult))


class AddPartitionsToTxnResponse(Message, versions="0-5", flexible="3+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16, "4+", ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = field(array(AddPartitionsToTxnResult), "4+")
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = field(
        array(AddPartitionsToTxnTopicResult), "0-3"
    )


class AddOffsetsToTxnRequest(Message, versions="0-4", flexible="3+"):
    transactional_id: str = field(string)
    producer_id: int = field(int64)
    producer_epoch: int = field(int16)
    group_id: str = field(string)


class AddOffsetsToTxnResponse(Message, versions="0-4", flexible="3+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)


class EndTxnRequest(Message, versions="0-5", flexible="3+"):
    transactional_id: str = field(string)
    producer_id: int = field(int64)
    producer_epoch: int = field(int16)
    committed: bool = field(boolean)


class EndTxnResponse(Message, versions="0-5", flexible="3+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    # the id and epoch for the next transaction (KIP-890)
    producer_id: int = field(int64, "5+", default=-1, ignorable=True)
    producer_epoch: int = field(int16, "5+", default=-1, ignorable=True)


class WritableTxnMarkerTopic(Struct):
    name: str = field(string)
    partition_indexes: list[int] = field(array(int32))


class WritableTxnMarker(Struct):
    producer_id: int = field(int64)
    producer_epoch: int = field(int16)
    # commit when true, else abort
    transaction_result: bool = field(boolean)
    topics: list[WritableTxnMarkerTopic] = field(array(WritableTxnMarkerTopic))
    coordinator_epoch: int = field(int32)
    transaction_version: int = field(int8, "2+", ignorable=True)


class WriteTxnMarkersRequest(Message, versions="0-2", flexible="1+"):
    """Sent by transaction coordinators, and by admin tools that abort a hanging transaction."""

    markers: list[WritableTxnMarker] = field(array(WritableTxnMarker))


class WritableTxnMarkerPartitionResult(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)


class WritableTxnMarkerTopicResult(Struct):
    name: str = field(string)
    partitions: list[WritableTxnMarkerPartitionResult] = field(array(WritableTxnMarkerPartitionResult))


class WritableTxnMarkerResult(Struct):
    producer_id: int = field(int64)
    topics: list[WritableTxnMarkerTopicResult] = field(array(WritableTxnMarkerTopicResult))


class WriteTxnMarkersResponse(Message, versions="0-2", flexible="1+"):
    markers: list[WritableTxnMarkerResult] = field(array(WritableTxnMarkerResult))


class TxnOffsetCommitRequestPartition(Struct):
    partition_index: int = field(int32)
    committed_offset: int = field(int64)
    committed_leader_epoch: int = field(int32, "2+", default=-1, ignorable=True)
    committed_metadata: str | None = field(string, nullable="0+")


class TxnOffsetCommitRequestTopic(Struct):
    name: str = field(string)
    partitions: list[TxnOffsetCommitRequestPartition] = field(array(TxnOffsetCommitRequestPartition))


class TxnOffsetCommitRequest(Message, versions="0-5", flexible="3+"):
    transactional_id: str = field(string)
    group_id: str = field(string)
    producer_id: int = field(int64)
    producer_epoch: int = field(int16)
    generation_id: int = field(int32, "3+", default=-1)
    member_id: str = field(string, "3+")
    group_instance_id: str | None = field(string, "3+", nullable="0+")
    topics: list[TxnOffsetCommitRequestTopic] = field(array(TxnOffsetCommitRequestTopic))


class TxnOffsetCommitResponsePartition(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)


class TxnOffsetCommitResponseTopic(Struct):
    name: str = field(string)
    partitions: list[TxnOffsetCommitResponsePartition] = field(array(TxnOffsetCommitResponsePartition))


class TxnOffsetCommitResponse(Message, versions="0-5", flexible="3+"):
    throttle_time_ms: int = field(int32)
    topics: list[TxnOffsetCommitResponseTopic] = field(array(TxnOffsetCommitResponseTopic))


class TopicRequest(Struct):
    name: str = field(string)
    partition_indexes: list[int] = field(array(int32))


class DescribeProducersRequest(Message, versions="0", flexible="0+"):
    topics: list[TopicRequest] = field(array(TopicRequest))


class ProducerState(Struct):
    producer_id: int = field(int64)
    producer_epoch: int = field(int32)
    last_sequence: int = field(int32, default=-1)
    last_timestamp: int = field(int64, default=-1)
    coordinator_epoch: int = field(int32)
    current_txn_start_offset: int = field(int64, default=-1)


class PartitionResponse(Struct):
    partition_index: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    active_producers: list[ProducerState] = field(array(ProducerState))


class TopicResponse(Struct):
    name: str = field(string)
    partitions: list[PartitionResponse] = field(array(PartitionResponse))


class DescribeProducersResponse(Message, versions="0", flexible="0+"):
    throttle_time_ms: int = field(int32)
    topics: list[TopicResponse] = field(array(TopicResponse))


class DescribeTransactionsRequest(Message, versions="0", flexible="0+"):
    transactional_ids: list[str] = field(array(string))


class TopicData(Struct):
    topic: str = field(string)
    partitions: list[int] = field(array(int32))


class TransactionState(Struct):
    error_code: int = field(int16)
    transactional_id: str = field(string)
    transaction_state: str = field(string)
    transaction_timeout_ms: int = field(int32)
    transaction_start_time_ms: int = field(int64)
    producer_id: int = field(int64)
    producer_epoch: int = field(int16)
    topics: list[TopicData] = field(array(TopicData))


class DescribeTransactionsResponse(Message, versions="0", flexible="0+"):
    throttle_time_ms: int = field(int32)
    transaction_states: list[TransactionState] = field(array(TransactionState))


class ListTransactionsRequest(Message, versions="0-2", flexible="0+"):
    state_filters: list[str] = field(array(string))
    producer_id_filters: list[int] = field(array(int64))
    duration_filter: int = field(int64, "1+", default=-1)
    transactional_id_pattern: str | None = field(string, "2+", nullable="0+")


class ListTransactionsResponseTransactionState(Struct):
    transactional_id: str = field(string)
    producer_id: int = field(int64)
    transaction_state: str = field(string)


class ListTransactionsResponse(Message, versions="0-2", flexible="0+"):
    throttle_time_ms: int = field(int32)
    error_code: int = field(int16)
    unknown_state_filters: list[str] = field(array(string))
    transaction_states: list[ListTransactionsResponseTransactionState] = field(
        array(ListTransactionsResponseTransactionState)
    )
