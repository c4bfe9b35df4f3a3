"""What the bucket holds of a partition as segments, so that no WAL is read for it."""

from __future__ import annotations

from typing import NamedTuple

from horolog.broker.bucket.bucket_segment import BucketSegment
from horolog.broker.bucket.manifest import Manifest


class Covered(NamedTuple):
    """The segments of a partition in the bucket, and the state of the partition where they end."""

    log_start_offset: int = 0
    segments: tuple[BucketSegment, ...] = ()
    """In order, with nothing between them."""
    producers: bytes = b""
    """A snapshot of producers just before the end; empty if there are none."""
    epochs: tuple[tuple[int, int], ...] = ()
    """Leader epochs and where each begins."""
    batches: bytes = b""
    """More of these producers' batches, as `horolog-producers` has them; empty if there are none."""
    transactions: bytes = b""
    """The index of aborted transactions of the last segment."""
    manifest: Manifest | None = None
    """The newest manifest, which says all this; None if there is none."""

    @property
    def end_offset(self) -> int:
        return self.segments[-1].contents.next_offset if self.segments else 0


NOTHING = Covered()
