"""The committed offsets of one group: one per partition, those pending in transactions, and when they expire."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from horolog.broker.groups.records import OFFSET, offset_entry
from horolog.protocol.messages.coordinator_records import OffsetCommitValue
from horolog.protocol.records.batch import Entry
from horolog.protocol.topic_partition import TopicPartition
from horolog.protocol.wire import NO_UUID

NEVER = -1
"""For `expire_ms`: the broker's retention applies."""


class Committed:
    """One committed offset; `log_offset` is its position in the log, by which the later of two is found."""

    __slots__ = ("commit_ms", "expire_ms", "leader_epoch", "log_offset", "metadata", "offset", "topic_id")

    def __init__(
        self,
        offset: int,
        leader_epoch: int,
        metadata: str,
        commit_ms: int,
        expire_ms: int = NEVER,
        topic_id: bytes = NO_UUID,
        log_offset: int = -1,
    ) -> None:
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.metadata = metadata
        self.commit_ms = commit_ms
        self.expire_ms = expire_ms
        self.topic_id = topic_id
        self.log_offset = log_offset

    def __repr__(self) -> str:
        return f"<Committed {self.offset} in epoch {self.leader_epoch}, at {self.log_offset} of the log>"

    @classmethod
    def read(cls, value: OffsetCommitValue, log_offset: int) -> Committed:
        return cls(
            value.offset,
            value.leader_epoch,
            value.metadata,
            value.commit_timestamp,
            value.expire_timestamp,
            value.topic_id,
            log_offset,
        )

    def entry(self, group_id: str, partition: TopicPartition, kind: int = OFFSET) -> Entry:
        # the one version with a time of expiry has no field for the topic's id
        topic_id = self.topic_id if self.expire_ms == NEVER else NO_UUID
        value = (self.offset, self.leader_epoch, self.metadata, self.commit_ms, self.expire_ms, topic_id)
        return offset_entry((group_id, *partition), value, kind)


def tombstone(group_id: str, partition: TopicPartition, kind: int = OFFSET) -> Entry:
    return offset_entry((group_id, *partition), None, kind)


class GroupOffsets:
    """The offsets of one group. A partition without an entry has no offset."""

    __slots__ = ("_committed", "_pending")

    def __init__(self) -> None:
        self._committed: dict[TopicPartition, Committed] = {}
        self._pending: dict[int, dict[TopicPartition, Committed]] | None = None

    def __repr__(self) -> str:
        return f"<GroupOffsets of {len(self._committed)} partitions, {len(self._pending or ())} transactions>"

    def __len__(self) -> int:
        return len(self._committed)

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._committed)

    def get(self, partition: TopicPartition) -> Committed | None:
        return self._committed.get(partition)

    def items(self) -> list[tuple[TopicPartition, Committed]]:
        return list(self._committed.items())

    def put(self, partition: TopicPartition, committed: Committed) -> None:
        """Keep a written offset, unless a later one in the log is known already."""
        before = self._committed.get(partition)
        if before is None or before.log_offset <= committed.log_offset:
            self._committed[partition] = committed

    def remove(self, partition: TopicPartition) -> None:
        self._committed.pop(partition, None)
        for pending in (self._pending or {}).values():
            pending.pop(partition, None)

    # -- transactions

    def put_pending(self, producer_id: int, partition: TopicPartition, committed: Committed) -> None:
        if self._pending is None:
            self._pending = {}
        self._pending.setdefault(producer_id, {})[partition] = committed

    def complete(self, producer_id: int, *, committed: bool) -> None:
        """A transaction has ended: its offsets count from now on if it was committed."""
        pending = (self._pending or {}).pop(producer_id, None)
        if not self._pending:
            self._pending = None
        if pending is not None and committed:
            for partition, offset in pending.items():
                self.put(partition, offset)

    @property
    def has_pending(self) -> bool:
        return self._pending is not None

    def is_pending(self, partition: TopicPartition) -> bool:
        return self._pending is not None and any(partition in one for one in self._pending.values())

    # -- expiry

    def expired(
        self, now_ms: int, retention_ms: int, since: Callable[[TopicPartition, Committed], int | None]
    ) -> list[TopicPartition]:
        """The partitions whose offsets have expired; `since` gives the start of the retention, None if it has not started."""
        found = []
        for partition, committed in self._committed.items():
            start_ms = since(partition, committed)
            if start_ms is None or self.is_pending(partition):
                continue
            limit_ms = committed.expire_ms if committed.expire_ms != NEVER else start_ms + retention_ms
            if now_ms >= limit_ms:
                found.append(partition)
        return found
