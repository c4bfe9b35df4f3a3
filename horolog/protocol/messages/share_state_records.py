"""Keys and values in __share_group_state: snapshots of share partitions, and what has changed since.

The two bytes before a key say what it is, and double as its version here; the two before a value are its version.
"""

from horolog.protocol.wire import Message, Struct, array, field, int8, int16, int32, int64, string, uuid


class StoredStateBatch(Struct):
    first_offset: int = field(int64)
    last_offset: int = field(int64)
    # 0 available, 2 acknowledged, 4 archived
    delivery_state: int = field(int8)
    delivery_count: int = field(int16)


class ShareSnapshotKey(Message, versions="0"):
    group_id: str = field(string)
    topic_id: bytes = field(uuid)
    partition: int = field(int32)


class ShareSnapshotValue(Message, versions="0", flexible="0+"):
    """All there is to know of a share partition."""

    snapshot_epoch: int = field(int32)
    state_epoch: int = field(int32)
    leader_epoch: int = field(int32)
    start_offset: int = field(int64)
    delivery_complete_count: int = field(int32, tag=0, default=-1)
    create_timestamp: int = field(int64)
    write_timestamp: int = field(int64)
    state_batches: list[StoredStateBatch] = field(array(StoredStateBatch))


class ShareUpdateKey(Message, versions="1"):
    group_id: str = field(string)
    topic_id: bytes = field(uuid)
    partition: int = field(int32)


class ShareUpdateValue(Message, versions="0", flexible="0+"):
    """What has changed since the snapshot of the same epoch, or since the update before."""

    snapshot_epoch: int = field(int32)
    leader_epoch: int = field(int32)
    # -1: as it was
    start_offset: int = field(int64)
    delivery_complete_count: int = field(int32, tag=0, default=-1)
    state_batches: list[StoredStateBatch] = field(array(StoredStateBatch))
