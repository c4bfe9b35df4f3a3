"""The records of `__consumer_offsets`: two bytes for the kind of key and the key; two bytes for the value's version and the value.

    0, 1  OffsetCommitKey                           OffsetCommitValue
    2     GroupMetadataKey                          GroupMetadataValue (classic groups)
    3     ConsumerGroupMetadataKey                  ConsumerGroupMetadataValue
    4     ConsumerGroupPartitionMetadataKey         written by Kafka 3.7 to 4.0, not used here
    5     ConsumerGroupMemberMetadataKey            ConsumerGroupMemberMetadataValue
    6     ConsumerGroupTargetAssignmentMetadataKey  ConsumerGroupTargetAssignmentMetadataValue
    7     ConsumerGroupTargetAssignmentMemberKey    ConsumerGroupTargetAssignmentMemberValue
    8     ConsumerGroupCurrentMemberAssignmentKey   ConsumerGroupCurrentMemberAssignmentValue
    10    ShareGroupMemberMetadataKey               ShareGroupMemberMetadataValue
    11    ShareGroupMetadataKey                     ShareGroupMetadataValue
    12    ShareGroupTargetAssignmentMetadataKey     ShareGroupTargetAssignmentMetadataValue
    13    ShareGroupTargetAssignmentMemberKey       ShareGroupTargetAssignmentMemberValue
    14    ShareGroupCurrentMemberAssignmentKey      ShareGroupCurrentMemberAssignmentValue
    15    ShareGroupStatePartitionMetadataKey       ShareGroupStatePartitionMetadataValue
    16    ConsumerGroupRegularExpressionKey         ConsumerGroupRegularExpressionValue
    17    StreamsGroupMetadataKey                   StreamsGroupMetadataValue
    18    StreamsGroupPartitionMetadataKey          written by Kafka 4.1's previews, not used here
    19    StreamsGroupMemberMetadataKey             StreamsGroupMemberMetadataValue
    20    StreamsGroupTargetAssignmentMetadataKey   StreamsGroupTargetAssignmentMetadataValue
    21    StreamsGroupTargetAssignmentMemberKey     StreamsGroupTargetAssignmentMemberValue
    22    StreamsGroupCurrentMemberAssignmentKey    StreamsGroupCurrentMemberAssignmentValue
    23    StreamsGroupTopologyKey                   StreamsGroupTopologyValue

A record without a value is a tombstone. Kafka 0.8 wrote key 0; here it keeps the offsets that clients commit with OffsetCommit v0, which
brokers of their time kept in ZooKeeper: a separate store, seen by OffsetFetch v0 alone.
"""

from __future__ import annotations

from struct import Struct

from horolog.protocol.compile import decode, encode, flat_encoder
from horolog.protocol.errors import DecodeError
from horolog.protocol.messages.coordinator_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
)
from horolog.protocol.messages.streams_group_records import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
)
from horolog.protocol.primitives import Buffer
from horolog.protocol.records.batch import Entry
from horolog.protocol.wire import Message

OffsetKey = tuple[str, str, int]
"""The fields of OffsetCommitKey."""
OffsetValue = tuple[int, int, str, int, int, bytes]
"""The fields of OffsetCommitValue."""

OLD_OFFSET, OFFSET = 0, 1
_NUMBER = Struct(">h")

