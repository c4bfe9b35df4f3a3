"""Decides which expired segments of a partition may be removed: producers are remembered longer than their records.

A segment is removed at once if the partition knows no producers, or if a snapshot behind the segment is on the disk: closed segments
have the one of their roll. The others wait for the snapshot that the next sync writes.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from horolog.base.readable import time_and_number
from horolog.broker.log.partition import retention
from horolog.broker.log.partition.retention import Expired
from horolog.broker.log.partition.sync_state import SyncState
from horolog.broker.log.segments import Segment

if TYPE_CHECKING:
    from horolog.broker.log.partition.partition import Partition

log = logging.getLogger(__name__)


class SegmentExpiry:
    """The expiry of one partition; `waiting_upto` is the offset up to which expired segments wait."""

    __slots__ = ("_future_warnings", "_sync_state", "waiting_upto")

    def __init__(self, name: str, sync_state: SyncState) -> None:
        self._sync_state = sync_state
        self._future_warnings = retention.FutureWarnings(name)
        self.waiting_upto: int | None = None

    def __repr__(self) -> str:
        return f"<SegmentExpiry: waiting up to {self.waiting_upto}>"

    @property
    def is_due(self) -> bool:
        """Whether the awaited snapshot is on the disk."""
        return self.waiting_upto is not None and not self._sync_state.has_snapshots

    @staticmethod
    def decide(partition: Partition, now_ms: int) -> retention.RetentionDecision:
        """What retention would remove at a time."""
        ends = partition.log_start_offset, partition.high_watermark, partition.log_end_offset
        return retention.decide_of(partition.segments, partition.config, now_ms, *ends)

    def find(self, partition: Partition, now_ms: int) -> Sequence[Expired]:
        """The segments beyond the retention time, size or start offset, the oldest first."""
        decision = self.decide(partition, now_ms)
        if self._future_warnings.tell(decision.blocked_by_future, now_ms):
            partition.folder.counters.segments_kept_by_future.value += 1
        return decision.expired

    def find_waiting(self, partition: Partition, now_ms: int) -> Sequence[Expired]:
        """The segments that had expired when the wait began, and still have."""
        upto = self.waiting_upto or 0
        return [one for one in self.find(partition, now_ms) if one.base_offset < upto]

    def dispensable(self, partition: Partition, expired: Sequence[Expired]) -> list[Segment]:
        """The expired segments, none of them active, that may be removed now."""
        segments = partition.segments[: len(expired)]
        upto = self._sync_state.snapshot_offset if len(partition.producers) else partition.log_end_offset
        going = [one for one in segments if one.next_offset <= upto]
        self.waiting_upto = partition.segments[len(expired)].base_offset if len(going) < len(segments) else None
        for segment, one in zip(going, expired, strict=False):
            place = partition.topic, partition.index
            offsets = segment.base_offset, segment.next_offset - 1
            log.info(
                "%s-%s: the segment of offsets %s to %s, with times up to %s, expired (%s)",
                *place,
                *offsets,
                time_and_number(segment.max_timestamp) if segment.max_timestamp >= 0 else "none",
                one.cause,
            )
        return going

    def forget(self, base_offset: int) -> None:
        self._future_warnings.forget(base_offset)
