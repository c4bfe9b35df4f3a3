"""What the bucket holds of a partition as segments, so that no WAL is read for it."""

from __future__ import annotations

from typing import NamedTuple

from horolog.broker.bucket.remote_segment import BucketSegment, Parts
from horolog.broker.bucket.sealed_lines import FormatError


class Covered(NamedTuple):
    """The segments of a partition in the bucket, and the state of the partition where they end."""

    log_start_offset: int = 0
    segments: tuple[BucketSegment, ...] = ()
    """In order, with nothing between them."""
    producers: bytes = b""
    """A snapshot of producers just before the end; empty if there are none."""
    epochs: tuple[tuple[int, int], ...] = ()
    """Leader epochs and where each begins."""

    @property
    def end_offset(self) -> int:
        return self.segments[-1].contents.next_offset if self.segments else 0


NOTHING = Covered()


class NoSegments:
    """A bucket that has no partition's segments: all lies in WALs. See `seams.SegmentsInBucket`."""

    async def newest(self, _opening: object) -> Covered:
        return NOTHING

    def decode_meta(self, data: bytes) -> Parts:
        raise FormatError(f"{len(data)} bytes of no segment")
