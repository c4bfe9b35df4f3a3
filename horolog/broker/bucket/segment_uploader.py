"""Uploads the closed segments of the partitions that a broker leads: the log, then its `.meta`, then a manifest that names them.

Only segments below the high watermark go, one after the other in each partition, a few at a time in all. Their files are read and verified
in another thread. Objects of one term are never named in another one: a broker that stops leading forgets them, and the sweep finds
them. A segment that takes appends is closed here once it is old and large enough.

Compacted and internal topics stay in WALs: their segments are written again and again, and coordinators read them without waiting.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from horolog.base.clock import Clock
from horolog.broker.base.answers import Answer, run
from horolog.broker.base.topic_names import INTERNAL_TOPICS
from horolog.broker.bucket import closed_segment
from horolog.broker.bucket.bucket_segment import BucketSegment, described
from horolog.broker.bucket.closed_segment import ClosedSegment, Content
from horolog.broker.bucket.covered import Covered
from horolog.broker.bucket.names import SegmentName, segments
from horolog.broker.bucket.producers_behind import ProducersAt
from horolog.broker.bucket.shipped_partition import ShippedPartition
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.log.partition import Partition
from horolog.broker.log.producers import RowFileError, producers_file, snapshot_file
from horolog.broker.log.segments import Segment
from horolog.broker.log.storage import StorageFault

log = logging.getLogger(__name__)

AT_ONCE = 2
"""Producers wait for the same store."""
LEAST_BYTES = 4 << 20
"""A smaller segment is not closed for its age."""

OffLoop = Callable[[Callable[[], Any], Callable[[Any], None]], object]
"""Runs a job in another thread, and calls back with its result in this one."""


def at_once(job: Callable[[], Any], done: Callable[[Any], None]) -> None:
    """For tests, and where there is no other thread."""
    done(job())


class Uploads(NamedTuple):
    """What an uploader needs beside the store."""

    clock: Clock
    new_nonce: Callable[[], bytes]
    off_loop: OffLoop
    close_after_ms: Callable[[], int]
    """The age at which a segment is closed."""
    uploaded: Callable[[ShippedPartition, BucketSegment], None]
    """The objects of a segment are in the bucket, and no manifest names them yet."""


class _Going:
    """How far the uploads of one partition are, in one term of its leader."""

    def __init__(self, covered: Covered) -> None:
        self.before = _producers_of(covered)
        self.upto = covered.end_offset
        """The first local segment that is not in the bucket begins here, or behind it."""
        self.is_under_way = False
        self.fault = ""

    def __repr__(self) -> str:
        return f"<_Going up to {self.upto}>"


def _producers_of(covered: Covered) -> ProducersAt:
    try:
        entries = snapshot_file.decode(covered.producers) if covered.producers else []
        remembered = producers_file.decode(covered.batches) if covered.batches else []
    except RowFileError as error:
        log.error("producers before offset %s are not known: %s", covered.end_offset, error)
        return ProducersAt(covered.end_offset)
    return ProducersAt(covered.end_offset, entries, remembered)


def goes_into_bucket(partition: Partition) -> bool:
    return not partition.config.compact and partition.topic not in INTERNAL_TOPICS


class SegmentUploader:
    """The uploads of all partitions that this broker leads. `look` is called now and then."""

    def __init__(self, store: StoreAccess, uploads: Uploads) -> None:
        self._store = store
        self._uploads = uploads
        self._going: dict[ShippedPartition, _Going] = {}
        self._under_way = 0
        self.uploaded_count = self.uploaded_bytes = 0

    def __repr__(self) -> str:
        return f"<SegmentUploader of {len(self._going)} partitions, {self._under_way} uploads are under way>"

    def keep(self, partition: ShippedPartition, covered: Covered) -> None:
        """A partition is led here from now on."""
        self._going[partition] = _Going(covered)

    def drop(self, partition: ShippedPartition) -> None:
        """It is not led here any more."""
        self._going.pop(partition, None)

    def _is_current(self, partition: ShippedPartition, going: _Going) -> bool:
        """Whether the partition is still led here, in the same term."""
        return self._going.get(partition) is going

    def is_uploading(self, partition: ShippedPartition) -> bool:
        going = self._going.get(partition)
        return going is not None and going.is_under_way

    def look(self) -> None:
        """Close old segments, and upload closed ones."""
        for partition, going in list(self._going.items()):
            if goes_into_bucket(partition) and partition.condition.takes_appends:
                self._close_old(partition)
                self._begin(partition, going)

    def _close_old(self, partition: ShippedPartition) -> None:
        active = partition.segments[-1]
        if active.size_bytes < LEAST_BYTES:
            return
        now_ms = self._uploads.clock.wall_ms()
        if abs(now_ms - active.created_ms) >= self._uploads.close_after_ms():  # the clock may have been set back
            try:
                partition.roll(now_ms)
            except StorageFault as fault:
                log.warning("%r: its segment is closed later: %s", partition, fault)

    def _begin(self, partition: ShippedPartition, going: _Going) -> None:
        segment = _next_of(partition, going)
        if segment is not None and not going.is_under_way and self._under_way < AT_ONCE:
            going.is_under_way = True
            self._under_way += 1
            run(self._upload(partition, going, segment))

    async def _upload(self, partition: ShippedPartition, going: _Going, segment: Segment) -> None:
        """One segment; then the next one of the partition, if it is closed."""
        nonce = self._uploads.new_nonce()
        content = await self._read(partition, going, segment, nonce)
        if content is not None and self._is_current(partition, going):
            await self._put(
                partition, going, segment, SegmentName(partition.leader_epoch, segment.base_offset, nonce), content
            )
        self._under_way -= 1
        going.is_under_way = False
        if content is not None and self._is_current(partition, going):
            self._begin(partition, going)

    async def _read(self, partition: ShippedPartition, going: _Going, segment: Segment, nonce: bytes) -> Content | None:
        """None if it cannot be read now, which is logged."""
        try:
            closed = closed_segment.found(partition, segment, partition.ends.get(segment.next_offset))
        except StorageFault as fault:
            content: Content | StorageFault = fault
        else:
            content = await Answer(partial(self._uploads.off_loop, partial(_read, closed, going.before, nonce)))
        if not isinstance(content, StorageFault):
            going.fault = ""
            return content
        if str(content) != going.fault and not segment.removed:
            going.fault = str(content)
            log.error("%r: a segment is uploaded later: %s", partition, content)
        return None

    async def _put(
        self, partition: ShippedPartition, going: _Going, segment: Segment, name: SegmentName, content: Content
    ) -> None:
        assert partition.topic_id is not None
        folder = segments(partition.topic_id, partition.index)
        await self._store.create(name.log_key(folder), content.log)
        if self._is_current(partition, going):
            await self._store.create(name.meta_key(folder), content.meta)
        if not self._is_current(partition, going):
            return
        going.before, going.upto = content.producers, content.producers.offset
        partition.ends.pop(going.upto, None)
        self.uploaded_count += 1
        self.uploaded_bytes += len(content.log)
        assert segment.seal is not None, f"{segment!r} was closed"
        self._uploads.uploaded(partition, described(folder, name, segment.seal.contents, segment.created_ms))


def _read(closed: ClosedSegment, before: ProducersAt, nonce: bytes) -> Content | StorageFault:
    try:
        return closed_segment.read(closed, before, nonce)
    except StorageFault as fault:
        return fault


def _next_of(partition: ShippedPartition, going: _Going) -> Segment | None:
    """The first closed segment of the local log that is not in the bucket; None if there is none, or if it is not shipped yet."""
    found: Segment | None = None
    for segment in reversed(partition.segments[:-1]):
        if segment.base_offset < going.upto:
            break
        found = segment
    return found if found is not None and found.next_offset <= partition.high_watermark else None
