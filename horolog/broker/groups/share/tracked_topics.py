"""Which partitions of a share group have a state at the persister, as values: the group's log keeps them in one record.

A partition is *initializing* while the persister is asked to begin its state, and may be assigned once it is *initialized*.
A topic is *deleting* while the persister is asked to delete its states.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from horolog.broker.groups.assignors import Assignment
from horolog.protocol.messages.coordinator_records import (
    ShareGroupStatePartitionMetadataValue,
    TopicInfo,
    TopicPartitionsInfo,
)

LONG_AGO = -1


class TrackedTopic(NamedTuple):
    """Some partitions of a topic; `since_ms` is when the persister was last asked to begin their states."""

    name: str
    partitions: frozenset[int]
    since_ms: int = LONG_AGO


Tracked = Mapping[bytes, TrackedTopic]


class TrackedTopics(NamedTuple):
    """The three stages, by topic id."""

    initializing: Tracked
    initialized: Tracked
    deleting: Mapping[bytes, str]

    @property
    def is_empty(self) -> bool:
        return not (self.initializing or self.initialized or self.deleting)

    def known(self, topic_id: bytes, after_ms: int) -> frozenset[int]:
        """Partitions of a topic that need not be initialized: they are, or the persister was asked after this time."""
        done = self.initialized.get(topic_id)
        begun = self.initializing.get(topic_id)
        known = frozenset() if done is None else done.partitions
        return known if begun is None or begun.since_ms <= after_ms else known | begun.partitions

    def begin(self, topics: Tracked) -> TrackedTopics:
        """Topics begin to be initialized; a topic that was being deleted no longer is."""
        deleting = {topic_id: name for topic_id, name in self.deleting.items() if topic_id not in topics}
        return TrackedTopics(_merge(self.initializing, topics), self.initialized, deleting)

    def complete(self, topics: Tracked) -> TrackedTopics:
        """The persister has begun their states."""
        return TrackedTopics(_without(self.initializing, topics), _merge(self.initialized, topics), self.deleting)

    def give_up(self, topics: Tracked) -> TrackedTopics:
        """The persister has refused: the next heartbeat asks again."""
        return TrackedTopics(_without(self.initializing, topics), self.initialized, self.deleting)

    def delete(self, topic_ids: Iterable[bytes], names: Mapping[bytes, str]) -> TrackedTopics:
        """The states of topics are being deleted."""
        gone = set(topic_ids)
        return TrackedTopics(
            {one: topic for one, topic in self.initializing.items() if one not in gone},
            {one: topic for one, topic in self.initialized.items() if one not in gone},
            {**self.deleting, **{one: names[one] for one in gone}},
        )

    def forget(self, topic_ids: Iterable[bytes]) -> TrackedTopics:
        """Topics have no states any more."""
        gone = set(topic_ids)
        return TrackedTopics(
            {one: topic for one, topic in self.initializing.items() if one not in gone},
            {one: topic for one, topic in self.initialized.items() if one not in gone},
            {one: name for one, name in self.deleting.items() if one not in gone},
        )

    def partitions(self) -> dict[bytes, TrackedTopic]:
        """All partitions that may have a state, whatever their stage, apart from those of deleting topics."""
        return _merge(self.initialized, self.initializing)

    def assignable(self, counts: Mapping[bytes, int]) -> Assignment:
        """The initialized partitions of existing topics."""
        return {
            topic_id: frozenset(one for one in self.initialized[topic_id].partitions if one < count)
            for topic_id, count in counts.items()
            if topic_id in self.initialized
        }

    def value(self) -> ShareGroupStatePartitionMetadataValue:
        return ShareGroupStatePartitionMetadataValue(
            initializing_topics=_stored(self.initializing),
            initialized_topics=_stored(self.initialized),
            deleting_topics=[TopicInfo(topic_id=one, topic_name=name) for one, name in self.deleting.items()],
        )


NOTHING_TRACKED = TrackedTopics({}, {}, {})


def tracked_of(value: ShareGroupStatePartitionMetadataValue) -> TrackedTopics:
    """A record as a value. What was initializing is asked for again: the answer may be lost."""
    return TrackedTopics(
        _read(value.initializing_topics),
        _read(value.initialized_topics),
        {one.topic_id: one.topic_name for one in value.deleting_topics},
    )


def _read(topics: Iterable[TopicPartitionsInfo]) -> Tracked:
    return {one.topic_id: TrackedTopic(one.topic_name, frozenset(one.partitions)) for one in topics}


def _stored(topics: Tracked) -> list[TopicPartitionsInfo]:
    return [
        TopicPartitionsInfo(topic_id=topic_id, topic_name=one.name, partitions=sorted(one.partitions))
        for topic_id, one in topics.items()
    ]


def _merge(topics: Tracked, more: Tracked) -> dict[bytes, TrackedTopic]:
    merged = dict(topics)
    for topic_id, one in more.items():
        before = merged.get(topic_id)
        merged[topic_id] = one if before is None else one._replace(partitions=before.partitions | one.partitions)
    return merged


def _without(topics: Tracked, fewer: Tracked) -> dict[bytes, TrackedTopic]:
    left = {}
    for topic_id, one in topics.items():
        partitions = one.partitions - fewer[topic_id].partitions if topic_id in fewer else one.partitions
        if partitions:
            left[topic_id] = one._replace(partitions=partitions)
    return left
