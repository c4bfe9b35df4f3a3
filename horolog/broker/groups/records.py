"""The records of `__consumer_offsets`: two bytes that say what a key is, the key, and a value behind two bytes of its version.

    0, 1  OffsetCommitKey                           OffsetCommitValue
    2     GroupMetadataKey                          GroupMetadataValue (classic groups)
    3     ConsumerGroupMetadataKey                  ConsumerGroupMetadataValue
    4     ConsumerGroupPartitionMetadataKey         written by Kafka 3.7 to 4.0, not used here
    5     ConsumerGroupMemberMetadataKey            ConsumerGroupMemberMetadataValue
    6     ConsumerGroupTargetAssignmentMetadataKey  ConsumerGroupTargetAssignmentMetadataValue
    7     ConsumerGroupTargetAssignmentMemberKey    ConsumerGroupTargetAssignmentMemberValue
    8     ConsumerGroupCurrentMemberAssignmentKey   ConsumerGroupCurrentMemberAssignmentValue
    16    ConsumerGroupRegularExpressionKey         ConsumerGroupRegularExpressionValue

No value is a tombstone. Key 0 is what Kafka 0.8 wrote; here it keeps the offsets that clients commit with OffsetCommit v0, which on
brokers of their time lay in ZooKeeper: a store of its own, seen by OffsetFetch v0 alone.
"""

from __future__ import annotations

from struct import Struct

from horolog.protocol.compile import decode, encode
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
)
from horolog.protocol.wire import Message

Entry = tuple[bytes, bytes | None]
"""A key and its value, as they are in a record; no value removes what the key had."""

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
    16: (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
}
_KINDS = {key: number for number, (key, _) in _PAIRS.items()} | {ConsumerGroupPartitionMetadataKey: 4}
_NEWEST_VALUE = {GroupMetadataValue: 3, OffsetCommitValue: 4}
"""Versions that Kafka 3.9 reads too; the newest GroupMetadataValue says no more than v3."""


def entry(key: Message, value: Message | None, kind: int | None = None) -> Entry:
    """One record; `kind` is needed only for offsets that are not of the usual kind."""
    return key_bytes(key, kind), None if value is None else value_bytes(value)


def key_bytes(key: Message, kind: int | None = None) -> bytes:
    number = _KINDS[type(key)] if kind is None else kind
    return _NUMBER.pack(number) + encode(key, number)


def value_bytes(value: Message) -> bytes:
    version = _NEWEST_VALUE.get(type(value), 0)
    if isinstance(value, OffsetCommitValue) and value.expire_timestamp >= 0:
        version = 1
    assert is_known(type(value), version), f"version {version} of {type(value).__name__} would not be read again"
    return _NUMBER.pack(version) + encode(value, version)


def kind_of(key: bytes) -> int:
    """The number that says what a key is; -1 for one that is too short to say."""
    return int(_NUMBER.unpack_from(key)[0]) if len(key) >= _NUMBER.size else -1


def read_key(key: bytes) -> tuple[int, Message] | None:
    """What a key says, with the number of its kind; None for kinds that are of no concern here. Raises DecodeError."""
    kind = kind_of(key)
    pair = _PAIRS.get(kind)
    return None if pair is None else (kind, decode(pair[0], kind, key, _NUMBER.size))


def read_entry(key: bytes, value: bytes) -> tuple[int, Message, Message] | None:
    """What a record says, with the number of its kind; None for kinds that are of no concern here. Raises DecodeError."""
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
    """Whether a value of this version is read. Asserted of values that are written, an error in those that are read."""
    return 0 <= version <= (4 if value_class in _NEWEST_VALUE else 0)
