"""Keys and values in __consumer_offsets and __transaction_state: groups of both protocols, committed offsets, transactions.

The two bytes before a key say what it is, and double as its version here; the two before a value are its version.
"""

from horolog.protocol.wire import Message, Struct, array, binary, field, int8, int16, int32, int64, string, uuid


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


class ConsumerGroupMetadataKey(Message, versions="3"):
    group_id: str = field(string)


class ConsumerGroupMetadataValue(Message, versions="0", flexible="0+"):
    epoch: int = field(int32)
    # changes when a topic that the group reads does
    metadata_hash: int = field(int64, tag=0)


class ConsumerGroupPartitionMetadataKey(Message, versions="4"):
    """Written by Kafka up to 4.0; later ones keep a hash in the group's own record."""

    group_id: str = field(string)


class ConsumerGroupMemberMetadataKey(Message, versions="5"):
    group_id: str = field(string)
    member_id: str = field(string)


class ClassicProtocol(Struct):
    name: str = field(string)
    metadata: bytes = field(binary)


class ClassicMemberMetadata(Struct):
    session_timeout_ms: int = field(int32)
    supported_protocols: list[ClassicProtocol] = field(array(ClassicProtocol))


class ConsumerGroupMemberMetadataValue(Message, versions="0", flexible="0+"):
    instance_id: str | None = field(string, nullable="0+")
    rack_id: str | None = field(string, nullable="0+")
    client_id: str = field(string)
    client_host: str = field(string)
    subscribed_topic_names: list[str] = field(array(string))
    subscribed_topic_regex: str | None = field(string, nullable="0+")
    rebalance_timeout_ms: int = field(int32, default=-1)
    server_assignor: str | None = field(string, nullable="0+")
    # of a member that uses the classic protocol
    classic_member_metadata: ClassicMemberMetadata | None = field(
        ClassicMemberMetadata, tag=0, nullable="0+", default=None
    )


class ConsumerGroupTargetAssignmentMetadataKey(Message, versions="6"):
    group_id: str = field(string)


class ConsumerGroupTargetAssignmentMetadataValue(Message, versions="0", flexible="0+"):
    assignment_epoch: int = field(int32)


class ConsumerGroupTargetAssignmentMemberKey(Message, versions="7"):
    group_id: str = field(string)
    member_id: str = field(string)


class TargetPartitions(Struct):
    topic_id: bytes = field(uuid)
    partitions: list[int] = field(array(int32))


class ConsumerGroupTargetAssignmentMemberValue(Message, versions="0", flexible="0+"):
    topic_partitions: list[TargetPartitions] = field(array(TargetPartitions))


class ConsumerGroupCurrentMemberAssignmentKey(Message, versions="8"):
    group_id: str = field(string)
    member_id: str = field(string)


class CurrentPartitions(Struct):
    topic_id: bytes = field(uuid)
    partitions: list[int] = field(array(int32))


class OwnedPartitions(Struct):
    topic_id: bytes = field(uuid)
    partitions: list[int] = field(array(int32))
    # in the order of the partitions; not written before Kafka 4.3
    assignment_epochs: list[int] | None = field(array(int32), nullable="0+", tag=0, default=None)


class ConsumerGroupCurrentMemberAssignmentValue(Message, versions="0", flexible="0+"):
    member_epoch: int = field(int32)
    previous_member_epoch: int = field(int32)
    # 0 stable, 1 has to revoke, 2 waits for others to release
    state: int = field(int8)
    assigned_partitions: list[OwnedPartitions] = field(array(OwnedPartitions))
    partitions_pending_revocation: list[OwnedPartitions] = field(array(OwnedPartitions))


class ShareGroupMemberMetadataKey(Message, versions="10"):
    group_id: str = field(string)
    member_id: str = field(string)


class ShareGroupMemberMetadataValue(Message, versions="0", flexible="0+"):
    rack_id: str | None = field(string, nullable="0+")
    client_id: str = field(string)
    client_host: str = field(string)
    subscribed_topic_names: list[str] = field(array(string))


class ShareGroupMetadataKey(Message, versions="11"):
    group_id: str = field(string)


class ShareGroupMetadataValue(Message, versions="0", flexible="0+"):
    epoch: int = field(int32)
    # changes when a topic that the group reads does
    metadata_hash: int = field(int64)


class ShareGroupTargetAssignmentMetadataKey(Message, versions="12"):
    group_id: str = field(string)


class ShareGroupTargetAssignmentMetadataValue(Message, versions="0", flexible="0+"):
    assignment_epoch: int = field(int32)
    assignment_timestamp: int = field(int64, tag=0, ignorable=True)


class ShareGroupTargetAssignmentMemberKey(Message, versions="13"):
    group_id: str = field(string)
    member_id: str = field(string)


class ShareGroupTargetAssignmentMemberValue(Message, versions="0", flexible="0+"):
    topic_partitions: list[TargetPartitions] = field(array(TargetPartitions))


class ShareGroupCurrentMemberAssignmentKey(Message, versions="14"):
    group_id: str = field(string)
    member_id: str = field(string)


class ShareGroupCurrentMemberAssignmentValue(Message, versions="0", flexible="0+"):
    member_epoch: int = field(int32)
    previous_member_epoch: int = field(int32)
    # always 0, stable
    state: int = field(int8)
    assigned_partitions: list[CurrentPartitions] = field(array(CurrentPartitions))


class ShareGroupStatePartitionMetadataKey(Message, versions="15"):
    group_id: str = field(string)


class TopicPartitionsInfo(Struct):
    topic_id: bytes = field(uuid)
    topic_name: str = field(string)
    partitions: list[int] = field(array(int32))


class TopicInfo(Struct):
    topic_id: bytes = field(uuid)
    topic_name: str = field(string)


class ShareGroupStatePartitionMetadataValue(Message, versions="0", flexible="0+"):
    initializing_topics: list[TopicPartitionsInfo] = field(array(TopicPartitionsInfo))
    initialized_topics: list[TopicPartitionsInfo] = field(array(TopicPartitionsInfo))
    deleting_topics: list[TopicInfo] = field(array(TopicInfo))


class ConsumerGroupRegularExpressionKey(Message, versions="16"):
    group_id: str = field(string)
    regular_expression: str = field(string)


class ConsumerGroupRegularExpressionValue(Message, versions="0", flexible="0+"):
    topics: list[str] = field(array(string))
    version: int = field(int64)
    timestamp: int = field(int64)


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
