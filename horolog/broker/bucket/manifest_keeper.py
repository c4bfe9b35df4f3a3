"""Makes the manifests of the partitions that a broker leads, so that every later leader knows their starts and their segments in the bucket.

A manifest is made first; then the start moves, and objects that it no longer names are removed after a while. A manifest whose number is
taken by an earlier leader is taken up, and the next number is tried. One of a later leader says that this broker does not lead the
partition any more. Segments are named only in the epoch in which they were uploaded.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from horolog.broker.base.answers import run
from horolog.broker.bucket import manifest, manifest_pages
from horolog.broker.bucket.bucket_segment import BucketSegment
from horolog.broker.bucket.bucket_sweep import Named
from horolog.broker.bucket.covered import Covered
from horolog.broker.bucket.manifest import Manifest, ManifestChange, Page
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.bucket.shipped_partition import ShippedPartition
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.bucket.unread_pages import unread_offsets
from horolog.broker.log.partition import log_start
from horolog.broker.log.storage import StorageFault

log = logging.getLogger(__name__)

Moved = Callable[[bool], None]
"""Gets whether every later leader knows the start; it is false if this broker does not lead the partition."""


class ManifestEvents(NamedTuple):
    """What a keeper reports."""

    named: Callable[[ShippedPartition, Sequence[BucketSegment]], None] = lambda _partition, _segments: None
    """The newest manifest names these segments, which were uploaded here."""
    gone: Callable[[Iterable[str]], None] = lambda _keys: None
    """No later manifest names these objects."""
    stays: Callable[[ShippedPartition, Manifest], bool] = lambda _partition, _manifest: False
    """Whether a manifest that is superseded stays for a while. It is removed at once otherwise."""
    taken_up: Callable[[ShippedPartition, Collection[str]], None] = lambda _partition, _keys: None
    """The newest manifest is an earlier leader's: the logs under these keys lie in the bucket, and no others."""


class _Wait(NamedTuple):
    offset: int
    moved: Moved


class _Kept:
    """The newest manifest of one partition, and the callers that wait for the next one."""

    def __init__(self, covered: Covered) -> None:
        known = self.known = covered.manifest
        own = 0 if known is None else len(known.segments)
        self.paged = covered.segments[: len(covered.segments) - own]
        """The segments in its pages that have not expired."""
        self.first_number: int | None = None
        """Of the manifests that were made in this epoch."""
        self.waits: list[_Wait] = []
        self.added: list[BucketSegment] = []
        """Segments that no manifest names yet."""
        self.is_claimed = self.is_making = self.is_over = self.is_removed = False

    def __repr__(self) -> str:
        return f"<_Kept {self.known}, {len(self.waits)} wait>"

    @property
    def has_work(self) -> bool:
        return bool(self.waits) or self.is_claimed or manifest.takes(self.known, self.added)


