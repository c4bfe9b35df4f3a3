"""A manifest: where the log of a partition starts, and which of its segments lie in the bucket, by the word of its leader (`sealed_lines`).

    {"format": 1 or 2, "kind": "manifest", "nonce": ..., "topic": "<topic id, 32 hex digits>", "partition": <n>, "number": <n>,
     "epoch": <leader epoch>, "start": <offset>,
     "segments": <how many the body has>, "pages": [[<name>, <next offset>, <segments>, <bytes of their logs>], ...]}

`segments`, `pages` and a body are in format 2 alone; a manifest that names no segment has format 1, which earlier releases read. The body
has a line for each segment (`bucket_segment`). The oldest segments of a long log lie in pages: objects of kind `page` with the same lines
(`manifest_pages`), which never change. Segments of the body come after those of all pages. Those that end before the start have expired.

Manifests of a partition are numbered from 0, and each is based on the one before. The newest one counts: its segments have all records up
to the end of the last one, and WALs have the rest. A manifest with fields that are not named here is of a later release.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

from horolog.broker.bucket import bucket_segment, sealed_lines
from horolog.broker.bucket.bucket_segment import BucketSegment
from horolog.broker.bucket.names import SegmentName, key, manifests, segments
from horolog.broker.bucket.sealed_lines import FormatError, NewerFormat, Sealed, number_in
from horolog.broker.on_record.cluster_file import Place

KIND = "manifest"
WITH_SEGMENTS = 2
"""The format of manifests that name segments."""
_NUMBERS = ("partition", "number", "epoch", "start")
_PAGE_FIELDS = 4


class Page(NamedTuple):
    """Segments that lie in an object of their own."""

    name: SegmentName
    next_offset: int
    segment_count: int
    size_bytes: int
    """Of the logs of all its segments."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """Manifest `number` of a partition, made in a leader epoch."""

    topic_id: bytes
    partition: int
    number: int
    epoch: int
    start_offset: int
    nonce: bytes
    segments: tuple[BucketSegment, ...] = ()
    """Those behind the pages."""
    pages: tuple[Page, ...] = ()

    @property
    def key(self) -> str:
        return key(manifests(self.topic_id, self.partition), self.number)

    @property
    def folder(self) -> str:
        """Where the segments lie."""
        return segments(self.topic_id, self.partition)

    @property
    def end_offset(self) -> int:
        """All records before it, from the start on, lie in segments."""
        if self.segments:
            return self.segments[-1].next_offset
        return self.pages[-1].next_offset if self.pages else 0

    def encode(self) -> bytes:
        numbers = self.partition, self.number, self.epoch, self.start_offset
        fields: dict[str, Any] = {"topic": self.topic_id.hex(), **dict(zip(_NUMBERS, numbers, strict=True))}
        if not self.segments and not self.pages:
            return sealed_lines.encode(Sealed(KIND, self.nonce, fields))
        fields |= {"segments": len(self.segments), "pages": [_shown_page(one) for one in self.pages]}
        body = bucket_segment.encode_lines(self.segments)
        return sealed_lines.encode(Sealed(KIND, self.nonce, fields, body, WITH_SEGMENTS))


def _shown_page(one: Page) -> list[Any]:
    return [str(one.name), *one[1:]]


def decode(data: bytes) -> Manifest:
    """Raises FormatError."""
    known, body = decode_head(data)
    found = bucket_segment.decode_lines(body, known.folder)
    if found and known.pages and known.pages[-1].next_offset > found[0].base_offset:
        raise FormatError("a segment lies before the end of the pages")
    return replace(known, segments=found)


def decode_head(data: bytes) -> tuple[Manifest, bytes]:
    """A manifest without its segments, and their lines, which were not read; raises FormatError."""
    sealed = sealed_lines.decode(data, KIND, WITH_SEGMENTS)
    more = {"segments", "pages"} if sealed.format == WITH_SEGMENTS else set()
    if (sealed.body and not more) or sealed.fields.keys() - {"topic", *_NUMBERS, *more}:
        raise NewerFormat("a manifest with more than this release knows")
    partition, number, epoch, start = (number_in(sealed.fields, name) for name in _NUMBERS)
    known = Manifest(sealed_lines.topic_id_in(sealed.fields), partition, number, epoch, start, sealed.nonce)
    return (_with_pages(known, sealed.fields, sealed.body) if more else known), sealed.body


def _with_pages(known: Manifest, fields: Mapping[str, Any], body: bytes) -> Manifest:
    count = body.count(b"\n")
    if count != number_in(fields, "segments"):
        raise FormatError(f"{count} segments, and {fields['segments']} were announced")
    shown = fields.get("pages")
    if not isinstance(shown, list):
        raise FormatError("a manifest of this format has a list of pages")
    pages = tuple(map(_read_page, shown))
    if any(before.next_offset > page.name.base_offset for before, page in pairwise(pages)):
        raise FormatError("pages are not in the order of their offsets")
    return replace(known, pages=pages)


def _read_page(shown: object) -> Page:
    if isinstance(shown, list) and len(shown) == _PAGE_FIELDS:
        name = SegmentName.parse(shown[0])
        next_offset, count, size_bytes = (number_in({"page": one}, "page") for one in shown[1:])
        if name is not None and next_offset > name.base_offset and count:
            return Page(name, next_offset, count, size_bytes)
    raise FormatError(f"{shown!r} is not a page")


class ManifestChange(NamedTuple):
    """What a leader wants of the next manifest."""

    start_offset: int = 0
    added: Sequence[BucketSegment] = ()
    """Segments that it has uploaded in this epoch, and that do not overlap."""


def following(known: Manifest | None, place: Place, epoch: int, change: ManifestChange, nonce: bytes) -> Manifest:
    """The next manifest: its start is never before that of the one before, and neither is its end.

    Segments that end before the start are left out, and so are those in whose place there are others now: of an earlier leader, or
    before they were compacted. Segments of the change that cover only a part of a known one wait: they are left out.
    """
    if known is None:
        known = Manifest(*place, -1, epoch, 0, nonce)
    start_offset = max(change.start_offset, known.start_offset)
    return replace(
        known,
        number=known.number + 1,
        epoch=epoch,
        start_offset=start_offset,
        nonce=nonce,
        segments=tuple(one for one in _joined(known, change.added) if one.next_offset > start_offset),
        pages=tuple(one for one in known.pages if one.next_offset > start_offset),
    )


def takes(known: Manifest | None, added: Sequence[BucketSegment]) -> bool:
    """Whether a manifest that follows this one names any of these segments: together with the others they have all that it has."""
    return any(known is None or _fits(known, known.segments, chain) for chain in _chains(added))


def _joined(known: Manifest, added: Sequence[BucketSegment]) -> Sequence[BucketSegment]:
    found: Sequence[BucketSegment] = known.segments
    for chain in _chains(added):
        if _fits(known, found, chain):
            start, end = chain[0].base_offset, chain[-1].next_offset
            before = [one for one in found if one.next_offset <= start]
            found = [*before, *chain, *(one for one in found if one.base_offset >= end)]
    return found


def _chains(added: Sequence[BucketSegment]) -> list[list[BucketSegment]]:
    """The segments by their offsets: those that lie one behind the other are one chain."""
    chains: list[list[BucketSegment]] = []
    for one in sorted(added, key=lambda each: each.base_offset):
        if chains and chains[-1][-1].next_offset == one.base_offset:
            chains[-1].append(one)
        else:
            chains.append([one])
    return chains


def _fits(known: Manifest, segments: Sequence[BucketSegment], chain: Sequence[BucketSegment]) -> bool:
    """Whether the segments that overlap with a chain lie within it, and no page does."""
    start, end = chain[0].base_offset, chain[-1].next_offset
    after_pages = not known.pages or known.pages[-1].next_offset <= start
    cut = any(one.base_offset < at < one.next_offset for one in segments for at in (start, end))
    return after_pages and not cut


def named_by(manifest: Manifest | None) -> set[str]:
    """The keys that a manifest names itself; its pages name more."""
    if manifest is None:
        return set()
    pages = (one.name.page_key(manifest.folder) for one in manifest.pages)
    return {*pages, *(name for one in manifest.segments for name in (one.log_key, one.meta_key))}


def is_superseded(before: Manifest | None, first_number: int, made: Manifest) -> bool:
    """Whether the manifest before one that was made may be removed; `first_number` is the first one of its epoch.

    The first manifest of an epoch stays: leaders of earlier epochs that live on find its number taken, and know that they do not lead.
    """
    return before is not None and before.epoch == made.epoch and before.number > first_number
