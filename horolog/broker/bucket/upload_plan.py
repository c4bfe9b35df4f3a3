"""Decides which closed segment of a local log goes into the bucket next: the first one that does not lie there as it is here.

Compaction puts one segment in the place of several, or leaves a shorter one. The bucket's copy of it ends where the next local segment
begins, also if its last records are gone: what manifests cover never becomes less, and offsets are never used again. A segment that has
vanished is part of the one before it in this sense.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from horolog.broker.base.topic_names import INTERNAL_TOPICS
from horolog.broker.bucket.bucket_segment import BucketSegment
from horolog.broker.bucket.covered import Covered
from horolog.broker.bucket.unread_pages import is_unread
from horolog.broker.config.topic_settings import TopicConfig
from horolog.broker.log.partition import Partition
from horolog.broker.log.segments import Segment


class Due(NamedTuple):
    """A segment that goes into the bucket, and the offset where it ends there."""

    segment: Segment
    end_offset: int


class InBucket(NamedTuple):
    """What the bucket has of a partition."""

    sent: Mapping[Segment, BucketSegment]
    """The local segments that lie there."""
    unread: Sequence[int] = ()
    """Where segments begin that lie there, and could not be read: no other one takes their place."""
    pages_end: int = 0
    """Segments in pages stay as they are."""
    end_offset: int = 0


def is_whole(topic: str, config: TopicConfig) -> bool:
    """Whether all segments of a log lie here as well: coordinators read them without waiting, and compaction writes them again."""
    return config.compact or topic in INTERNAL_TOPICS


def local_segments(partition: Partition) -> list[Segment]:
    """The closed segments whose files lie here."""
    storage = partition.folder.storage
    return [one for one in partition.segments[:-1] if one.folder.storage is storage and one.size_bytes]


def sent_of(partition: Partition, covered: Covered) -> dict[Segment, BucketSegment]:
    """The local segments that were brought here from the bucket."""
    by_base = {one.base_offset: one for one in covered.segments if not is_unread(one)}
    return {one: by_base[one.base_offset] for one in local_segments(partition) if one.base_offset in by_base}


def next_upload(partition: Partition, known: InBucket) -> Due | None:
    """The next segment; None if all lie there, or if its records are not shipped yet."""
    for segment, end_offset in _extents(partition, known.unread):
        sent = known.sent.get(segment)
        is_there = sent is not None and sent.next_offset == end_offset
        if is_there or end_offset <= partition.log_start_offset:
            continue
        if segment.base_offset >= known.pages_end:
            return Due(segment, end_offset) if end_offset <= partition.high_watermark else None
        if end_offset > known.end_offset:
            return None  # a page has some of its records, and nothing has the others
    return None


def waiting_bytes(partition: Partition, sent: Mapping[Segment, BucketSegment]) -> int:
    """The size of the closed segments that do not lie there yet."""
    start = partition.log_start_offset
    return sum(one.size_bytes for one in local_segments(partition) if one not in sent and one.next_offset > start)


def _extents(partition: Partition, unread: Iterable[int]) -> Iterator[Due]:
    local = local_segments(partition)
    gaps = [one for one in unread if not any(each.base_offset < one < each.next_offset for each in local)]
    begins = sorted({*(one.base_offset for one in local), *gaps, partition.segments[-1].base_offset})
    for segment in local:
        yield Due(segment, begins[bisect_left(begins, segment.base_offset) + 1])
