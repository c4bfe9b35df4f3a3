"""The expiry of a partition whose records are shipped: its start moves first, for every later leader, and then segments before it go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from horolog.broker.log.partition import SegmentExpiry
from horolog.broker.log.partition.retention import Cause, Expired

if TYPE_CHECKING:
    from horolog.broker.log.partition import Partition

MoveStart = Callable[[int], None]
"""Has the start moved to an offset, sooner or later."""


class ShippedExpiry(SegmentExpiry):
    """Finds only segments before the start, and has the start moved behind those that have expired otherwise."""

    __slots__ = ("move_start",)

    move_start: MoveStart | None
    """None as long as the partition is not led."""

    def find(self, partition: Partition, now_ms: int) -> Sequence[Expired]:
        expired = super().find(partition, now_ms)
        gone = [one for one in expired if one.cause is Cause.START_OFFSET]
        if self.move_start is not None and len(gone) < len(expired):
            self.move_start(end_of(partition, expired[-1]))
        return gone


def end_of(partition: Partition, expired: Expired) -> int:
    """Where an expired segment ends; of the last one that is the high watermark, because unshipped records never expire."""
    following = (one.base_offset for one in partition.segments if one.base_offset > expired.base_offset)
    return next(following, partition.high_watermark)
