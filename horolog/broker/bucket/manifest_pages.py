"""The pages of manifests: objects with the oldest segments of a long log, so that a manifest stays small (`sealed_lines`).

    {"format": 1, "kind": "page", "nonce": ..., "topic": "<topic id, 32 hex digits>", "partition": <n>}

The body has a line for each segment (`bucket_segment`). A page is made before the manifest that names it, under a name with the epoch of
its leader, the base offset of its first segment and the nonce.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from horolog.broker.bucket import bucket_segment, sealed_lines
from horolog.broker.bucket.bucket_segment import BucketSegment
from horolog.broker.bucket.manifest import Manifest, Page
from horolog.broker.bucket.names import SegmentName, segments
from horolog.broker.bucket.sealed_lines import FormatError, NewerFormat, Sealed, number_in

KIND = "page"
MOST_SEGMENTS = 2_000
"""A manifest with more gets a page."""
PAGE_SEGMENTS = 1_000


@dataclass(frozen=True, slots=True)
class PageContent:
    """What lies under the key of a page."""

    topic_id: bytes
    partition: int
    nonce: bytes
    segments: tuple[BucketSegment, ...]

    def encode(self) -> bytes:
        fields = {"topic": self.topic_id.hex(), "partition": self.partition}
        return sealed_lines.encode(Sealed(KIND, self.nonce, fields, bucket_segment.encode_lines(self.segments)))


def decode(data: bytes) -> PageContent:
    """Raises FormatError."""
    sealed = sealed_lines.decode(data, KIND)
    if sealed.fields.keys() - {"topic", "partition"}:
        raise NewerFormat("a page with more than this release knows")
    topic_id, partition = sealed_lines.topic_id_in(sealed.fields), number_in(sealed.fields, "partition")
    found = bucket_segment.decode_lines(sealed.body, segments(topic_id, partition))
    if not found:
        raise FormatError("a page without segments")
    return PageContent(topic_id, partition, sealed.nonce, found)


def turned(manifest: Manifest, nonce: bytes) -> tuple[Manifest, PageContent] | None:
    """A manifest that is too long, with its oldest segments in one more page; None if it is short enough."""
    if len(manifest.segments) <= MOST_SEGMENTS:
        return None
    oldest = manifest.segments[:PAGE_SEGMENTS]
    name = SegmentName(manifest.epoch, oldest[0].base_offset, nonce)
    page = Page(name, oldest[-1].next_offset, len(oldest), sum(one.contents.size_bytes for one in oldest))
    shorter = replace(manifest, segments=manifest.segments[PAGE_SEGMENTS:], pages=(*manifest.pages, page))
    return shorter, PageContent(manifest.topic_id, manifest.partition, nonce, oldest)


def check(page: Page, data: bytes) -> Sequence[BucketSegment]:
    """The segments of a page that a manifest names; raises FormatError."""
    found = decode(data)
    first, last = found.segments[0], found.segments[-1]
    facts = found.nonce, first.base_offset, last.next_offset, len(found.segments)
    if facts != (page.name.nonce, page.name.base_offset, page.next_offset, page.segment_count):
        raise FormatError(f"the page {page.name} is not the one that its manifest names")
    return found.segments
