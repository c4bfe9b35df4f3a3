"""Verifies a segment's log against its sums, each block once after the segment was opened and before its first read."""

from crc32c import crc32c

from horolog.broker.log.integrity import BLOCK_BYTES, blocks_in
from horolog.broker.log.segments.segment import Segment


def verify(segment: Segment, position: int, end: int) -> None:
    """Verify the blocks of a range, unless they have been verified. Raises BeingRescanned."""
    unverified = segment.unverified
    if unverified is None:
        return
    for block in range(position // BLOCK_BYTES, min(blocks_in(end), len(unverified))):
        if unverified[block]:
            _verify_block(segment, block)
            unverified[block] = 0
    if 1 not in unverified:
        segment.unverified = None


def _verify_block(segment: Segment, block: int) -> None:
    start, end = segment.sums.span_of(block)
    if crc32c(segment.log.pread(end - start, start)) != segment.sums.sum_of(block):
        raise segment.suspected(f"bytes {start} to {end} are not what was written")
