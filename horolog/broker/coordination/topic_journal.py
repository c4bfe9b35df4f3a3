"""An internal topic as its coordinator uses it: made when it is first needed, appended to, read back at a start.

It is an ordinary compacted topic of this broker's log. What a coordinator keeps in it is in that coordinator's own journal.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from horolog.base.clock import Clock
from horolog.broker.base.java_hash import partition_for
from horolog.broker.cluster.cluster import Cluster, Created
from horolog.broker.cluster.new_topics import NewTopic
from horolog.broker.commit.committer import Committer
from horolog.broker.commit.safety import Failures
from horolog.broker.log.partition import Partition
from horolog.broker.log.storage import StorageFault
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.broker.on_record.internal_topics import overrides_of, partition_count_of
from horolog.protocol.errors import ErrorCode
from horolog.protocol.records.batch import BatchHeader, is_cut, iter_batch, read_header
from horolog.protocol.records.record import Record

log = logging.getLogger(__name__)

COORDINATOR_IS_AWAY = frozenset(
    {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
)
"""Behind these a request is sent again, perhaps to another broker."""
READ_BYTES = 1024 * 1024


class StoredBatch(NamedTuple):
    """One batch of a piece of the log."""

    header: BatchHeader
    data: bytes
    position: int

    def records(self) -> Iterator[Record]:
        """Its records one after the other; raises DecodeError at one that cannot be read."""
        return iter_batch(self.data, self.position)


class TopicJournal:
    """What the journals of all coordinators have in common."""

    def __init__(self, topic: str, cluster: Cluster, committer: Committer, clock: Clock) -> None:
        self._topic = topic
        self._cluster = cluster
        self._committer = committer
        self._clock = clock

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.shard_count} partitions>"

    def find(self, shard: int) -> Partition | ErrorCode:
        """The partition, if this broker leads it; else another broker coordinates what it keeps."""
        topic = self._cluster.topics.get(self._topic)
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic is None else topic.find(shard)

    @property
    def led_here(self) -> Sequence[Partition]:
        """The partitions that this broker leads: it coordinates what they keep."""
        topic = self._cluster.topics.get(self._topic)
        return topic.led_here if topic is not None else ()

    @property
    def led_elsewhere(self) -> set[int]:
        """The partitions that other brokers lead; none while there is no topic."""
        topic = self._cluster.topics.get(self._topic)
        here = {one.index for one in self.led_here}
        return set() if topic is None else set(range(topic.partition_count)) - here

    def leads(self, shard: int) -> bool:
        """Whether this broker leads the partition, or will, as there is no topic yet."""
        topic = self._cluster.topics.get(self._topic)
        return topic is None or isinstance(topic.find(shard), Partition)

    def absence(self, shard: int) -> ErrorCode:
        """Why this broker does not know what a partition keeps that it does not serve: it still opens it, or another one coordinates it."""
        topic = self._cluster.topics.get(self._topic)
        is_opening = topic is not None and self._cluster.is_opening((topic.id, shard))
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if is_opening else ErrorCode.NOT_COORDINATOR

    @property
    def shard_count(self) -> int:
        """How many partitions there are, or will be."""
        topic = self._cluster.topics.get(self._topic)
        return topic.partition_count if topic is not None else partition_count_of(self._topic, self._cluster.settings)

    def shard_of(self, name: str) -> int:
        """The partition that keeps a group or a transactional id: the same one on every Kafka broker."""
        return partition_for(name, self.shard_count)

    def make_topic(self) -> None:
        """Make the topic if there is none; raises ClusterError, also while it is being made. Another broker may have made it first."""
        if self._topic in self._cluster.topics:
            return
        new = self._new_topic()
        try:
            self._cluster.create_topic(new.name, new.partition_count, new.overrides)
        except ClusterError:
            if self._topic not in self._cluster.topics:
                raise

    def when_made(self, done: Callable[[ClusterError | None], None]) -> None:
        """Make the topic if there is none, and call `done` once it is there, or could not be made."""
        if self._topic in self._cluster.topics:
            done(None)
            return

        def made(results: Created) -> None:
            refusal = next((one for one in results if isinstance(one, ClusterError)), None)
            done(None if self._topic in self._cluster.topics else refusal)

        self._cluster.create_topics([self._new_topic()], made)

    def _new_topic(self) -> NewTopic:
        settings = self._cluster.settings
        overrides = overrides_of(self._topic, settings)
        return NewTopic(self._topic, partition_count_of(self._topic, settings), overrides=overrides or {})

    def submit(
        self, partitions: Sequence[Partition], done: Callable[[Failures], None], *, durable: bool, records: int = 1
    ) -> None:
        """Call `done` with what failed once all that was appended to these partitions is written, and synced if `durable`."""
        self._committer.submit_own(partitions, done, durable=durable, records=records)

    @property
    def has_room(self) -> bool:
        """Whether clients may have more written."""
        return self._committer.has_room

    @staticmethod
    def read_batches(partition: Partition) -> Iterator[list[StoredBatch]]:
        """Every batch of a partition in order, a piece of the log with every step; raises StorageFault."""
        offset = partition.log_start_offset
        while offset < partition.high_watermark:
            data = partition.read(offset, READ_BYTES)
            if not data:
                return
            piece = _whole_batches(data)
            offset = piece[-1].header.last_offset + 1
            yield piece


def _whole_batches(data: bytes) -> list[StoredBatch]:
    """The batches of a read; the last may be cut, and is read again with the next piece."""
    batches: list[StoredBatch] = []
    position = 0
    while position < len(data) and not (position and is_cut(data, position)):
        header = read_header(data, position)
        batches.append(StoredBatch(header, data, position))
        position += header.size_bytes
    return batches


def put_offline(partition: Partition, fault: StorageFault) -> None:
    """Take a partition offline. What it holds is not forgotten: it is opened and read again when its disk works."""
    partition.condition.go_offline(f"it cannot be read: {fault}")
    log.error("%s: %s", partition, fault)
