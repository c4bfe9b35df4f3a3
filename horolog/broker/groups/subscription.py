"""What the members of a classic consumer group say to each other, as far as the broker reads it: topics, and assignments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from struct import Struct

from horolog.protocol.compile import decode, encode
from horolog.protocol.errors import DecodeError
from horolog.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)

_VERSION = Struct(">h")
NEWEST_VERSION = 3


def read_subscription(metadata: bytes) -> ConsumerProtocolSubscription:
    """A member's metadata; raises DecodeError. A version that is not known yet is read as the newest that is."""
    return decode(ConsumerProtocolSubscription, _version(metadata), metadata, _VERSION.size)


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """What a leader has given a member; raises DecodeError."""
    return decode(ConsumerProtocolAssignment, _version(data), data, _VERSION.size)


def write_assignment(version: int, topics: Mapping[str, Sequence[int]]) -> bytes:
    assigned = [
        ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=list(partitions))
        for topic, partitions in topics.items()
    ]
    return _VERSION.pack(version) + encode(ConsumerProtocolAssignment(assigned_partitions=assigned), version)


def version_of(metadata: bytes) -> int:
    """The version in which a member reads and writes; raises DecodeError."""
    return _version(metadata)


def _version(data: bytes) -> int:
    if len(data) < _VERSION.size:
        raise DecodeError("the metadata of a member has no version")
    version = int(_VERSION.unpack_from(data)[0])
    if version < 0:
        raise DecodeError(f"the metadata of a member has version {version}")
    return min(version, NEWEST_VERSION)


def subscribed_topics(metadata: Iterable[bytes]) -> frozenset[str] | None:
    """The topics of all members together; None if one of them does not say it in the usual way."""
    topics: set[str] = set()
    try:
        for each in metadata:
            topics.update(read_subscription(each).topics)
    except DecodeError:
        return None
    return frozenset(topics)
