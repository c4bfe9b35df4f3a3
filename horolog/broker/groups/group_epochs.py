"""Epochs of groups whose assignments the broker makes: a new one begins when members or topics have changed."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Protocol

from horolog.broker.groups.decision import Decision
from horolog.protocol.records.batch import Entry

TopicsRead = Mapping[str, tuple[bytes, int]]
"""Id and partition count of every existing topic that a group reads, by name."""


class EpochGroup(Protocol):
    """The part of a group that its epochs change."""

    epoch: int
    assignment_epoch: int
    metadata_hash: int
    subscribed: frozenset[str]
    topics: TopicsRead | None

    def group_entry(self) -> Entry: ...


def begin_epoch(step: Decision[Any], topics: TopicsRead, *, bump: bool) -> bool:
    """Begin a new epoch if members (`bump`) or topics have changed; returns whether the epoch has no target assignment yet."""
    group: EpochGroup = step.group
    metadata_hash = group.metadata_hash
    if topics != group.topics:
        group.topics, group.subscribed = topics, frozenset(topics)
        metadata_hash = hash_of(topics)
    if bump or metadata_hash != group.metadata_hash:
        group.metadata_hash = metadata_hash
        group.epoch += 1
        step.entries.append(group.group_entry())
    return group.epoch > group.assignment_epoch


def hash_of(topics: TopicsRead) -> int:
    """A hash that changes when a topic is added, removed, created again or gets more partitions."""
    digest = blake2b(digest_size=8)
    for name, (topic_id, count) in sorted(topics.items()):
        digest.update(b"%s\x00%s%d\x00" % (name.encode(), topic_id, count))
    return int.from_bytes(digest.digest(), "big", signed=True) if topics else 0
