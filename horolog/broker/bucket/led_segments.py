"""The segments of the partitions that a broker leads, from their upload until their objects are removed."""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from horolog.base.clock import Clock
from horolog.base.readable import counted
from horolog.broker.base.answers import run
from horolog.broker.base.own_thread import AtOnce, OffLoop
from horolog.broker.bucket.block_fetcher import Soon
from horolog.broker.bucket.bucket_segment import BucketSegment
from horolog.broker.bucket.bucket_sweep import Named, left_over, remove_all
from horolog.broker.bucket.covered import Covered
from horolog.broker.bucket.local_segments import LocalSegments
from horolog.broker.bucket.manifest import Manifest
from horolog.broker.bucket.manifest_history import History, history_of
from horolog.broker.bucket.manifest_keeper import ManifestEvents, ManifestKeeper, Moved
from horolog.broker.bucket.manifest_reader import remove_manifests
from horolog.broker.bucket.names import manifests, segments
from horolog.broker.bucket.object_removals import ObjectRemovals
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.bucket.segment_uploader import SegmentUploader, Uploads
from horolog.broker.bucket.shipped_partition import ShippedPartition
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.bucket.upload_plan import is_whole
from horolog.broker.on_record.cluster_file import Place

log = logging.getLogger(__name__)

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
SWEEPS_EVERY_S = 86_400.0
TRIES_AGAIN_S = 60.0
"""After a sweep that had to wait for a manifest or an upload."""
REMOVALS_AT_ONCE = 4
"""Producers wait for the same store."""
HISTORY_STEP_S = 60.0
"""Of the manifests that are superseded within it, one stays: a restore needs no more."""


class SegmentCare(NamedTuple):
    """How a broker looks after segments: the settings of these names, and a way to another thread."""

    close_after_ms: Callable[[], int] = lambda: HOUR_MS
    delete_delay_ms: Callable[[], int] = lambda: HOUR_MS
    off_loop: OffLoop = AtOnce().run
    history_ms: Callable[[], int] = lambda: 0
    """How long objects stay for a restore before they are removed."""

    def stays_ms(self) -> int:
        """How long objects stay that nothing names."""
        return max(self.delete_delay_ms(), self.history_ms())


