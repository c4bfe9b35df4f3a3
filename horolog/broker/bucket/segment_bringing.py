"""Brings whole segments out of the bucket for a local log that has to be complete: compacted topics, and those that coordinators read.

A log is brought in pieces, each held against the sums of the `.meta` before it is written. A segment that is lost or altered is left out,
which is logged, and its objects stay in the bucket.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from crc32c import crc32c

from horolog.broker.bucket import segment_meta
from horolog.broker.bucket.bucket_segment import BucketSegment
from horolog.broker.bucket.local_copy import LocalCopy
from horolog.broker.bucket.parallel import in_parallel
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.bucket.segment_meta import SegmentMeta
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.bucket.unread_pages import is_unread
from horolog.broker.log.integrity import BLOCK_BYTES, BlockSums

log = logging.getLogger(__name__)

PIECE_BYTES = 4 * BLOCK_BYTES
AT_ONCE = 4
ATTEMPTS = 2


async def bring(
    store: StoreAccess, copy: LocalCopy, segments: Sequence[BucketSegment], is_wanted: Callable[[], bool]
) -> None:
    """Write these segments into a local log, as long as it is wanted. Raises StorageFault."""
    for one in segments:
        if not is_wanted():
            return
        try:
            await _bring(store, copy, one, is_wanted)
        except FormatError as error:
            if not is_wanted():
                return
            copy.leave_out(one.base_offset)
            store.given_up.add(one.log_key)
            log.error(
                "%s: offsets %s up to %s are lost unless it is restored and the partition moves: %s",
                one.log_key,
                one.base_offset,
                one.next_offset,
                error,
            )


async def _bring(store: StoreAccess, copy: LocalCopy, segment: BucketSegment, is_wanted: Callable[[], bool]) -> None:
    """Raises FormatError if the bucket does not have the segment as it was uploaded.

    While the store answers, the copy may be given up, and its folder removed or filled by another copy.
    """
    if is_unread(segment):
        raise FormatError("the page that names its segments cannot be read")
    meta = await _meta_of(store, segment)
    if not is_wanted():
        return
    copy.begin_whole(segment.base_offset, meta.transaction_index)
    sums = meta.seal.sums()
    starts = list(range(0, sums.size_bytes, PIECE_BYTES))
    for begin in range(0, len(starts), AT_ONCE):
        some = starts[begin : begin + AT_ONCE]
        pieces = await in_parallel([partial(_piece, store, segment.log_key, sums, start) for start in some], AT_ONCE)
        if not is_wanted():
            return
        for start, data in zip(some, pieces, strict=True):
            if data is None:
                raise FormatError(f"bytes from {start} on are missing, or not those that were uploaded")
            copy.write_whole(data, start)


async def _meta_of(store: StoreAccess, segment: BucketSegment) -> SegmentMeta:
    data = await store.read(segment.meta_key)
    if data is None:
        raise FormatError("its .meta is missing")
    meta = segment_meta.decode(data)
    holds, named = meta.seal.contents, segment.contents
    found = meta.seal.base_offset, holds.size_bytes, holds.next_offset
    if found != (segment.base_offset, named.size_bytes, named.next_offset):
        raise FormatError("its .meta belongs to another segment")
    return meta


async def _piece(store: StoreAccess, key: str, sums: BlockSums, start: int) -> bytes | None:
    end = min(start + PIECE_BYTES, sums.size_bytes)
    for _ in range(ATTEMPTS):
        data = await store.read_range(key, start, end)
        if data is not None and all(_are_right(sums, start, end, data)):
            return data
    return None


def _are_right(sums: BlockSums, start: int, end: int, data: bytes) -> Iterator[bool]:
    view = memoryview(data)
    for number in range(start // BLOCK_BYTES, -(-end // BLOCK_BYTES)):
        begin, upto = sums.span_of(number)
        part = view[begin - start : upto - start]
        yield len(part) == upto - begin and crc32c(part) == sums.sum_of(number)
