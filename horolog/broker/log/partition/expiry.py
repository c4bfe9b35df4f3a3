"""What of a partition has expired, and what of that may go: a producer is known longer than its records are kept.

A segment goes at once if nobody is known who has written here, or if a snapshot that lies behind it is on the disk: closed segments have that
of their roll. The rest waits for the snapshot that the next sync writes.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from horolog.broker.log.partition import retention
from horolog.broker.log.partition.retention import Expired
from horolog.broker.log.partition.sync_state import SyncState
from horolog.broker.log.segments import Segment

if TYPE_CHECKING:
    from horolog.broker.log.partition.partition import Partition

log = logging.getLogger(__name__)


class Expiry:
    """One partition's; `waiting_upto` says up to where what has expired waits."""

    __slots__ = ("_future_warnings", "_sync_state", "waiting_upto")

    def __init__(self, name: str, sync_state: SyncState) -> None:
        self._sync_state = sync_state
        self._future_warnings = retention.FutureWarnings(name)
        self.waiting_upto: int | None = None

    def __repr__(self) -> str:
        return f"<Expiry: waiting up to {self.waiting_upto}>"

    @property
    def is_due(self) -> bool:
        """Whether the snapshot is there that was waited for."""
        return self.waiting_upto is not None and not self._sync_state.has_snapshots

    @staticmethod
    def decide(partition: Partition, now_ms: int) -> retention.Decision:
        """What retention would take out of use at a time."""
        ends = partition.log_start_offset, partition.high_watermark, partition.log_end_offset
        return retention.decide_of(partition.segments, partition.config, now_ms, *ends)

    def find(self, partition: Partition, now_ms: int) -> Sequence[Expired]:
        """What has outlived its time, size or start offset, the oldest first."""
        decision = self.decide(partition, now_ms)
        if self._future_warnings.tell(decision.blocked_by_future, now_ms):
            partition.folder.counters.segments_kept_by_future.value += 1
        return decision.expired

    def find_waiting(self, partition: Partition, now_ms: int) -> Sequence[Expired]:
        """What had expired when something began to wait, and still has."""
        upto = self.waiting_upto or 0
        return [one for one in self.find(partition, now_ms) if one.base_offset < upto]

    def dispensable(self, partition: Partition, expired: Sequence[Expired]) -> list[Segment]:
        """Of the segments that have expired, none of which is active, those that may go now."""
        segments = partition.segments[: len(expired)]
        upto = self._sync_state.snapshot_offset if len(partition.producers) else partition.log_end_offset
        going = [one for one in segments if one.next_offset <= upto]
        self.waiting_upto = partition.segments[len(expired)].base_offset if len(going) < len(segments) else None
        for segment, one in zip(going, expired, strict=False):
            log.info("%s-%s: segment %s expired (%s)", partition.topic, partition.index, segment, one.cause)
        return going

    def forget(self, base_offset: int) -> None:
        self._future_warnings.forget(base_offset)
