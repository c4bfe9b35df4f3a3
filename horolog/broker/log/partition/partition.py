"""One partition: a folder of segments that is appended to at the end and read anywhere.

One thread calls everything but `sync`; nothing waits, so nothing is locked. The life of an append: `append` checks and
queues it, `flush` writes the queue with one write, `sync` (in a worker thread) syncs it. `log_end_offset` includes queued
records, `written_end` only written ones. Readers see the log up to the `high_watermark`: the same, unless records count
only once another place has them, which a subclass knows (`Resources.kind`). When a write fails, everything since the last
flush is rolled back, in the files and in memory, and the partition goes on. If the roll-back or a sync fails, the
partition becomes read only: it takes no appends until the job of `rewrite.job` has succeeded. An offline partition serves
nothing until its folder has been opened again (`replace_log`). See `condition`.

Other operations are functions over a partition, in the modules of this package: `lookups` by time and leader epoch, `log_start`
(retention and DeleteRecords), `exchange` of segments, `progress`, `markers` of transactions, `rewrite` and `closing`.
"""

import logging
from collections.abc import Iterable
from typing import Final

from mypy_extensions import mypyc_attr

from horolog.broker.config.topic_settings import TopicConfig
from horolog.broker.log.partition import rewrite, rolling
from horolog.broker.log.partition.aborted import AbortedTransactions
from horolog.broker.log.partition.condition import SERVING, Condition, PartitionState
from horolog.broker.log.partition.doomed import Doomed
from horolog.broker.log.partition.durability import Durability
from horolog.broker.log.partition.expiry import SegmentExpiry
from horolog.broker.log.partition.opened import OpenedPartition
from horolog.broker.log.partition.time_watch import kept_ms
from horolog.broker.log.producers import Duplicate, ProducerBatch, ProducerStates
from horolog.broker.log.segments import (
    Allowance,
    LogReader,
    Segment,
    TimeSearch,
    convert_whole,
    indexes_of,
)
from horolog.broker.log.storage import NO_DESCRIPTORS, OverlayStorage, StorageFault
from horolog.broker.log.validation import AppendResult, RefusedSet, Validated, check, too_large
from horolog.protocol.primitives import Unread
from horolog.protocol.records.record import MAX_INT64

log = logging.getLogger(__name__)

NO_APPEND_TIME: Final = -1
WRITE_AT_BYTES: Final = 256 * 1024
"""Queued appends of this size do not wait for the end of the tick."""
_new_tuple: Final = tuple.__new__  # a third of the cost of a named tuple's own constructor


class OffsetOutOfRange(Exception):
    """The offset is outside of the log."""


