"""What members of a classic consumer group send each other, as bytes: subscriptions and assignments, after their version.

A version that is not known yet is read as the newest known one, as every member must do with its peers.
"""

from collections.abc import Iterable, Mapping, Sequence
from struct import Struct
from typing import TypeVar

from horolog.protocol.compile import decode, encode
from horolog.protocol.errors import DecodeError
from horolog.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)

NEWEST_VERSION = 3
_VERSION = Struct(">h")
Told = TypeVar("Told", ConsumerProtocolSubscription, ConsumerProtocolAssignment)


def version_of(data: bytes) -> int:
    """The version in which a member reads and writes; raises DecodeError."""
    if len(data) < _VERSION.size:
        raise DecodeError("the metadata of a member has no version")
    version = int(_VERSION.unpack_from(data)[0])
    if version < 0:
        raise DecodeError(f"the metadata of a member has version {version}")
    return min(version, NEWEST_VERSION)


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """What a member subscribes to; raises DecodeError."""
    return _read(ConsumerProtocolSubscription, data)


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """What a leader has assigned to a member; raises DecodeError. A member without an assignment gets no bytes."""
    return _read(ConsumerProtocolAssignment, data) if data else ConsumerProtocolAssignment()


def write_subscription(version: int, subscription: ConsumerProtocolSubscription) -> bytes:
    return _VERSION.pack(version) + encode(subscription, version)


def write_assignment(version: int, topics: Mapping[str, Sequence[int]]) -> bytes:
    """Partitions by topic."""
    assigned = [
        ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=list(partitions))
        for topic, partitions in topics.items()
    ]
    return _VERSION.pack(version) + encode(ConsumerProtocolAssignment(assigned_partitions=assigned), version)


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """The topics of all members together; None if a subscription cannot be read."""
    topics: set[str] = set()
    try:
        for each in subscriptions:
            topics.update(read_subscription(each).topics)
    except DecodeError:
        return None
    return frozenset(topics)


def _read(kind: type[Told], data: bytes) -> Told:
    return decode(kind, version_of(data), data, _VERSION.size)
