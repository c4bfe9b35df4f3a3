"""Finds the newest manifests of partitions and what they name, and removes the manifests of partitions that are gone."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from horolog.broker.bucket import manifest_pages, segment_meta, unread_pages
from horolog.broker.bucket.bucket_segment import BucketSegment
from horolog.broker.bucket.covered import NOTHING, Covered
from horolog.broker.bucket.manifest import Manifest, Page, decode
from horolog.broker.bucket.names import key, manifests, number_of
from horolog.broker.bucket.parallel import in_parallel
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.bucket.segment_meta import SegmentMeta
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.on_record.cluster_file import Place

if TYPE_CHECKING:
    from horolog.broker.bucket.remote_segment import Parts
    from horolog.broker.bucket.seams import Opening, SegmentsInBucket

log = logging.getLogger(__name__)

DELETED_AT_ONCE = 8
PAGES_AT_ONCE = 8


class StoredManifests:
    """The manifests in a store, and what they name: see `seams.SegmentsInBucket`."""

    def __init__(self, store: StoreAccess) -> None:
        self._store = store

    def __repr__(self) -> str:
        return f"<StoredManifests in {self._store!r}>"

    async def newest(self, opening: Opening, known: Covered = NOTHING) -> Covered:
        """Raises FormatError. A partition without an earlier leader has no manifest."""
        return await self.at(opening.place, known) if len(opening.lineage) > 1 else NOTHING

    async def at(self, place: Place, known: Covered = NOTHING) -> Covered:
        """What the newest manifest of a partition says. Raises FormatError."""
        found = await newest_manifest(self._store, place, known.manifest)
        while found is not None:
            if found == known.manifest:
                return known
            known, has_all = await self._covered(found)
            if has_all:
                return known
            found = await newest_manifest(self._store, place, found)  # of an older one, objects may be gone
        return NOTHING

    async def _covered(self, found: Manifest) -> tuple[Covered, bool]:
        """What a manifest says, and whether everything that this needs was there."""
        segments = unread_pages.aged([*await paged(self._store, found), *found.segments])
        kept = tuple(one for one in segments if one.next_offset > found.start_offset)
        meta = await self._meta_of(kept[-1]) if kept else None
        if meta is None:
            return Covered(found.start_offset, kept, manifest=found), not kept
        has_all = not unread_pages.unread_offsets(segments)
        known = meta.producers, meta.leader_epochs, meta.batches, meta.transaction_index
        return Covered(found.start_offset, kept, *known, found), has_all

    async def _meta_of(self, segment: BucketSegment) -> SegmentMeta | None:
        """None if the store does not have it, or if it is damaged, which is logged: the producers are not known then."""
        data = await self._store.read(segment.meta_key)
        try:
            return None if data is None else segment_meta.decode(data)
        except FormatError as error:
            log.error("%s cannot be read: %s", segment.meta_key, error)
            return None

    def decode_meta(self, data: bytes) -> Parts:
        """Raises FormatError."""
        return segment_meta.decode(data)


async def readable(segments: SegmentsInBucket, opening: Opening, known: Covered = NOTHING) -> Covered | None:
    """None if the newest manifest cannot be read, or a later leader has made it, which is logged.

    Without it the start of the log is not known; and the journal says soon that this broker does not lead the partition any more.
    """
    name = f"{opening.topic}-{opening.partition}"
    try:
        found = await segments.newest(opening, known)
    except FormatError as error:
        log.error("%s is not opened, since its newest manifest cannot be read: %s", name, error)
        return None
    if found.manifest is not None and found.manifest.epoch > opening.epoch:
        log.warning("%s: another broker leads it, in epoch %s", name, found.manifest.epoch)
        return None
    return found


async def paged(store: StoreAccess, found: Manifest, which: Sequence[Page] | None = None) -> list[BucketSegment]:
    """The segments in the pages of a manifest, or in some of them. Of a page that is lost or damaged, which is logged, there is one that stands in for them."""
    wanted = found.pages if which is None else which
    keys = [one.name.page_key(found.folder) for one in wanted]
    pages = await in_parallel([partial(store.read, key) for key in keys], PAGES_AT_ONCE)
    segments: list[BucketSegment] = []
    for page, data in zip(wanted, pages, strict=True):
        try:
            if data is None:
                raise FormatError("the store does not have it")
            segments += manifest_pages.check(page, data)
        except FormatError as error:
            key, offsets = page.name.page_key(found.folder), (page.name.base_offset, page.next_offset)
            log.error(
                "%s cannot be read: offsets %s up to %s are not served (restore it, then restart this broker): %s",
                key,
                *offsets,
                error,
            )
            segments.append(unread_pages.stand_in(page, found.folder))
    return segments


async def newest_manifest(store: StoreAccess, place: Place, known: Manifest | None = None) -> Manifest | None:
    """None if there is none; raises FormatError. One that is known already is not read again."""
    folder = manifests(*place)
    while True:
        numbers = [number_of(one.key) for one in await store.list(folder)]
        number = max((one for one in numbers if one is not None), default=None)
        if number is None:
            return None
        if known is not None and known.number == number:
            return known
        data = await store.read(key(folder, number))
        if data is not None:  # else it has been superseded and removed, or the topic is deleted
            return _decoded(key(folder, number), data)


def _decoded(name: str, data: bytes) -> Manifest:
    try:
        return decode(data)
    except FormatError as error:
        raise FormatError(f"{name}: {error}") from None


async def remove_manifests(store: StoreAccess, place: Place) -> None:
    """Remove the manifests of a partition whose topic is deleted."""
    stored = await store.list(manifests(*place))
    await in_parallel([partial(store.delete, one.key) for one in stored], DELETED_AT_ONCE)
