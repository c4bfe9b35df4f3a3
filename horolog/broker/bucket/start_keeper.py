"""Keeps the starts of the partitions that a broker leads, so that every later leader knows them: a manifest first, then the start moves.

A manifest whose number is taken by an earlier leader is taken up, and the next number is tried. One of a later leader says that this
broker does not lead the partition any more.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple

from horolog.broker.base.answers import run
from horolog.broker.bucket import manifest
from horolog.broker.bucket.manifest import Manifest, ManifestChange
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.bucket.shipped_partition import ShippedPartition
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.log.partition import log_start
from horolog.broker.log.storage import StorageFault

log = logging.getLogger(__name__)

Moved = Callable[[bool], None]
"""Gets whether every later leader knows the start; it is false if this broker does not lead the partition."""


class _Wait(NamedTuple):
    offset: int
    moved: Moved


class _Kept:
    """The newest manifest of one partition, and the callers that wait for its start."""

    def __init__(self, known: Manifest | None) -> None:
        self.known = known
        self.first_number: int | None = None
        """Of the manifests that were made in this epoch."""
        self.waits: list[_Wait] = []
        self.is_making = self.is_over = self.is_removed = False

    def __repr__(self) -> str:
        return f"<_Kept {self.known}, {len(self.waits)} wait>"


class StartKeeper:
    """The starts of all partitions that this broker leads."""

    def __init__(self, store: StoreAccess, new_nonce: Callable[[], bytes]) -> None:
        self._store = store
        self._new_nonce = new_nonce
        self._kept: dict[ShippedPartition, _Kept] = {}

    def __repr__(self) -> str:
        return f"<StartKeeper of {len(self._kept)} partitions>"

    def keep(self, partition: ShippedPartition, known: Manifest | None) -> None:
        """A partition is led here from now on; `known` is its newest manifest."""
        self._kept[partition] = _Kept(known)

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

    def move(self, partition: ShippedPartition, offset: int, moved: Moved) -> None:
        """Make this offset, which is not behind the high watermark, the start."""
        kept = self._kept.get(partition)
        if kept is None or offset <= partition.log_start_offset:
            moved(kept is not None)
            return
        kept.waits.append(_Wait(offset, moved))
        if not kept.is_making:
            kept.is_making = True
            run(self._make(partition, kept))

    async def _make(self, partition: ShippedPartition, kept: _Kept) -> None:
        assert partition.topic_id is not None
        place = partition.topic_id, partition.index
        while kept.waits:
            start = max(one.offset for one in kept.waits)
            change = ManifestChange(start)
            new = manifest.following(kept.known, place, partition.leader_epoch, change, self._new_nonce())
            other = await self._store.create(new.key, new.encode())
            if kept.is_over:
                if kept.is_removed and other is None:
                    await self._store.delete(new.key)
                return
            if other is None:
                self._made(kept, new)
            elif not self._take_up(partition, kept, other):
                self.drop(partition)
                return
            self._reach(partition, kept)
        kept.is_making = False

    def _made(self, kept: _Kept, new: Manifest) -> None:
        before, kept.known = kept.known, new
        if kept.first_number is None:
            kept.first_number = new.number
        elif before is not None and manifest.is_superseded(before, kept.first_number, new):
            run(self._store.delete(before.key))

    def _take_up(self, partition: ShippedPartition, kept: _Kept, data: bytes) -> bool:
        """A number is taken: whether this broker goes on."""
        try:
            other = manifest.decode(data)
        except FormatError as error:
            log.error("%r: its newest manifest cannot be read, so its start cannot move: %s", partition, error)
            return False
        if other.epoch > partition.leader_epoch:
            log.warning("%r is led elsewhere, in epoch %s", partition, other.epoch)
            return False
        kept.known = other
        return True

    def _reach(self, partition: ShippedPartition, kept: _Kept) -> None:
        """The newest manifest has another start than before."""
        assert kept.known is not None
        start = min(kept.known.start_offset, partition.high_watermark)
        if start > partition.log_start_offset:
            try:
                log_start.move(partition, start)
            except StorageFault as fault:  # the local log is a copy
                log.error("%r: its leader epochs are not on the disk: %s", partition, fault)
        ready = [one for one in kept.waits if one.offset <= start]
        kept.waits = [one for one in kept.waits if one.offset > start]
        for one in ready:
            one.moved(True)