_PAIRS: dict[int, tuple[type[Message], type[Message]]] = {
    OLD_OFFSET: (OffsetCommitKey, OffsetCommitValue),
    OFFSET: (OffsetCommitKey, OffsetCommitValue),
    2: (GroupMetadataKey, GroupMetadataValue),
    3: (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
    5: (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
    6: (ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue),
    7: (ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue),
    8: (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue),
    10: (ShareGroupMemberMetadataKey, ShareGroupMemberMetadataValue),
    11: (ShareGroupMetadataKey, ShareGroupMetadataValue),
    12: (ShareGroupTargetAssignmentMetadataKey, ShareGroupTargetAssignmentMetadataValue),
    13: (ShareGroupTargetAssignmentMemberKey, ShareGroupTargetAssignmentMemberValue),
    14: (ShareGroupCurrentMemberAssignmentKey, ShareGroupCurrentMemberAssignmentValue),
    15: (ShareGroupStatePartitionMetadataKey, ShareGroupStatePartitionMetadataValue),
    16: (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
    17: (StreamsGroupMetadataKey, StreamsGroupMetadataValue),
    19: (StreamsGroupMemberMetadataKey, StreamsGroupMemberMetadataValue),
    20: (StreamsGroupTargetAssignmentMetadataKey, StreamsGroupTargetAssignmentMetadataValue),
    21: (StreamsGroupTargetAssignmentMemberKey, StreamsGroupTargetAssignmentMemberValue),
    22: (StreamsGroupCurrentMemberAssignmentKey, StreamsGroupCurrentMemberAssignmentValue),
    23: (StreamsGroupTopologyKey, StreamsGroupTopologyValue),
}
_KINDS = {key: number for number, (key, _) in _PAIRS.items()} | {ConsumerGroupPartitionMetadataKey: 4}
_NEWEST_VALUE = {GroupMetadataValue: 3, OffsetCommitValue: 4}
"""Versions that Kafka 3.9 reads too; the newest GroupMetadataValue holds no more than v3."""

_VALUE_WITH_EXPIRY = 1
"""The only version of OffsetCommitValue with a time of expiry."""


def entry(key: Message, value: Message | None) -> Entry:
    """One record of anything but an offset."""
    return key_bytes(key), None if value is None else value_bytes(value)


def key_bytes(key: Message) -> bytes:
    number = _KINDS[type(key)]
    return _NUMBER.pack(number) + encode(key, number)


def value_bytes(value: Message) -> bytes:
    version = _NEWEST_VALUE.get(type(value), 0)
    assert is_known(type(value), version), f"version {version} of {type(value).__name__} would not be read again"
    return _NUMBER.pack(version) + encode(value, version)


def offset_entry(key: OffsetKey, value: OffsetValue | None, kind: int = OFFSET) -> Entry:
    """The same for a committed offset, as fields: commits are too frequent to build messages for them."""
    parts: list[Buffer] = [_NUMBER.pack(kind)]
    flat_encoder(OffsetCommitKey, kind)(key, parts)
    return b"".join(parts), None if value is None else _offset_value(value)


def _offset_value(value: OffsetValue) -> bytes:
    _, _, _, _, expire_ms, _ = value
    version = _VALUE_WITH_EXPIRY if expire_ms >= 0 else _NEWEST_VALUE[OffsetCommitValue]
    assert is_known(OffsetCommitValue, version), f"version {version} of OffsetCommitValue would not be read again"
    parts: list[Buffer] = [_NUMBER.pack(version)]
    flat_encoder(OffsetCommitValue, version)(value, parts)
    return b"".join(parts)


def kind_of(key: bytes) -> int:
    """The number of a key's kind; -1 for a key that is too short."""
    return int(_NUMBER.unpack_from(key)[0]) if len(key) >= _NUMBER.size else -1


def read_key(key: bytes) -> tuple[int, Message] | None:
    """A key with the number of its kind; None for kinds that are not used here. Raises DecodeError."""
    kind = kind_of(key)
    pair = _PAIRS.get(kind)
    return None if pair is None else (kind, decode(pair[0], kind, key, _NUMBER.size))


def read_entry(key: bytes, value: bytes) -> tuple[int, Message, Message] | None:
    """A record's key and value with the number of its kind; None for kinds that are not used here. Raises DecodeError."""
    said = read_key(key)
    if said is None:
        return None
    if len(value) < _NUMBER.size:
        raise DecodeError("a value without a version")
    (version,) = _NUMBER.unpack_from(value)
    kind, read = said
    value_class = _PAIRS[kind][1]
    if not is_known(value_class, version):
        raise DecodeError(f"version {version} of {value_class.__name__} is not known")
    return kind, read, decode(value_class, version, value, _NUMBER.size)


def is_known(value_class: type[Message], version: int) -> bool:
    """Whether values of this version are supported. Asserted on writing, an error on reading."""
    return 0 <= version <= (4 if value_class in _NEWEST_VALUE else 0)