@mypyc_attr(allow_interpreted_subclasses=True)
class Partition:
    """See the module's docstring."""

    __slots__ = (
        "_active",
        "_failed",
        "_kept_ms",
        "_limits",
        "_ready",
        "aborted",
        "appended_bytes",
        "condition",
        "config",
        "counts_to_flush",
        "directory",
        "doomed",
        "durability",
        "epochs",
        "expiry",
        "folder",
        "high_watermark",
        "index",
        "leader_epoch",
        "log_end_offset",
        "log_start_offset",
        "producers",
        "reader",
        "resources",
        "segments",
        "sync_state",
        "times",
        "topic",
        "topic_id",
        "written_end",
    )

    def __init__(self, opened: OpenedPartition) -> None:
        self._begin(opened, SERVING)

    def _begin(self, opened: OpenedPartition, state: PartitionState) -> None:
        """Set all state of the partition from the result of an opening."""
        resources = opened.resources
        self.topic = opened.topic
        self.index = opened.index
        name = str(self)
        self.directory = opened.folder.directory
        self.topic_id = opened.topic_id
        self.appended_bytes = 0
        self.folder = opened.folder
        self.segments = opened.segments
        self.leader_epoch = opened.leader_epoch
        self.log_start_offset = opened.log_start_offset
        self.resources = resources
        self._active = opened.segments[-1]
        self.log_end_offset = self.written_end = self.high_watermark = self._active.next_offset
        self.producers = opened.producers
        self.epochs = opened.epochs
        self.aborted = AbortedTransactions(resources.storage, self.directory, self.segments, opened.aborted)
        self._ready = False
        self._failed: StorageFault | None = None
        self.reader = LogReader(self.segments)
        self.times = TimeSearch(self.segments, resources.times)
        self.sync_state = opened.sync_state()
        self.condition = Condition(name, state, resources.changes)
        self.durability = Durability(
            resources.storage, self.directory, self.sync_state, resources.folders, self.condition
        )
        self.expiry = SegmentExpiry(name, self.sync_state)
        self.doomed = Doomed()
        self.configure(opened.config)
        if opened.stopped is not None:
            self.condition.stop(opened.stopped)

    def __repr__(self) -> str:
        condition = self.condition
        stopped = condition.stopped and f", accepts no appends: {condition.stopped}"
        state = f", offline: {condition.fault}" if condition.fault else stopped or ""
        offsets = f"{self.log_start_offset} to {self.log_end_offset}"
        return f"<Partition {self.topic}-{self.index}: {len(self.segments)} segments, offsets {offsets}{state}>"

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"

    def configure(self, config: TopicConfig) -> None:
        """Apply these settings from now on."""
        self.config = config
        self._active.index_interval_bytes = config.index_interval_bytes
        self._limits = rolling.limits_of(self._active.base_offset, config, self.resources.random)
        self._kept_ms = kept_ms(config)
        self.counts_to_flush = config.flush_messages < MAX_INT64

    @property
    def is_believed(self) -> bool:
        """Whether reads show the bytes on the disk: appends are not stopped, or all changes are kept in memory."""
        return self.condition.state.stopped is None or isinstance(self.resources.storage, OverlayStorage)

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self.segments)

    @property
    def last_stable_offset(self) -> int:
        """The offset up to which every transaction is decided."""
        first = self.producers.first_undecided_offset
        return self.high_watermark if first is None else min(max(first, self.log_start_offset), self.high_watermark)

    # -- appending

    def append(self, records: bytes | memoryview, now_ms: int, *, produce_version: int) -> AppendResult:
        """Queue records at the log's end. Raises Refused (the producer's fault) or StorageFault (the disk's)."""
        if self._failed is not None or self.condition.state is not SERVING:
            self.check_takes_appends()  # which raises
        config = self.config
        try:
            checked = check(
                records,
                self.log_end_offset,
                config,
                now_ms,
                produce_version=produce_version,
                leader_epoch=self.leader_epoch,
            )
        except RefusedSet as refused:
            self.resources.counters.note_refusal(refused)
            raise
        if not checked.count:
            return AppendResult(-1, -1, NO_APPEND_TIME, self.log_start_offset, 0)
        if checked.batches:
            duplicate = _check_producers(self.producers, checked.batches)
            if duplicate is not None:
                append_time = duplicate.timestamp if config.log_append_time else NO_APPEND_TIME
                first, last = duplicate.first_offset, duplicate.last_offset
                return AppendResult(first, last, append_time, self.log_start_offset, last - first + 1)
        self.append_checked(checked, now_ms)
        _, _, first, last, count, _, _, _, append_time, _, _, _ = checked
        return _new_tuple(AppendResult, (first, last, append_time, self.log_start_offset, count))

    def append_checked(self, checked: Validated, now_ms: int) -> None:
        """Queue a set that `validate.check` has passed for this log end offset."""
        active = self._active
        if not self._ready:
            self._begin_appends()
        size_bytes, last_offset, max_timestamp = checked.size_bytes, checked.last_offset, checked.max_timestamp
        if size_bytes > self.config.segment_bytes:
            raise too_large(size_bytes, self.config.segment_bytes)
        reason = self._limits.exceeded_by(size_bytes, last_offset, max_timestamp, active, now_ms)
        if reason is not None:
            log.info("%s-%s: new segment at %s (%s)", self.topic, self.index, self.log_end_offset, reason)
            self.roll(now_ms)
            active = self._active
        if not 0 <= now_ms - max_timestamp <= self._kept_ms:
            self.resources.watch.note(self, self.resources.counters, max_timestamp, now_ms)
        if max_timestamp < active.max_timestamp:
            self.resources.counters.appends_out_of_order.value += 1
        active.append(checked)
        self.appended_bytes += size_bytes
        self.log_end_offset = last_offset + 1
        if self.sync_state.waiting_since_ms < 0:
            self.sync_state.append_waits(now_ms)
        for batch in checked.batches:
            completed = self.producers.update(batch, now_ms)
            if completed is not None and completed.aborted:
                self.aborted.waiting.append(completed.index_entry())
        if active.end_bytes - active.size_bytes >= WRITE_AT_BYTES:
            try:  # while the bytes are still in the processor's cache
                self._write()
            except StorageFault as fault:
                self._failed = fault  # raised by the next `flush`

    def check_takes_appends(self) -> None:
        """Raises StorageFault if nothing can be appended now."""
        if self.condition.state is not SERVING:
            raise self.condition.error(self.directory)
        if self._failed is not None:
            raise self._failed

    def _begin_appends(self) -> None:
        """Prepare the first append in a leader epoch or after an opening: indexes grow again, the epoch is recorded."""
        if self._active.seal is not None:
            self._active.prepare_to_append(indexes_of(self._active))
        self.epochs.begin(self.leader_epoch, self.log_end_offset, self.resources.storage, self.directory)
        self._ready = True

    def lead(self, epoch: int) -> None:
        """Use this leader epoch, which the caller decides, from the next append on."""
        assert epoch >= self.leader_epoch
        self.leader_epoch, self._ready = epoch, False

    def roll(self, now_ms: int) -> None:
        """Complete the active segment and begin another. If that fails, the active segment and its records stay."""
        if not self._ready:
            self._begin_appends()
        self.write_pending()
        old = self._active
        try:
            old.complete()
            new = Segment.create(self.folder, self.log_end_offset, self.config, now_ms)
        except StorageFault:
            old.seal = None
            raise
        self.sync_state.segment_written(old)
        self.sync_state.save_producers(self.producers, self.log_end_offset)
        self.begin_segment(new)
        self.resources.counters.segments_rolled.value += 1

    def begin_segment(self, segment: Segment) -> None:
        """Make this new segment the active one."""
        assert segment.base_offset > self._active.base_offset, f"{segment!r} has the files of {self._active!r}"
        self.segments.append(segment)
        self._active = segment
        self.segments_changed()
        self._limits = rolling.limits_of(segment.base_offset, self.config, self.resources.random)

    def segments_changed(self) -> None:
        """Segments were added, removed or changed: drop cached places and times, and have the seals written again."""
        self.times.forget()
        self.reader.forget()
        self.sync_state.segments_changed()

    def write_pending(self) -> None:
        """Write now. A failure is raised here and again by the next `flush`, which answers the waiting producers."""
        self.resources.changes.note()
        try:
            self._write()
        except StorageFault as fault:
            self._failed = fault
            raise

    def flush(self) -> None:
        """Write the queued appends. Raises StorageFault after rolling back everything since the last flush."""
        if self._failed is not None:
            fault, self._failed = self._failed, None
            raise fault
        self._write()

    def _write(self) -> None:
        active = self._active
        if not active.pending:
            return
        try:
            active.flush()
        except StorageFault as fault:
            self._take_back(fault)
            raise
        self.written_end = self.high_watermark = self.log_end_offset
        if self.producers.unwritten:
            self.producers.written()
        if not active.sync.is_due:  # checked here too: every request comes this way
            self.sync_state.segment_written(active)
        if self.aborted.waiting:
            self.aborted.write()

    def _take_back(self, fault: StorageFault) -> None:
        """Roll back to the state after the last flush."""
        self.resources.counters.write_failures.value += 1
        log.error("%s-%s: appends from offset %s were reverted: %s", self.topic, self.index, self.written_end, fault)
        try:
            self._active.roll_back()
            self.sync_state.segment_written(self._active)  # else a power cut after a clean stop restores the bytes
        except StorageFault as second:
            self.condition.stop(f"{fault}; then {second}")
        self.log_end_offset = self.written_end
        self.producers.undo_unwritten()
        self.aborted.waiting.clear()

    # -- syncing

    def sync(self) -> None:
        """Sync everything written so far. Safe in any thread. After a failure no appends are taken before a rewrite (`rewrite`)."""
        if self.condition.stopped is not None:
            raise self.condition.error(self.directory)
        try:
            self.aborted.flush()
            self.durability.sync(self.segments, self.written_end)
        except StorageFault as fault:
            if not self.condition.is_deleted:
                self.resources.counters.sync_failures.value += 1
                if fault.code not in NO_DESCRIPTORS:
                    self.condition.stop(f"the written data may not be on the disk: {fault}")
                raise

    def replace_log(self, opened: OpenedPartition) -> None:
        """Go on with the result of a fresh opening; no appends are taken until unsynced bytes are rewritten."""
        leader_epoch = max(self.leader_epoch, opened.leader_epoch)
        self._begin(opened, PartitionState(stopped="it was opened again, and its data may not be on the disk"))
        self.leader_epoch = leader_epoch
        self.resources.changes.note()

    # -- reading

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        at_least_one: bool = True,
        cuts_first: bool = True,
        upto: int | None = None,
        upconvert: Allowance | None = None,
    ) -> bytes:
        """The log from the batch that holds `offset` on, as stored in the file; b"" if there is nothing yet.

        Cut at `max_bytes`, even inside a batch, as readers expect. A first batch larger than that is returned whole with
        `at_least_one`; otherwise its beginning is returned, or nothing if `cuts_first` is false. Nothing at or behind
        `upto`, a batch boundary, is returned. `upconvert`: v0 and v1 as v2.
        """
        shown, believed = self.high_watermark, self.is_believed
        end_offset = shown if upto is None or upto > shown else upto
        if not self.log_start_offset <= offset < end_offset:
            if self.log_start_offset <= offset <= self.log_end_offset:
                return b""
            raise OffsetOutOfRange(f"offset {offset} is not between {self.log_start_offset} and {self.log_end_offset}")
        up = upconvert if believed else None
        if upconvert is not None:
            upconvert.epoch_of = self.epochs.epoch_of
        data = self.reader.read(
            offset,
            end_offset,
            self.written_end,
            max_bytes,
            at_least_one=at_least_one,
            cuts_first=cuts_first,
            upconvert=up,
        )
        if believed:
            return data
        whole = rewrite.sound(data, end_offset)
        if at_least_one and data and not whole:
            raise self.condition.error(self.directory)
        return whole if upconvert is None else convert_whole(whole, self.epochs.epoch_of)

    def unread(self, offset: int, max_bytes: int, upto: int) -> Unread | None:
        """The result of `read` as a slice to send without reading it here; None if the caller has to use `read`."""
        end_offset = min(upto, self.high_watermark)
        if not self.is_believed or not self.log_start_offset <= offset < end_offset:
            return None
        return self.reader.unread(offset, end_offset, self.written_end, max_bytes)

    def bytes_ahead(self, offset: int, upto: int) -> int:
        """The bytes to read before `upto`, a batch boundary; if the segment ends before it, more than any request's limit."""
        end_offset = min(upto, self.high_watermark)
        if not self.log_start_offset <= offset < end_offset:
            return 0
        return self.reader.bytes_ahead(offset, end_offset, self.written_end)


def made(opened: OpenedPartition) -> Partition:
    """The partition that an opening has found, of the kind that the broker's partitions have."""
    return (opened.resources.kind or Partition)(opened)


def _check_producers(producers: ProducerStates, batches: Iterable[ProducerBatch]) -> Duplicate | None:
    """The place of a batch that is in the log already; raises Refused for one that must not be appended."""
    for batch in batches:
        verdict = producers.check(batch)
        if isinstance(verdict, Duplicate):
            return verdict
        if verdict is not None:
            raise RefusedSet(verdict.code, verdict.message)
    return None