class ManifestKeeper:
    """The manifests of all partitions that this broker leads."""

    def __init__(
        self, store: StoreAccess, new_nonce: Callable[[], bytes], events: ManifestEvents | None = None
    ) -> None:
        self._store = store
        self._new_nonce = new_nonce
        self._events = events or ManifestEvents()
        self._kept: dict[ShippedPartition, _Kept] = {}

    def __repr__(self) -> str:
        return f"<ManifestKeeper of {len(self._kept)} partitions>"

    def keep(self, partition: ShippedPartition, covered: Covered) -> None:
        """A partition is led here from now on; `covered` has its newest manifest."""
        self._kept[partition] = _Kept(covered)

    def drop(self, partition: ShippedPartition) -> None:
        """It is not led here any more."""
        kept = self._kept.pop(partition, None)
        if kept is not None:
            kept.is_over = True
            for one in kept.waits:
                one.moved(False)

    def remove(self, partition: ShippedPartition) -> None:
        """Its topic is deleted: a manifest that is under way goes as well."""
        if partition in self._kept:
            self._kept[partition].is_removed = True
            self.drop(partition)

    def covered_end(self, partition: ShippedPartition) -> int:
        """No WAL is needed for records before this offset; 0 if the partition is not led here."""
        kept = self._kept.get(partition)
        known = None if kept is None else kept.known
        return 0 if known is None else max(known.end_offset, known.start_offset)

    def ends(self, partition: ShippedPartition) -> tuple[int, int]:
        """Records before the first offset lie in segments that pages name, those before the second one in any segments."""
        kept = self._kept.get(partition)
        known = None if kept is None else kept.known
        if known is None:
            return 0, 0
        return known.pages[-1].next_offset if known.pages else 0, known.end_offset

    def named(self, partition: ShippedPartition) -> Named | None:
        """What must stay; None as long as the newest manifest is not one of this epoch, or a later one is being made."""
        kept = self._kept.get(partition)
        if kept is None or kept.first_number is None or kept.is_making:
            return None
        keys = {*manifest.named_by(kept.known), *_keys(kept.paged), *_keys(kept.added)}
        return Named(keys, unread_offsets(kept.paged))

    def newest(self, partition: ShippedPartition) -> Manifest | None:
        """The newest manifest of a partition that is led here, as far as this broker knows."""
        kept = self._kept.get(partition)
        return None if kept is None else kept.known

    def learn(self, partition: ShippedPartition, found: Manifest) -> None:
        """Go on from a manifest of an earlier leader, unless a newer one is known."""
        kept = self._kept.get(partition)
        if kept is not None and (kept.known is None or found.number > kept.known.number):
            self._go_on_from(partition, kept, found)
            self._reach(partition, kept)

    # -- the next manifest

    def move(self, partition: ShippedPartition, offset: int, moved: Moved) -> None:
        """Make this offset, which is not behind the high watermark, the start."""
        kept = self._kept.get(partition)
        if kept is None or offset <= partition.log_start_offset:
            moved(kept is not None)
            return
        kept.waits.append(_Wait(offset, moved))
        self._go_on(partition, kept)

    def name(self, partition: ShippedPartition, segment: BucketSegment) -> None:
        """Name a segment that is in the bucket, in the place of those that it was compacted from."""
        kept = self._kept.get(partition)
        if kept is not None:
            kept.added = [*(one for one in kept.added if not _is_within(one, segment)), segment]
            self._go_on(partition, kept)

    def claim(self, partition: ShippedPartition) -> None:
        """Make a manifest of this epoch, unless there is one: no earlier leader makes another one then."""
        kept = self._kept.get(partition)
        if kept is not None and kept.first_number is None:
            kept.is_claimed = True
            self._go_on(partition, kept)

    def _go_on(self, partition: ShippedPartition, kept: _Kept) -> None:
        if kept.has_work and not kept.is_making:
            kept.is_making = True
            run(self._make(partition, kept))

    async def _make(self, partition: ShippedPartition, kept: _Kept) -> None:
        assert partition.topic_id is not None
        place = partition.topic_id, partition.index
        while kept.has_work:
            change = ManifestChange(max((one.offset for one in kept.waits), default=0), tuple(kept.added))
            wanted = manifest.following(kept.known, place, partition.leader_epoch, change, self._new_nonce())
            new = await self._with_pages(wanted)
            other = await self._store.create(new.key, new.encode())
            if kept.is_over:
                if kept.is_removed and other is None:
                    await self._store.delete(new.key)
                return
            if other is None:
                self._made(partition, kept, wanted, new)
            elif not self._take_up(partition, kept, other):
                self.drop(partition)
                return
            self._reach(partition, kept)
        kept.is_making = False

    async def _with_pages(self, wanted: Manifest) -> Manifest:
        """The same manifest, with its oldest segments in a page if it is long."""
        turned = manifest_pages.turned(wanted, self._new_nonce())
        if turned is None:
            return wanted
        shorter, content = turned
        await self._store.create(shorter.pages[-1].name.page_key(shorter.folder), content.encode())
        return shorter

    def _made(self, partition: ShippedPartition, kept: _Kept, wanted: Manifest, new: Manifest) -> None:
        before, kept.known, kept.is_claimed = kept.known, new, False
        if kept.first_number is None:
            kept.first_number = new.number
        elif (
            before is not None
            and manifest.is_superseded(before, kept.first_number, new)
            and not self._events.stays(partition, before)
        ):
            run(self._store.delete(before.key))
        there = {one.log_key for one in wanted.segments}
        named = [one for one in kept.added if one.log_key in there]
        kept.added = [one for one in kept.added if one.log_key not in there and one.next_offset > new.start_offset]
        self._forget(kept, before, wanted, new)
        if named:
            self._events.named(partition, named)

    def _forget(self, kept: _Kept, before: Manifest | None, wanted: Manifest, new: Manifest) -> None:
        """Report the objects that the manifest before named, or its pages, and this one does not."""
        known: tuple[BucketSegment, ...] = () if before is None else before.segments
        pages: tuple[Page, ...] = () if before is None else before.pages
        kept_segments = {*wanted.segments, *(one for one in kept.paged if one.next_offset > new.start_offset)}
        gone = [*_keys(one for one in (*kept.paged, *known) if one not in kept_segments)]
        gone += [one.name.page_key(new.folder) for one in pages if one not in new.pages]
        turned = wanted.segments[: len(wanted.segments) - len(new.segments)]
        kept.paged = (*(one for one in kept.paged if one in kept_segments), *turned)
        if gone:
            self._events.gone(dict.fromkeys(gone))

    def _take_up(self, partition: ShippedPartition, kept: _Kept, data: bytes) -> bool:
        """A number is taken: whether this broker goes on."""
        try:
            other = manifest.decode(data)
        except FormatError as error:
            log.error("%s: its newest manifest cannot be read, so its start cannot move: %s", partition, error)
            return False
        if other.epoch > partition.leader_epoch:
            log.warning("%s: another broker leads it, in epoch %s", partition, other.epoch)
            return False
        self._go_on_from(partition, kept, other)
        return True

    def _go_on_from(self, partition: ShippedPartition, kept: _Kept, other: Manifest) -> None:
        kept.known = other
        self._events.taken_up(partition, {one.log_key for one in (*kept.paged, *other.segments, *kept.added)})

    def _reach(self, partition: ShippedPartition, kept: _Kept) -> None:
        """The newest manifest has another start than before."""
        assert kept.known is not None
        start = min(kept.known.start_offset, partition.high_watermark)
        if start > partition.log_start_offset:
            try:
                log_start.move(partition, start)
            except StorageFault as fault:  # the local log is a copy
                log.error("%s: its leader epochs could not be written: %s", partition, fault)
        ready = [one for one in kept.waits if one.offset <= start]
        kept.waits = [one for one in kept.waits if one.offset > start]
        for one in ready:
            one.moved(True)


def _is_within(one: BucketSegment, other: BucketSegment) -> bool:
    return other.base_offset <= one.base_offset and one.next_offset <= other.next_offset


def _keys(segments: Iterable[BucketSegment]) -> Iterable[str]:
    for one in segments:
        yield from (one.log_key, one.meta_key)
