"""The log's half of a broker over a store: it opens partitions from the WALs of others, and ships what they take to its own WAL.

Partitions that are to be opened in one tick read each WAL once, for all of them. An opening goes on until it is done or given up: an
object that is gone sends it to the newest mark, and a fault of the local disk is tried again. Segments in the bucket stay there. If their
manifest changes during the reading, the reading begins again: the WALs may lack what the newer one covers. A partition whose newest manifest
is damaged stays closed until it can be read: an older one does not name all segments, and the WALs need not have what it lacks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from horolog.base.clock import Clock
from horolog.broker.base.answers import Answer, run
from horolog.broker.bucket.block_fetcher import BlockFetcher
from horolog.broker.bucket.block_files import BlockFiles
from horolog.broker.bucket.clearing import Clearing
from horolog.broker.bucket.covered import NOTHING, Covered
from horolog.broker.bucket.led_losses import LedLosses
from horolog.broker.bucket.led_segments import LedSegments, SegmentCare
from horolog.broker.bucket.led_tails import Begun, Led, LedTails
from horolog.broker.bucket.lineage_reader import Indexes, feed, read_indexes, runs_of
from horolog.broker.bucket.local_copy import LocalCopy
from horolog.broker.bucket.manifest_reader import StoredManifests, readable
from horolog.broker.bucket.names import Wal
from horolog.broker.bucket.parallel import both, in_parallel
from horolog.broker.bucket.remote_front import RemoteFront
from horolog.broker.bucket.remote_segment import MetaReader
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.bucket.seams import ClusterSide, Opened, Opening, SegmentsInBucket
from horolog.broker.bucket.segment_bringing import bring
from horolog.broker.bucket.shipped_partition import ShippedPartition
from horolog.broker.bucket.shipped_safety import ShippedSafety
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.bucket.store_upkeep import LetGo, StoreUpkeep
from horolog.broker.bucket.wal_index import FoundRun, Gone
from horolog.broker.bucket.wal_merger import WalMerger
from horolog.broker.bucket.wal_object import NewRun
from horolog.broker.bucket.wal_writer import WalWriter
from horolog.broker.log.manager import LogManager
from horolog.broker.log.partition import Partition
from horolog.broker.log.storage import StorageFault
from horolog.broker.on_record.cluster_file import Place

if TYPE_CHECKING:
    import asyncio

log = logging.getLogger(__name__)

OPENINGS_AT_ONCE = 8
RETRY_S = 1.0
MANIFEST_RETRY_S = 30.0
LOOKS_EVERY_S = 1.0
SEGMENTS_EVERY_LOOKS = 5
"""Looking at all partitions takes a while."""
CACHE_BYTES = 10 << 30


class Around(NamedTuple):
    """What a broker has around it."""

    loop: asyncio.AbstractEventLoop
    clock: Clock
    new_nonce: Callable[[], bytes]
    cache_bytes: Callable[[], int] = lambda: CACHE_BYTES
    care: SegmentCare = SegmentCare()
    let_go: LetGo = LetGo()


class _Outdated(Exception):
    """The newest manifest of a partition is not the one that its reading began with."""


def _pause(loop: asyncio.AbstractEventLoop, seconds: float) -> Answer[None]:
    return Answer(lambda done: loop.call_later(seconds, done, None))


def _run_within(
    loop: asyncio.AbstractEventLoop, seconds: float, steps: Coroutine[Any, Any, None], done: Callable[[None], None]
) -> None:
    """`done` is called once the steps are done, or so many seconds later."""
    left = [done]

    def finish() -> None:
        if left:
            left.pop()(None)

    timer = loop.call_later(seconds, finish)
    run(_then(steps, timer.cancel, finish))


async def _then(steps: Coroutine[Any, Any, None], *actions: Callable[[], None]) -> None:
    await steps
    for action in actions:
        action()


class _Pending(NamedTuple):
    """A partition that is being opened."""

    opening: Opening
    opened: Opened


class BucketLog:
    """See `seams.LogSide`."""

    def __init__(
        self,
        around: Around,
        store: StoreAccess,
        logs: LogManager,
        safety: ShippedSafety,
        cluster: ClusterSide,
        in_bucket: SegmentsInBucket | None = None,
    ) -> None:
        self._loop, self._clock, self._new_nonce, self._cache_bytes, care, let_go = around
        self._care = care
        self._segments: SegmentsInBucket = in_bucket or StoredManifests(store)
        self._metas: MetaReader | None = None
        self._store = store
        self._logs = logs
        self._safety = safety
        self._cluster = cluster
        self._pending: dict[Place, _Pending] = {}
        self._queued: list[_Pending] = []
        self._clearing = Clearing(logs, self._loop.call_soon, self._clock.monotonic)
        self._led: dict[Place, ShippedPartition] = {}
        self.of_bucket = LedSegments(store, self._clock, self._new_nonce, care, self._room_bytes, self._loop.call_soon)
        self.writer: WalWriter | None = None
        self.merger: WalMerger | None = None
        self._upkeep = StoreUpkeep(store, self._clock, self._new_nonce, let_go, care)
        self.tails = LedTails(
            Led(self._led, self.of_bucket, cluster),
            self._upkeep,
            self._clock.monotonic,
            partial(_pause, self._loop),
        )
        self.losses = LedLosses(self._led, lambda: self._metas)
        self._looking: asyncio.Handle | None = None
        self._looked_count = 0
        self._has_opened = False
        """Whether a partition was opened since the last look at segments."""

    def __repr__(self) -> str:
        return f"<BucketLog of {len(self._led)} partitions, {len(self._pending)} are being opened, {self.writer!r}>"

    # -- the WAL of this broker

    def begin(self, wal: Wal) -> None:
        self.writer = self._safety.begin(
            lambda events: WalWriter(wal, self._store, self._new_nonce, events), self._cluster
        )
        self.merger = WalMerger(
            self._store,
            self.writer,
            partial(self._is_needed, wal),
            self._new_nonce,
            self._clock.monotonic,
            self._care.history_ms,
        )
        self._stop_looking()
        self._look()

    def _look(self) -> None:
        """Merge, upload and remove what there is; called again and again."""
        if self.merger is not None:
            self._looking = self._loop.call_later(LOOKS_EVERY_S, self._look)
            self.merger.look()
            if self._has_opened or self._looked_count % SEGMENTS_EVERY_LOOKS == 0:
                self._has_opened = False
                self.tails.close_some()
                self.of_bucket.look()
                self.losses.look()
            self._upkeep.look(self.tails.covered)
            self._looked_count += 1

    def merge_rest(self, within_s: float, done: Callable[[None], None]) -> None:
        """Merge what the next leaders would read in small objects; `done` is called when that is done, or so many seconds later."""
        if self.merger is None:
            done(None)
            return
        _run_within(self._loop, within_s, self.merger.merge_rest(), done)

    def remove_rest(self, within_s: float, done: Callable[[None], None]) -> None:
        """Remove the small objects that `merge_rest` has left; `done` is called when that is done, or so many seconds later."""
        if self.merger is None:
            done(None)
            return
        _run_within(self._loop, within_s, self.merger.remove_rest(), done)

    def _is_needed(self, wal: Wal, run: NewRun) -> bool:
        """Whether a leader may still read a run of this WAL: a lineage names it, and no segment has its records."""
        place = run.topic_id, run.partition
        line = self._cluster.lineages().get(place, ())
        led = self._led.get(place)
        covered_end = 0 if led is None else self.of_bucket.manifests.covered_end(led)
        return run.next_offset > covered_end and any((one.wal, one.epoch) == (wal, run.leader_epoch) for one in line)

    def _stop_looking(self) -> None:
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None

    def ship_all(self, partitions: Sequence[Partition], done: Callable[[int | None], None]) -> None:
        self._safety.ship_all(partitions, done)

    def stop(self, *, is_fenced: bool) -> None:
        if is_fenced:
            log.warning("this broker writes nothing more to the store: its WAL has ended")
        self._safety.stop()
        self._stop_looking()
        for partition in self._led.values():
            self.of_bucket.drop(partition)
        self.writer = self.merger = None
        self._pending.clear()
        self._clearing.end()

    # -- partitions come and go

    def open_from(self, opening: Opening, opened: Opened) -> None:
        pending = self._pending[opening.place] = _Pending(opening, opened)
        if not self._queued:
            self._loop.call_soon(self._open_queued)
        self._queued.append(pending)

    def settle_start(self, opening: Opening, settled: Callable[[], None]) -> None:
        run(self._settle_start(opening, settled))

    async def _settle_start(self, opening: Opening, settled: Callable[[], None]) -> None:
        led = self._led.get(opening.place)
        while led is not None and self._led.get(opening.place) is led:
            known = NOTHING._replace(manifest=self.of_bucket.manifests.newest(led))
            covered = await readable(self._segments, opening, known)
            if covered is not None:
                if covered.manifest is not None:
                    self.of_bucket.manifests.learn(led, covered.manifest)
                settled()
                return
            await _pause(self._loop, MANIFEST_RETRY_S)

    def give_up(self, place: Place) -> None:
        pending, partition = self._pending.pop(place, None), self._led.pop(place, None)
        self.tails.begun.pop(place, None)
        if partition is not None:
            self.of_bucket.drop(partition)
            self._safety.drop(partition)
            partition.move_start_by(None)
            if partition.front is not None:
                partition.front.end()
            self._clearing.add((partition.topic, partition.index), partition.config)
        elif pending is not None:
            self._clearing.add((pending.opening.topic, pending.opening.partition), pending.opening.config)

    def remove(self, place: Place) -> None:
        is_mine, partition = place in self._pending, self._led.get(place)
        if partition is not None:
            self.of_bucket.remove(partition)
        self.give_up(place)
        if is_mine or partition is not None:
            self.of_bucket.remove_objects(place)

    def move_start(self, partition: Partition, offset: int, moved: Callable[[bool], None]) -> None:
        assert isinstance(partition, ShippedPartition)
        self.of_bucket.move_start(partition, offset, moved)

    def _open_queued(self) -> None:
        queued, self._queued = self._queued, []
        wanted = [one for one in queued if self._is_wanted(one)]
        if wanted:
            run(self._open_all(wanted))

    def _is_wanted(self, pending: _Pending) -> bool:
        return self._pending.get(pending.opening.place) is pending

    async def _open_all(self, several: Sequence[_Pending]) -> None:
        newest = [partial(readable, self._segments, one.opening) for one in several]
        covered, indexes = await both(
            partial(in_parallel, newest, OPENINGS_AT_ONCE),
            partial(read_indexes, self._store, [one.opening for one in several]),
        )
        tasks = []
        for one, each in zip(several, covered, strict=True):
            if each is None:
                run(self._open(one, None, indexes))  # the others do not wait for it
            else:
                tasks.append(partial(self._open, one, each, indexes))
        await in_parallel(tasks, OPENINGS_AT_ONCE)

    async def _open(self, pending: _Pending, covered: Covered | None, indexes: Indexes) -> None:
        lost: set[str] = set()
        while self._is_wanted(pending):
            if covered is None:
                await _pause(self._loop, MANIFEST_RETRY_S)
                covered = await readable(self._segments, pending.opening)
                indexes = await read_indexes(self._store, [pending.opening])
                continue
            # Thousands may need no answer of the store: others of the loop get their turn between them.
            await _pause(self._loop, 0)
            if not self._is_wanted(pending):
                break
            try:
                await self._copy(pending, covered, indexes, lost)
            except Gone as gone:
                lost.add(gone.missing)
                indexes = await read_indexes(self._store, [pending.opening])
            except (_Outdated, FormatError):
                covered = await readable(self._segments, pending.opening)
                indexes = await read_indexes(self._store, [pending.opening])
            except StorageFault as fault:
                log.error("%s-%s cannot be opened yet: %s", pending.opening.topic, pending.opening.partition, fault)
                await _pause(self._loop, RETRY_S)

    async def _copy(self, pending: _Pending, covered: Covered, indexes: Indexes, lost: set[str]) -> None:
        """Make the local log and open it, unless that is given up meanwhile. Raises Gone, _Outdated or StorageFault."""
        opening = pending.opening
        everything = runs_of(opening, indexes)
        begin = max(covered.log_start_offset, covered.end_offset)
        runs = [one for one in everything if one.run.next_offset > begin]
        self._clearing.drop((opening.topic, opening.partition))
        copy = LocalCopy(self._logs, opening, self._clock.wall_ms(), covered)

        def take(found: FoundRun, data: bytes | memoryview) -> None:
            if self._is_wanted(pending):
                copy.add(found, data)

        try:
            if copy.is_whole:
                await bring(self._store, copy, covered.segments, partial(self._is_wanted, pending))
            await feed(self._store, runs, take, lost)
            if await self._segments.newest(opening, covered) != covered:
                raise _Outdated
            if self._is_wanted(pending):
                end_offset = max((one.run.next_offset for one in everything), default=0)
                partition = copy.open(end_offset, RemoteFront(self.metas(), () if copy.is_whole else covered.segments))
                assert partition.front is not None
                partition.front.wake = partial(self._safety.show, partition)
                del self._pending[opening.place]
                self._led[opening.place] = partition
                self._has_opened = True
                self.tails.begun[opening.place] = Begun(partition.log_end_offset, len({one.key for one in runs}))
                self.of_bucket.keep(partition, covered)
                partition.move_start_by(partial(self.of_bucket.move_start, partition, moved=lambda _: None))
                pending.opened(partition)
        finally:
            copy.close()

    def _room_bytes(self) -> int:
        """How much of the cache the blocks from the bucket leave."""
        return self._cache_bytes() - (0 if self._metas is None else self._metas.fetcher.files.kept_bytes)

    def metas(self) -> MetaReader:
        """What reads segments in the bucket, with one cache for all partitions. Raises StorageFault."""
        if self._metas is None:
            folder = self._logs.folders.usable()[0].path
            files = BlockFiles(self._logs.resources.storage, folder, self._cache_bytes)
            fetcher = BlockFetcher(self._store, files, self._loop.call_soon, self._clock.monotonic, self._care.off_loop)
            self._metas = MetaReader(fetcher, self._segments.decode_meta)
        return self._metas
