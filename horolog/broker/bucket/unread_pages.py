"""Segments whose page of a manifest cannot be read: one stands in for all of them, so that nothing that the page may name is given up.

Every reader of it gets an error that it may retry. It counts for retention as the page does, and is as old as the segment behind it: what
the page names expires no earlier than that. Where records of the page are older than ones behind it, a lookup by time may pass over them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from horolog.broker.bucket.bucket_segment import BucketSegment
from horolog.broker.bucket.manifest import Page
from horolog.broker.log.integrity import Contents
from horolog.broker.log.segments import HAS_PRODUCERS

_SUFFIX = ".page"


def stand_in(page: Page, folder: str) -> BucketSegment:
    """The one for a page; `folder` has the segments of its partition."""
    key = page.name.page_key(folder)
    contents = Contents(max(page.size_bytes, 1), page.next_offset, magics=HAS_PRODUCERS)
    return BucketSegment(page.name.base_offset, contents, 0, key, key)


def is_unread(one: BucketSegment) -> bool:
    """Whether it stands in for a page."""
    return one.log_key.endswith(_SUFFIX)


def unread_offsets(segments: Sequence[BucketSegment]) -> list[range]:
    """The offsets of pages that cannot be read."""
    return [range(one.base_offset, one.next_offset) for one in segments if is_unread(one)]


def aged(segments: Sequence[BucketSegment]) -> list[BucketSegment]:
    """The segments of a partition, in which what stands in for a page is as old as the next segment that is known."""
    found: list[BucketSegment] = []
    for one in reversed(segments):
        found.append(_as_old_as(one, found[-1]) if is_unread(one) and found else one)
    return found[::-1]


def _as_old_as(one: BucketSegment, following: BucketSegment) -> BucketSegment:
    newest, created_ms = following.contents.max_timestamp, following.created_ms
    contents = replace(one.contents, max_timestamp=newest, max_timestamp_offset=one.next_offset - 1)
    return one._replace(contents=contents, created_ms=created_ms)
