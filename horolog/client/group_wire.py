"""Messages between members of a classic consumer group: subscriptions and assignments, behind two bytes of version."""

import struct
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from horolog.client.types import TopicPartition
from horolog.protocol.compile import decode, encode
from horolog.protocol.errors import DecodeError
from horolog.protocol.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)
from horolog.protocol.messages.consumer_protocol import TopicPartition as OwnedTopic

NEWEST = 3
WRITTEN_SUBSCRIPTION = 2  # names the owned partitions, and since which generation
WRITTEN_ASSIGNMENT = 0
_VERSION = struct.Struct(">h")


class Subscription(NamedTuple):
    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1
    user_data: bytes | None = None


def encode_subscription(subscription: Subscription) -> bytes:
    message = ConsumerProtocolSubscription(
        topics=list(subscription.topics),
        user_data=subscription.user_data,
        owned_partitions=[
            OwnedTopic(topic=topic, partitions=indexes) for topic, indexes in by_topic(subscription.owned).items()
        ],
        generation_id=subscription.generation,
    )
    return _VERSION.pack(WRITTEN_SUBSCRIPTION) + encode(message, WRITTEN_SUBSCRIPTION)


def decode_subscription(data: bytes) -> Subscription:
    message = decode(ConsumerProtocolSubscription, _version(data), data, _VERSION.size)
    owned = tuple(TopicPartition(each.topic, index) for each in message.owned_partitions for index in each.partitions)
    return Subscription(tuple(message.topics), owned, message.generation_id, message.user_data)


def encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=indexes)
            for topic, indexes in by_topic(partitions).items()
        ],
        user_data=None,
    )
    return _VERSION.pack(WRITTEN_ASSIGNMENT) + encode(message, WRITTEN_ASSIGNMENT)


def decode_assignment(data: bytes) -> list[TopicPartition]:
    """An empty assignment is nothing at all: so it is handed out to members for which the leader had none."""
    if not data:
        return []
    message = decode(ConsumerProtocolAssignment, _version(data), data, _VERSION.size)
    return [TopicPartition(each.topic, index) for each in message.assigned_partitions for index in each.partitions]


def _version(data: bytes) -> int:
    if len(data) < _VERSION.size:
        raise DecodeError("a subscription or assignment without a version")
    version: int = _VERSION.unpack_from(data)[0]
    if version < 0:
        raise DecodeError(f"a subscription or assignment of version {version}")
    return min(version, NEWEST)


def by_topic(partitions: Iterable[TopicPartition]) -> Mapping[str, list[int]]:
    grouped: dict[str, list[int]] = {}
    for topic, index in partitions:
        grouped.setdefault(topic, []).append(index)
    return grouped
