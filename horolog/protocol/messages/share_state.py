"""The state of share partitions: Initialize, Read, Write, Delete and ReadShareGroupStateSummary, between brokers (KIP-932)."""

from horolog.protocol.wire import Message, Struct, array, field, int8, int16, int32, int64, string, uuid


class ShareStateBatch(Struct):
    first_offset: int = field(int64)
    last_offset: int = field(int64)
    # 0 available, 2 acknowledged, 4 archived
    delivery_state: int = field(int8)
    delivery_count: int = field(int16)


class ShareStateCode(Struct):
    """The outcome for one partition: all of it, or what precedes the state that was read."""

    partition: int = field(int32)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")


class ShareStateCodes(Struct):
    topic_id: bytes = field(uuid)
    partitions: list[ShareStateCode] = field(array(ShareStateCode))


class StatePartition(Struct):
    partition: int = field(int32)


class InitializeStatePartition(StatePartition):
    state_epoch: int = field(int32)
    # -1: where the group's settings say, once it is first read
    start_offset: int = field(int64)


class InitializeStateTopic(Struct):
    topic_id: bytes = field(uuid)
    partitions: list[InitializeStatePartition] = field(array(InitializeStatePartition))


class InitializeShareGroupStateRequest(Message, versions="0", flexible="0+"):
    group_id: str = field(string)
    topics: list[InitializeStateTopic] = field(array(InitializeStateTopic))


class InitializeShareGroupStateResponse(Message, versions="0", flexible="0+"):
    results: list[ShareStateCodes] = field(array(ShareStateCodes))


class ReadStatePartition(StatePartition):
    leader_epoch: int = field(int32)


class ReadStateTopic(Struct):
    topic_id: bytes = field(uuid)
    partitions: list[ReadStatePartition] = field(array(ReadStatePartition))


class ReadShareGroupStateRequest(Message, versions="0", flexible="0+"):
    group_id: str = field(string)
    topics: list[ReadStateTopic] = field(array(ReadStateTopic))


class ReadStateResult(ShareStateCode):
    state_epoch: int = field(int32)
    start_offset: int = field(int64)
    state_batches: list[ShareStateBatch] = field(array(ShareStateBatch))


class ReadStateTopicResult(Struct):
    topic_id: bytes = field(uuid)
    partitions: list[ReadStateResult] = field(array(ReadStateResult))


class ReadShareGroupStateResponse(Message, versions="0", flexible="0+"):
    results: list[ReadStateTopicResult] = field(array(ReadStateTopicResult))


class WriteStatePartition(StatePartition):
    state_epoch: int = field(int32)
    leader_epoch: int = field(int32)
    # -1: as it was
    start_offset: int = field(int64)
    delivery_complete_count: int = field(int32, "1+", default=-1, ignorable=True)
    state_batches: list[ShareStateBatch] = field(array(ShareStateBatch))


class WriteStateTopic(Struct):
    topic_id: bytes = field(uuid)
    partitions: list[WriteStatePartition] = field(array(WriteStatePartition))


class WriteShareGroupStateRequest(Message, versions="0-1", flexible="0+"):
    """v1 counts the records beyond the start whose delivery is complete (KIP-1226)."""

    group_id: str = field(string)
    topics: list[WriteStateTopic] = field(array(WriteStateTopic))


class WriteShareGroupStateResponse(Message, versions="0-1", flexible="0+"):
    results: list[ShareStateCodes] = field(array(ShareStateCodes))


class DeleteStateTopic(Struct):
    topic_id: bytes = field(uuid)
    partitions: list[StatePartition] = field(array(StatePartition))


class DeleteShareGroupStateRequest(Message, versions="0", flexible="0+"):
    group_id: str = field(string)
    topics: list[DeleteStateTopic] = field(array(DeleteStateTopic))


class DeleteShareGroupStateResponse(Message, versions="0", flexible="0+"):
    results: list[ShareStateCodes] = field(array(ShareStateCodes))


class ReadShareGroupStateSummaryRequest(Message, versions="0-1", flexible="0+"):
    group_id: str = field(string)
    topics: list[ReadStateTopic] = field(array(ReadStateTopic))


class StateSummary(ShareStateCode):
    state_epoch: int = field(int32)
    leader_epoch: int = field(int32)
    start_offset: int = field(int64)
    delivery_complete_count: int = field(int32, "1+", default=-1, ignorable=True)


class StateSummaryTopic(Struct):
    topic_id: bytes = field(uuid)
    partitions: list[StateSummary] = field(array(StateSummary))


class ReadShareGroupStateSummaryResponse(Message, versions="0-1", flexible="0+"):
    results: list[StateSummaryTopic] = field(array(StateSummaryTopic))