class LedSegments:
    """See the module's docstring. `look` is called now and then."""

    def __init__(
        self,
        store: StoreAccess,
        clock: Clock,
        new_nonce: Callable[[], bytes],
        care: SegmentCare,
        room_bytes: Callable[[], int],
        soon: Soon,
    ) -> None:
        """`room_bytes` is how much of the cache is left for local copies."""
        self.removals = ObjectRemovals(store, clock.monotonic, care.stays_ms)
        self.manifests = ManifestKeeper(
            store, new_nonce, ManifestEvents(self._named, self.removals.later, self._stays, self._taken_up)
        )
        uploads = Uploads(
            clock, new_nonce, care.off_loop, soon, care.close_after_ms, self.manifests.name, self.manifests.ends
        )
        self.uploader = SegmentUploader(store, uploads)
        self.local = LocalSegments(room_bytes, clock.wall_ms)
        self._store = store
        self._clock = clock
        self._care = care
        self._stayed_s: dict[ShippedPartition, float] = {}
        """When the last of the superseded manifests was made that stay."""
        self._sweeps: OrderedDict[ShippedPartition, float] = OrderedDict()
        """When the folder of each partition is swept next."""
        self._is_sweeping = False
        self._gone: deque[Place] = deque()
        """Deleted partitions whose objects are still to be removed."""
        self._removing_count = 0

    def __repr__(self) -> str:
        return f"<LedSegments: {self.manifests!r}, {self.uploader!r}, {self.removals!r}>"

    def keep(self, partition: ShippedPartition, covered: Covered) -> None:
        """A partition is led here from now on."""
        self.manifests.keep(partition, covered)
        self.uploader.keep(partition, covered)
        self._sweeps[partition] = self._clock.monotonic() + self._care.delete_delay_ms() / 1000

    def drop(self, partition: ShippedPartition) -> None:
        """It is not led here any more."""
        self.uploader.drop(partition)
        self.manifests.drop(partition)
        self.local.drop(partition)
        self._stayed_s.pop(partition, None)
        self._sweeps.pop(partition, None)

    def remove(self, partition: ShippedPartition) -> None:
        """Its topic is deleted."""
        self.manifests.remove(partition)
        self.drop(partition)

    def remove_objects(self, place: Place) -> None:
        """Remove what the store has of a partition whose topic is deleted: of a few at a time, however many the topic has."""
        self._gone.append(place)
        if self._removing_count < REMOVALS_AT_ONCE:
            self._removing_count += 1
            run(self._remove_gone())

    async def _remove_gone(self) -> None:
        while self._gone:
            await self._remove_objects(self._gone.popleft())
        self._removing_count -= 1

    async def _remove_objects(self, place: Place) -> None:
        """The manifests of a deleted topic go before its segments, which readers finish: at once, if there is no history of them."""
        if self._care.history_ms():
            self.removals.later(one.key for one in await self._store.list(manifests(*place)))
        else:
            await remove_manifests(self._store, place)
        self.removals.later(one.key for one in await self._store.list(segments(*place)))

    def move_start(self, partition: ShippedPartition, offset: int, moved: Moved) -> None:
        self.manifests.move(partition, offset, moved)

    def look(self) -> None:
        self.uploader.look()
        self.local.look()
        self.removals.look()
        while self._sweeps and not self._is_sweeping:
            partition, at_s = next(iter(self._sweeps.items()))
            if at_s > self._clock.monotonic():
                break
            self._is_sweeping = True
            run(self._sweep(partition))

    async def _sweep(self, partition: ShippedPartition) -> None:
        """Remove what nothing names in the folder of a partition, then look again later."""
        before_ms = self._clock.wall_ms() - self._care.stays_ms()
        try:
            again_s = await self._removed(partition, before_ms)
        except FormatError as error:
            log.error("%s: nothing is swept, since a manifest of it cannot be read: %s", partition, error)
            again_s = SWEEPS_EVERY_S
        if partition in self._sweeps:
            self._sweeps[partition] = self._clock.monotonic() + again_s
            self._sweeps.move_to_end(partition)
        self._is_sweeping = False

    async def _removed(self, partition: ShippedPartition, before_ms: int) -> float:
        """Remove old objects that nothing names; returns the seconds until the next time. Raises FormatError."""
        assert partition.topic_id is not None
        place = partition.topic_id, partition.index
        listed = await self._store.list(segments(*place))
        newest, history = self.manifests.newest(partition), History()
        if newest is not None:
            history = await history_of(self._store, place, newest, before_ms)
        named = self.manifests.named(partition)
        keep = (named or Named()).and_more(history.named, history.unread)
        going = [*left_over(listed, keep, partition.leader_epoch, before_ms), *history.outdated]
        if going and (named is None or self.uploader.is_uploading(partition)):
            self.manifests.claim(partition)
            return TRIES_AGAIN_S
        if going:
            gone = await remove_all(self._store, going)
            if gone:
                log.info("%s: removed %s that nothing refers to", partition, counted(len(gone), "object"))
        return SWEEPS_EVERY_S

    def _named(self, partition: ShippedPartition, named: Sequence[BucketSegment]) -> None:
        log.info("%s: the bucket has its segments up to offset %s", partition, named[-1].next_offset)
        if not is_whole(partition.topic, partition.config):
            for one in named:
                self.local.add(partition, one)

    def _stays(self, partition: ShippedPartition, superseded: Manifest) -> bool:
        """Whether a superseded manifest stays for a while, until it is removed."""
        now_s, last_s = self._clock.monotonic(), self._stayed_s.get(partition)
        if not self._care.history_ms() or (last_s is not None and now_s - last_s < HISTORY_STEP_S):
            return False
        self._stayed_s[partition] = now_s
        self.removals.later([superseded.key])
        return True

    def _taken_up(self, partition: ShippedPartition, log_keys: Collection[str]) -> None:
        self.uploader.left(partition, log_keys)
