"""The segments of the partitions that a broker leads, from their upload until their objects are removed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from horolog.base.clock import Clock
from horolog.broker.bucket.bucket_segment import BucketSegment
from horolog.broker.bucket.covered import Covered
from horolog.broker.bucket.local_segments import LocalSegments
from horolog.broker.bucket.manifest_keeper import ManifestEvents, ManifestKeeper, Moved
from horolog.broker.bucket.object_removals import ObjectRemovals
from horolog.broker.bucket.segment_uploader import OffLoop, SegmentUploader, Uploads, at_once
from horolog.broker.bucket.shipped_partition import ShippedPartition
from horolog.broker.bucket.store_access import StoreAccess

log = logging.getLogger(__name__)

HOUR_MS = 3_600_000


class SegmentCare(NamedTuple):
    """How a broker looks after segments: the settings of these names, and a way to another thread."""

    close_after_ms: Callable[[], int] = lambda: HOUR_MS
    delete_delay_ms: Callable[[], int] = lambda: HOUR_MS
    off_loop: OffLoop = at_once


class LedSegments:
    """See the module's docstring. `look` is called now and then."""

    def __init__(
        self,
        store: StoreAccess,
        clock: Clock,
        new_nonce: Callable[[], bytes],
        care: SegmentCare,
        room_bytes: Callable[[], int],
    ) -> None:
        """`room_bytes` is how much of the cache is left for local copies."""
        self.removals = ObjectRemovals(store, clock.monotonic, care.delete_delay_ms)
        self.manifests = ManifestKeeper(store, new_nonce, ManifestEvents(self._named, self.removals.later))
        uploads = Uploads(clock, new_nonce, care.off_loop, care.close_after_ms, self.manifests.name)
        self.uploader = SegmentUploader(store, uploads)
        self.local = LocalSegments(room_bytes, clock.wall_ms)

    def __repr__(self) -> str:
        return f"<LedSegments: {self.manifests!r}, {self.uploader!r}, {self.removals!r}>"

    def keep(self, partition: ShippedPartition, covered: Covered) -> None:
        """A partition is led here from now on."""
        self.manifests.keep(partition, covered)
        self.uploader.keep(partition, covered)

    def drop(self, partition: ShippedPartition) -> None:
        """It is not led here any more."""
        self.uploader.drop(partition)
        self.manifests.drop(partition)
        self.local.drop(partition)

    def remove(self, partition: ShippedPartition) -> None:
        """Its topic is deleted."""
        self.manifests.remove(partition)
        self.drop(partition)

    def move_start(self, partition: ShippedPartition, offset: int, moved: Moved) -> None:
        self.manifests.move(partition, offset, moved)

    def look(self) -> None:
        self.uploader.look()
        self.local.look()
        self.removals.look()

    def _named(self, partition: ShippedPartition, segments: Sequence[BucketSegment]) -> None:
        log.info("%r: the bucket has its segments up to offset %s", partition, segments[-1].next_offset)
        for one in segments:
            self.local.add(partition, one)
