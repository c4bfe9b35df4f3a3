"""Uploads the closed segments of the partitions that a broker leads: the log, then its `.meta`, then a manifest that names them.

Only segments below the high watermark go, one after the other in each partition, a few at a time in all (`upload_plan`). Their files are
read and verified in another thread. Objects of one term are never named in another one: a broker that stops leading forgets them, and the
sweep finds them. A segment that takes appends is closed here once it is old and large enough, or when the log's half asks for it. One that
was compacted goes again.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from horolog.base.clock import Clock
from horolog.broker.base.answers import Answer, run
from horolog.broker.base.own_thread import OffLoop
from horolog.broker.base.store_figures import UploadFigures
from horolog.broker.bucket import closed_segment, segment_meta, upload_plan
from horolog.broker.bucket.block_fetcher import Soon
from horolog.broker.bucket.bucket_segment import BucketSegment, described
from horolog.broker.bucket.closed_segment import ClosedSegment, Content
from horolog.broker.bucket.covered import Covered
from horolog.broker.bucket.names import SegmentName, segments
from horolog.broker.bucket.producers_behind import ProducersAt
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.bucket.shipped_partition import ShippedPartition
from horolog.broker.bucket.short_turns import ShortTurns
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.bucket.upload_plan import Due, InBucket
from horolog.broker.log.producers import RowFileError, producers_file, snapshot_file
from horolog.broker.log.storage import StorageFault

log = logging.getLogger(__name__)

AT_ONCE = 2
"""Producers wait for the same store."""
LEAST_BYTES = 4 << 20
"""A smaller segment is not closed for its age."""


class Uploads(NamedTuple):
    """What an uploader needs beside the store."""

    clock: Clock
    new_nonce: Callable[[], bytes]
    off_loop: OffLoop
    soon: Soon
    close_after_ms: Callable[[], int]
    """The age at which a segment is closed."""
    uploaded: Callable[[ShippedPartition, BucketSegment], None]
    """The objects of a segment are in the bucket, and no manifest names them yet."""
    ends: Callable[[ShippedPartition], tuple[int, int]] = lambda _: (0, 0)
    """Where the pages of the newest manifest end, and where all that it covers does."""


class _Going:
    """How far the uploads of one partition are, in one term of its leader."""

    def __init__(self, partition: ShippedPartition, covered: Covered) -> None:
        self.before = _producers_at(covered.end_offset, covered.producers, covered.batches)
        """At the place that was found out last."""
        self.sent = upload_plan.sent_of(partition, covered)
        self.unread = tuple(partition.unread_bases)
        self.is_under_way = False
        self.fault = ""

    def __repr__(self) -> str:
        return f"<_Going, {len(self.sent)} local segments lie in the bucket>"


def _producers_at(offset: int, snapshot: bytes, batches: bytes) -> ProducersAt:
    try:
        entries = snapshot_file.decode(snapshot) if snapshot else []
        remembered = producers_file.decode(batches) if batches else []
    except RowFileError as error:
        log.error("producers before offset %s are not known: %s", offset, error)
        return ProducersAt(offset)
    return ProducersAt(offset, entries, remembered)


class SegmentUploader:
    """The uploads of all partitions that this broker leads. `look` is called now and then."""

    def __init__(self, store: StoreAccess, uploads: Uploads) -> None:
        self._store = store
        self._uploads = uploads
        self._going: dict[ShippedPartition, _Going] = {}
        self._at_once = AT_ONCE
        self._under_way = 0
        self._next: deque[tuple[ShippedPartition, _Going]] = deque()
        """The partitions that were not asked for a segment since the last look."""
        self._turns = ShortTurns(self._begin_next, uploads.soon, uploads.clock.monotonic)
        self.uploaded_count = self.uploaded_bytes = self.failed_count = 0

    def __repr__(self) -> str:
        return f"<SegmentUploader of {len(self._going)} partitions, {self._under_way} uploads are under way>"

    def keep(self, partition: ShippedPartition, covered: Covered) -> None:
        """A partition is led here from now on."""
        self._going[partition] = _Going(partition, covered)

    def drop(self, partition: ShippedPartition) -> None:
        """It is not led here any more."""
        self._going.pop(partition, None)

    def _is_current(self, partition: ShippedPartition, going: _Going) -> bool:
        """Whether the partition is still led here, in the same term."""
        return self._going.get(partition) is going

    def figures(self) -> UploadFigures:
        waiting = (upload_plan.waiting_bytes(partition, going.sent) for partition, going in self._going.items())
        return UploadFigures(self.uploaded_count, self.uploaded_bytes, self.failed_count, sum(waiting))

    def left(self, partition: ShippedPartition, log_keys: Collection[str]) -> None:
        """Of its objects, manifests name only these, or will name them."""
        going = self._going.get(partition)
        if going is not None:
            going.sent = {segment: one for segment, one in going.sent.items() if one.log_key in log_keys}

    def is_uploading(self, partition: ShippedPartition) -> bool:
        going = self._going.get(partition)
        return going is not None and going.is_under_way

    def look(self, at_once: int = AT_ONCE) -> None:
        """Close old segments, and upload closed ones, so many at a time; not fewer than before while partitions wait for that."""
        self._at_once = max(at_once, self._at_once) if self._next else at_once
        self._next = deque(self._going.items())
        self._turns.go_on()

    def _begin_next(self) -> bool:
        """Begin an upload of the next partition, if it has one; returns whether others may have one, and more may be under way."""
        if not self._next or self._under_way >= self._at_once:
            return False
        partition, going = self._next.popleft()
        if self._is_current(partition, going) and partition.condition.takes_appends:
            self._close_old(partition)
            self._begin(partition, going)
        return True

    def _close_old(self, partition: ShippedPartition) -> None:
        active = partition.segments[-1]
        if active.size_bytes < LEAST_BYTES:
            return
        now_ms = self._uploads.clock.wall_ms()
        if abs(now_ms - active.created_ms) >= self._uploads.close_after_ms():  # the clock may have been set back
            self.close(partition)

    def close(self, partition: ShippedPartition) -> None:
        """Close the segment that takes appends, unless the disk fails."""
        if partition.condition.takes_appends and partition.segments[-1].size_bytes:
            try:
                partition.roll(self._uploads.clock.wall_ms())
            except StorageFault as fault:
                log.warning("%s: its segment could not be closed; trying again: %s", partition, fault)

    def _begin(self, partition: ShippedPartition, going: _Going) -> None:
        if going.is_under_way or self._under_way >= self._at_once:
            return
        due = upload_plan.next_upload(partition, InBucket(going.sent, going.unread, *self._uploads.ends(partition)))
        if due is not None:
            going.is_under_way = True
            self._under_way += 1
            run(self._upload(partition, going, due))

    async def _upload(self, partition: ShippedPartition, going: _Going, due: Due) -> None:
        """One segment; then the next one of the partition, if it is closed, or of another."""
        name = SegmentName(partition.leader_epoch, due.segment.base_offset, self._uploads.new_nonce())
        content = await self._read(partition, going, due, name.nonce)
        if content is not None and self._is_current(partition, going):
            await self._put(partition, going, due, name, content)
        self._under_way -= 1
        going.is_under_way = False
        if content is not None and self._is_current(partition, going):
            self._begin(partition, going)
        self._turns.go_on()

    async def _read(self, partition: ShippedPartition, going: _Going, due: Due, nonce: bytes) -> Content | None:
        """None if it cannot be read now, which is logged."""
        known = partition.ends.get(due.end_offset) or await self._producers(going, due.end_offset)
        before = None if known is not None else await self._producers(going, due.segment.base_offset)
        try:
            closed = closed_segment.found(partition, due, known)
        except StorageFault as fault:
            content: Content | StorageFault = fault
        else:
            job = partial(_read, closed, before or ProducersAt(closed.base_offset), nonce)
            content = await Answer(partial(self._uploads.off_loop, job))
        if not isinstance(content, StorageFault):
            going.fault = ""
            return content
        if str(content) != going.fault and not due.segment.removed:
            self.failed_count += 1
            going.fault = str(content)
            log.error("%s: a segment could not be uploaded; trying again: %s", partition, content)
        return None

    async def _producers(self, going: _Going, offset: int) -> ProducersAt | None:
        """The producers at an offset, if a segment in the bucket ends there."""
        if going.before.offset == offset:
            return going.before
        ends_there = next((one for one in going.sent.values() if one.next_offset == offset), None)
        data = None if ends_there is None else await self._store.read(ends_there.meta_key)
        if data is None:
            return None
        try:
            meta = segment_meta.decode(data)
        except FormatError as error:
            log.error("producers before offset %s are not known: %s", offset, error)
            return None
        return _producers_at(offset, meta.producers, meta.batches)

    async def _put(
        self, partition: ShippedPartition, going: _Going, due: Due, name: SegmentName, content: Content
    ) -> None:
        assert partition.topic_id is not None
        folder = segments(partition.topic_id, partition.index)
        await self._store.create(name.log_key(folder), content.log)
        if self._is_current(partition, going):
            await self._store.create(name.meta_key(folder), content.meta)
        if not self._is_current(partition, going):
            return
        going.before = content.producers
        for offset in [one for one in partition.ends if one <= due.end_offset]:
            del partition.ends[offset]
        self.uploaded_count += 1
        self.uploaded_bytes += len(content.log)
        segment = due.segment
        assert segment.seal is not None, f"{segment!r} was closed"
        contents = replace(segment.seal.contents, next_offset=due.end_offset)
        sent = described(folder, name, contents, segment.created_ms)
        going.sent = {one: known for one, known in going.sent.items() if not one.removed} | {segment: sent}
        self._uploads.uploaded(partition, sent)


def _read(closed: ClosedSegment, before: ProducersAt, nonce: bytes) -> Content | StorageFault:
    try:
        return closed_segment.read(closed, before, nonce)
    except StorageFault as fault:
        return fault
