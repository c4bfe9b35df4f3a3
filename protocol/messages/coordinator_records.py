"""Keys and values in __consumer_offsets and __transaction_state: classic groups, committed offsets, transactions."""

from protocol.wire import Message, Struct, array, binary, field, int8, int16, int32, int64, string, uuid


class OffsetCommitKey(Message, versions="0-1"):
    """The two bytes before a key say what it is and double as its version: 0 or 1 for offsets, 2 for groups."""

    group: str = field(string)
    topic: str = field(string)
    partition: int = field(int32)


class OffsetCommitValue(Message, versions="0-4", flexible="4+"):
    offset: int = field(int64)
    leader_epoch: int = field(int32, "3+", default=-1, ignorable=True)
    metadata: str = field(string)
    commit_timestamp: int = field(int64)
    # -1: by the retention of the broker
    expire_timestamp: int = field(int64, "1", default=-1, ignorable=True)
    topic_id: bytes = field(uuid, "4+", tag=0, ignorable=True)


class GroupMetadataKey(Message, versions="2"):
    """See OffsetCommitKey; a value's two leading bytes are its version."""

    group: str = field(string)


class MemberMetadata(Struct):
    member_id: str = field(string)
    group_instance_id: str | None = field(string, "3+", nullable="0+", ignorable=True)
    client_id: str = field(string)
    client_host: str = field(string)
    rebalance_timeout: int = field(int32, "1+", default=-1, ignorable=True)
    session_timeout: int = field(int32)
    subscription: bytes = field(binary)
    assignment: bytes = field(binary)


class GroupMetadataValue(Message, versions="0-4", flexible="4+"):
    protocol_type: str = field(string)
    generation: int = field(int32)
    protocol: str | None = field(string, nullable="0+")
    leader: str | None = field(string, nullable="0+")
    # when the group came into this state
    current_state_timestamp: int = field(int64, "2+", default=-1, ignorable=True)
    members: list[MemberMetadata] = field(array(MemberMetadata))


class TransactionLogKey(Message, versions="0"):
    transactional_id: str = field(string)


class PartitionsSchema(Struct):
    topic: str = field(string)
    partition_ids: list[int] = field(array(int32))


class TransactionLogValue(Message, versions="0-1", flexible="1+"):
    producer_id: int = field(int64)
    previous_producer_id: int = field(int64, "1+", default=-1, tag=0)
    next_producer_id: int = field(int64, "1+", default=-1, tag=1)
    producer_epoch: int = field(int16)
    next_producer_epoch: int = field(int16, "1+", default=-1, tag=3)
    transaction_timeout_ms: int = field(int32)
    # 0 empty, 1 ongoing, 2 and 3 prepare commit and abort, 4 and 5 complete commit and abort, 6 dead, 7 prepare epoch fence
    transaction_status: int = field(int8)
    transaction_partitions: list[PartitionsSchema] | None = field(array(PartitionsSchema), nullable="0+")
    transaction_last_update_timestamp_ms: int = field(int64)
    transaction_start_timestamp_ms: int = field(int64)
    client_transaction_version: int = field(int16, "1+", tag=2)
