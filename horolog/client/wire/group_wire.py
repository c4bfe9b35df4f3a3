"""Subscriptions and assignments of a classic consumer group as the client's own values, see `protocol.group_metadata`."""

from collections.abc import Iterable
from typing import NamedTuple

from horolog.client.values.types import TopicPartition
from horolog.protocol import group_metadata
from horolog.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from horolog.protocol.messages.consumer_protocol import TopicPartition as OwnedTopic
from horolog.protocol.topic_partition import by_topic

WRITTEN_SUBSCRIPTION = 2  # names the owned partitions, and since which generation
WRITTEN_ASSIGNMENT = 0


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
    return group_metadata.write_subscription(WRITTEN_SUBSCRIPTION, message)


def decode_subscription(data: bytes) -> Subscription:
    message = group_metadata.read_subscription(data)
    owned = tuple(TopicPartition(each.topic, index) for each in message.owned_partitions for index in each.partitions)
    return Subscription(tuple(message.topics), owned, message.generation_id, message.user_data)


def encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    return group_metadata.write_assignment(WRITTEN_ASSIGNMENT, by_topic(partitions))


def decode_assignment(data: bytes) -> list[TopicPartition]:
    assigned = group_metadata.read_assignment(data).assigned_partitions
    return [TopicPartition(each.topic, index) for each in assigned for index in each.partitions]
