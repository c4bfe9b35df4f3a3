"""The lag of groups: in records, and in seconds since the time of the first record that they have not read.

The time is that of the batch in which this record lies, read from the batch's head alone and remembered while the
group stays where it is: a scrape costs one small read per partition whose group has moved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from horolog.broker.cluster.topic import Topic
from horolog.broker.groups.classic_group import CONSUMER_PROTOCOL, ClassicGroup
from horolog.broker.groups.consumer_group import ConsumerGroup
from horolog.broker.groups.registry import Group
from horolog.broker.groups.streams.endpoints import partitions_of_tasks
from horolog.broker.groups.streams.streams_group import StreamsGroup
from horolog.broker.log.partition import OffsetOutOfRange, Partition
from horolog.broker.log.storage import StorageFault
from horolog.protocol.errors import DecodeError
from horolog.protocol.group_metadata import read_assignment
from horolog.protocol.records.head import (
    ATTRIBUTES,
    ATTRIBUTES_AT,
    BASE_TIMESTAMP_AT,
    MAGIC_AT,
    MAX_TIMESTAMP_AT,
    MESSAGE_TIMESTAMP_AT,
    TIMES_END_AT,
    TIMESTAMP,
)
from horolog.protocol.records.timestamps import TIMESTAMP_TYPE_BIT
from horolog.protocol.topic_partition import TopicPartition

NO_TIME = -1
REMEMBERED = 1024
SHORT_BYTES = 4096


def lag_records(partition: Partition, committed: int) -> int:
    """Offsets between what was committed and the end; records that retention has removed are not counted."""
    return max(0, partition.high_watermark - max(committed, partition.log_start_offset))


def uncommitted_records(
    group: Group,
    partitions: Mapping[TopicPartition, Partition],
    topics: Mapping[bytes, Topic],
) -> int:
    """The records in partitions that a group's members read, and where it has committed nothing; `topics` are by id."""
    asked = set(_read_by_members(group, topics))
    return sum(lag_records(partitions[key], 0) for key in asked if key in partitions and group.offsets.get(key) is None)


def _read_by_members(group: Group, topics: Mapping[bytes, Topic]) -> Iterator[TopicPartition]:
    if isinstance(group, ConsumerGroup):
        for one in group.members.values():
            for topic_id, indexes in one.current.assigned.items():
                if topic_id in topics:
                    yield from ((topics[topic_id].name, index) for index in indexes)
    elif isinstance(group, StreamsGroup):
        subtopologies = group.configured and group.configured.subtopologies
        for runner in group.members.values():
            for topic in partitions_of_tasks(runner.current.assigned.active, subtopologies or {}):
                yield from ((topic.topic, index) for index in topic.partitions)
    elif isinstance(group, ClassicGroup) and group.protocol_type == CONSUMER_PROTOCOL:
        for member in group.members.values():
            data = bytes(member.assignment)
            yield from _assigned(data) if len(data) <= SHORT_BYTES else _assigned.__wrapped__(data)


@lru_cache(maxsize=REMEMBERED)
def _assigned(data: bytes) -> tuple[TopicPartition, ...]:
    """The partitions of a member; none if its leader wrote something else."""
    try:
        found = read_assignment(data).assigned_partitions
    except DecodeError:
        return ()
    return tuple((one.topic, index) for one in found for index in one.partitions)


class FirstUnread:
    """The times of the first unread records, each read once."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._times: dict[tuple[Partition, int], int] = {}
        self._next: dict[tuple[Partition, int], int] = {}

    def begin(self) -> None:
        """A new round: groups not asked for in it are forgotten after it."""
        self._times, self._next = self._next, {}

    def lag_seconds(self, partition: Partition, committed: int, now_ms: int) -> float | None:
        """Zero when everything is read; None when the record has no time or cannot be read."""
        if not lag_records(partition, committed):
            return 0.0
        offset = max(committed, partition.log_start_offset)
        key = (partition, offset)
        time_ms = self._times.get(key)
        if time_ms is None:
            time_ms = _time_at(partition, offset)
        if time_ms is None:
            return None
        if len(self._next) < self._limit:
            self._next[key] = time_ms
        return None if time_ms < 0 else max(0, now_ms - time_ms) / 1000


def _time_at(partition: Partition, offset: int) -> int | None:
    """None if it cannot be read now: bytes may be on their way here from a store, or a disk may work again."""
    try:
        head = partition.read(offset, TIMES_END_AT, at_least_one=False)
    except (OffsetOutOfRange, StorageFault):
        return None
    return batch_time(head)


def batch_time(head: bytes) -> int:
    """The time of the first record of a batch, or that of a message; -1 for none."""
    magic = head[MAGIC_AT] if len(head) > MAGIC_AT else 0
    if magic == 1 and len(head) >= MESSAGE_TIMESTAMP_AT + TIMESTAMP.size:
        time_ms: int = TIMESTAMP.unpack_from(head, MESSAGE_TIMESTAMP_AT)[0]
        return time_ms
    if magic < 2 or len(head) < TIMES_END_AT:
        return NO_TIME
    appended = ATTRIBUTES.unpack_from(head, ATTRIBUTES_AT)[0] & TIMESTAMP_TYPE_BIT
    batch_ms: int = TIMESTAMP.unpack_from(head, MAX_TIMESTAMP_AT if appended else BASE_TIMESTAMP_AT)[0]
    return batch_ms
