"""The state of share partitions as group and share coordinators tell it to each other (KIP-932)."""

from horolog.protocol.wire import Message, Struct, array, field, int8, int16, int32, int64, string, uuid


class PartitionData(Struct):
    partition: int = field(int32)
    state_epoch: int = field(int32)
    start_offset: int = field(int64)


class InitializeStateData(Struct):
    topic_id: bytes = field(uuid)
    partitions: list[PartitionData] = field(array(PartitionData))


class InitializeShareGroupStateRequest(Message, versions="0", flexible="0+"):
    group_id: str = field(string)
    topics: list[InitializeStateData] = field(array(InitializeStateData))


class PartitionResult(Struct):
    partition: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")


class InitializeStateResult(Struct):
    topic_id: bytes = field(uuid)
    partitions: list[PartitionResult] = field(array(PartitionResult))


class InitializeShareGroupStateResponse(Message, versions="0", flexible="0+"):
    results: list[InitializeStateResult] = field(array(InitializeStateResult))


class ReadShareGroupStateRequestPartitionData(Struct):
    partition: int = field(int32)
    leader_epoch: int = field(int32)


class ReadStateData(Struct):
    topic_id: bytes = field(uuid)
    partitions: list[ReadShareGroupStateRequestPartitionData] = field(array(ReadShareGroupStateRequestPartitionData))


class ReadShareGroupStateRequest(Message, versions="0", flexible="0+"):
    group_id: str = field(string)
    topics: list[ReadStateData] = field(array(ReadStateData))


class StateBatch(Struct):
    first_offset: int = field(int64)
    last_offset: int = field(int64)
    delivery_state: int = field(int8)
    delivery_count: int = field(int16)


class ReadShareGroupStateResponsePartitionResult(Struct):
    partition: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    state_epoch: int = field(int32)
    start_offset: int = field(int64)
    state_batches: list[StateBatch] = field(array(StateBatch))


class ReadStateResult(Struct):
    topic_id: bytes = field(uuid)
    partitions: list[ReadShareGroupStateResponsePartitionResult] = field(
        array(ReadShareGroupStateResponsePartitionResult)
    )


class ReadShareGroupStateResponse(Message, versions="0", flexible="0+"):
    results: list[ReadStateResult] = field(array(ReadStateResult))


class WriteShareGroupStateRequestStateBatch(Struct):
    first_offset: int = field(int64)
    last_offset: int = field(int64)
    delivery_state: int = field(int8)
    delivery_count: int = field(int16)


class WriteShareGroupStateRequestPartitionData(Struct):
    partition: int = field(int32)
    state_epoch: int = field(int32)
    leader_epoch: int = field(int32)
    start_offset: int = field(int64)
    delivery_complete_count: int = field(int32, "1+", default=-1, ignorable=True)
    state_batches: list[WriteShareGroupStateRequestStateBatch] = field(array(WriteShareGroupStateRequestStateBatch))


class WriteStateData(Struct):
    topic_id: bytes = field(uuid)
    partitions: list[WriteShareGroupStateRequestPartitionData] = field(array(WriteShareGroupStateRequestPartitionData))


class WriteShareGroupStateRequest(Message, versions="0-1", flexible="0+"):
    group_id: str = field(string)
    topics: list[WriteStateData] = field(array(WriteStateData))


class WriteShareGroupStateResponsePartitionResult(Struct):
    partition: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")


class WriteStateResult(Struct):
    topic_id: bytes = field(uuid)
    partitions: list[WriteShareGroupStateResponsePartitionResult] = field(
        array(WriteShareGroupStateResponsePartitionResult)
    )


class WriteShareGroupStateResponse(Message, versions="0-1", flexible="0+"):
    results: list[WriteStateResult] = field(array(WriteStateResult))


class DeleteShareGroupStateRequestPartitionData(Struct):
    partition: int = field(int32)


class DeleteStateData(Struct):
    topic_id: bytes = field(uuid)
    partitions: list[DeleteShareGroupStateRequestPartitionData] = field(
        array(DeleteShareGroupStateRequestPartitionData)
    )


class DeleteShareGroupStateRequest(Message, versions="0", flexible="0+"):
    group_id: str = field(string)
    topics: list[DeleteStateData] = field(array(DeleteStateData))


class DeleteShareGroupStateResponsePartitionResult(Struct):
    partition: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")


class DeleteStateResult(Struct):
    topic_id: bytes = field(uuid)
    partitions: list[DeleteShareGroupStateResponsePartitionResult] = field(
        array(DeleteShareGroupStateResponsePartitionResult)
    )


class DeleteShareGroupStateResponse(Message, versions="0", flexible="0+"):
    results: list[DeleteStateResult] = field(array(DeleteStateResult))


class ReadShareGroupStateSummaryRequestPartitionData(Struct):
    partition: int = field(int32)
    leader_epoch: int = field(int32)


class ReadStateSummaryData(Struct):
    topic_id: bytes = field(uuid)
    partitions: list[ReadShareGroupStateSummaryRequestPartitionData] = field(
        array(ReadShareGroupStateSummaryRequestPartitionData)
    )


class ReadShareGroupStateSummaryRequest(Message, versions="0-1", flexible="0+"):
    group_id: str = field(string)
    topics: list[ReadStateSummaryData] = field(array(ReadStateSummaryData))


class ReadShareGroupStateSummaryResponsePartitionResult(Struct):
    partition: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")
    state_epoch: int = field(int32)
    leader_epoch: int = field(int32)
    start_offset: int = field(int64)
    delivery_complete_count: int = field(int32, "1+", default=-1, ignorable=True)


class ReadStateSummaryResult(Struct):
    topic_id: bytes = field(uuid)
    partitions: list[ReadShareGroupStateSummaryResponsePartitionResult] = field(
        array(ReadShareGroupStateSummaryResponsePartitionResult)
    )


class ReadShareGroupStateSummaryResponse(Message, versions="0-1", flexible="0+"):
    results: list[ReadStateSummaryResult] = field(array(ReadStateSummaryResult))
