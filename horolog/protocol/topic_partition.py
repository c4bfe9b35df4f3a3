"""How a partition is named, by its topic and its number, and how the mentions of a topic in one message are merged.

The client's `TopicPartition` is one, too.
"""

from collections.abc import Hashable, Iterable
from typing import TypeVar

TopicPartition = tuple[str, int]

Topic = TypeVar("Topic", bound=Hashable)
Mention = TypeVar("Mention")


def each_topic_once(mentions: Iterable[tuple[Topic, Iterable[Mention]]]) -> dict[Topic, list[Mention]]:
    """Each topic in the order of its first mention, with the parts of all its mentions."""
    topics: dict[Topic, list[Mention]] = {}
    for topic, parts in mentions:
        topics.setdefault(topic, []).extend(parts)
    return topics


def by_topic(partitions: Iterable[tuple[Topic, Mention]]) -> dict[Topic, list[Mention]]:
    """The partitions of each topic, in their order."""
    return each_topic_once((topic, (part,)) for topic, part in partitions)
