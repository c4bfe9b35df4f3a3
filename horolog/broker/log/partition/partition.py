"""One partition: a folder of segments that is appended to at the end, read anywhere, looked up by time, cut at the start.

One thread calls everything but `sync`; nothing waits, so nothing is locked. The life of an append: `append` checks and
queues it, `flush` writes all that is queued with one write, `sync` (in a worker thread) has it on the disk. `log_end_offset` counts
queued records, `high_watermark` written ones: readers see the log up to there. When a write fails, everything since the
last flush is taken back, from the files as from memory, and the partition goes on. If that fails too, or a sync does, the
partition is read only: it takes no appends until the job of `rewrite_job` has gone well. One that is offline serves nothing
until its folder has been opened again (`replace_log`). See `condition`.
"""

import logging
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from horolog.broker.log.integrity import Seal
from horolog.broker.log.partition import retention, rewrite, rolling
from horolog.broker.log.partition.aborted import AbortedTransactions
from horolog.broker.log.partition.condition import SERVING, Condition, State
from horolog.broker.log.partition.doomed import Doomed
from horolog.broker.log.partition.durability import Durability
from horolog.broker.log.partition.expiry import Expiry
from horolog.broker.log.partition.opened import Opened
from horolog.broker.log.partition.rewrite import Unreadable
from horolog.broker.log.partition.sync_state import Snapshot
from horolog.broker.log.partition.time_watch import kept_ms
from horolog.broker.log.producers import Duplicate, ProducerBatch, snapshot_file
from horolog.broker.log.segments import (
    Allowance,
    CleanedSegment,
    Found,
    LogReader,
    Segment,
    TimeSearch,
    convert_whole,
    swap_files,
)
from horolog.broker.log.storage import NO_DESCRIPTORS, OverlayStorage, StorageFault
from horolog.broker.log.validation import AppendResult, Refused, Validated, check, too_large
from horolog.broker.topic_settings import TopicConfig
from horolog.protocol.records.record import MAX_INT64

log = logging.getLogger(__name__)

DELETED_SUFFIX = ".deleted"
NO_APPEND_TIME = -1
_new_tuple = tuple.__new__  # a third of the cost of a named tuple's own constructor


class OffsetOutOfRange(Exception):
    """The log does not reach there."""


class Partition:
    """See the module's docstring."""

    __slots__ = (
        "_active",
        "_config",
        "_failed",
        "_kept_ms",
        "_limits",
        "_ready",
        "aborted",
        "appended_bytes",
        "condition",
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
    )

    def __init__(self, opened: Opened) -> None:
        self._begin(opened, SERVING)

    def _begin(self, opened: Opened, state: State) -> None:
        """Everything there is of a partition follows from what an opening has found."""
        resources = opened.resources
        self.topic = opened.topic
        self.index = opened.index
        name = f"{self.topic}-{self.index}"
        self.directory = opened.folder.directory
        self.topic_id = opened.topic_id
        self.appended_bytes = 0
        self.folder = opened.folder
        self.segments = opened.segments
        self.leader_epoch = opened.leader_epoch
        self.log_start_offset = opened.log_start_offset
        self.resources = resources
        self._active = opened.segments[-1]
        self.log_end_offset = self.high_watermark = self._active.next_offset
        self.producers = opened.producers
        self.epochs = opened.epochs
        self.aborted = AbortedTransactions(resources.storage, self.directory, self.segments, opened.aborted)
        self._ready = False
        self._failed: StorageFault | None = None
        self.reader = LogReader(self.segments)
        self.times = TimeSearch(self.segments, resources.times)
        self.sync_state = opened.sync_state()
        self.durability = Durability(resources.storage, self.directory, self.sync_state)
        self.expiry = Expiry(name, self.sync_state)
        self.condition = Condition(name, state)
        self.doomed = Doomed()
        self.config = opened.config
        if opened.stopped is not None:
            self.condition.stop(opened.stopped)

    def __repr__(self) -> str:
        condition = self.condition
        stopped = condition.stopped and f", takes no appends: {condition.stopped}"
        state = f", offline: {condition.fault}" if condition.fault else stopped or ""
        offsets = f"{self.log_start_offset} to {self.log_end_offset}"
        return f"<Partition {self.topic}-{self.index}: {len(self.segments)} segments, offsets {offsets}{state}>"

    @property
    def config(self) -> TopicConfig:
        return self._config

    @config.setter
    def config(self, config: TopicConfig) -> None:
        self._config = config
        self._active.index_interval_bytes = config.index_interval_bytes
        self._limits = self._rolling_limits()
        self._kept_ms = kept_ms(config)
        self.counts_to_flush = config.flush_messages < MAX_INT64

    def _rolling_limits(self) -> rolling.RollingLimits:
        jitter_ms = rolling.draw_jitter_ms(self._config, self.resources.random)
        return rolling.RollingLimits(self._active.base_offset, self._config, jitter_ms)

    @property
    def _is_believed(self) -> bool:
        """Whether a read shows the bytes on the disk: no sync has failed there, or nothing is written to it."""
        return self.condition.state.stopped is None or isinstance(self.resources.storage, OverlayStorage)

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self.segments)

    @property
    def last_stable_offset(self) -> int:
        """Up to where every transaction is decided."""
        first = self.producers.first_undecided_offset
        return self.high_watermark if first is None else min(max(first, self.log_start_offset), self.high_watermark)

    # -- appending

    def append(self, records: bytes | memoryview, now_ms: int, *, produce_version: int) -> AppendResult:
        """Queue records behind the log's end. Raises Refused (theirs) or StorageFault (the disk's)."""
        if self._failed is not None or self.condition.state is not SERVING:
            self.check_takes_appends()  # which raises
        config = self._config
        try:
            checked = check(
                records,
                self.log_end_offset,
                config,
                now_ms,
                produce_version=produce_version,
                leader_epoch=self.leader_epoch,
            )
        except Refused as refused:
            self.resources.counters.note_refusal(refused)
            raise
        if not checked.count:
            return AppendResult(-1, -1, NO_APPEND_TIME, self.log_start_offset, 0)
        if checked.batches:
            duplicate = self._check_producers(checked.batches)
            if duplicate is not None:
                append_time = duplicate.timestamp if config.log_append_time else NO_APPEND_TIME
                first, last = duplicate.first_offset, duplicate.last_offset
                return AppendResult(first, last, append_time, self.log_start_offset, last - first + 1)
        self.append_checked(checked, now_ms)
        _, _, first, last, count, _, _, _, append_time, _, _, _ = checked
        return _new_tuple(AppendResult, (first, last, append_time, self.log_start_offset, count))

    def append_checked(self, checked: Validated, now_ms: int) -> None:
        """Queue what `validate.check` has passed for this log end offset."""
        active = self._active
        if not self._ready:
            self._begin_appends()
        size_bytes, last_offset, max_timestamp = checked.size_bytes, checked.last_offset, checked.max_timestamp
        if size_bytes > self._config.segment_bytes:
            raise too_large(size_bytes, self._config.segment_bytes)
        reason = self._limits.exceeded_by(size_bytes, last_offset, max_timestamp, active, now_ms)
        if reason is not None:
            log.info("%s-%s: new segment at %s (%s)", self.topic, self.index, self.log_end_offset, reason)
            self._roll(now_ms)
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

    def check_takes_appends(self) -> None:
        """Raises StorageFault if nothing can be appended now."""
        if self.condition.state is not SERVING:
            raise self._not_serving()
        if self._failed is not None:
            raise self._failed

    def _not_serving(self) -> StorageFault:
        return StorageFault(f"{self.topic}-{self.index} {self.condition}", path=self.directory)

    def _check_producers(self, batches: Iterable[ProducerBatch]) -> Duplicate | None:
        """The place of a batch that is in the log already; raises Refused for one that must not be there."""
        for batch in batches:
            verdict = self.producers.check(batch)
            if isinstance(verdict, Duplicate):
                return verdict
            if verdict is not None:
                raise Refused(verdict.code, verdict.message)
        return None

    def _begin_appends(self) -> None:
        """Before the first append since the partition was opened: indexes grow again, and the epoch is on record."""
        if self._active.seal is not None:
            self._active.prepare_to_append()
        self.epochs.begin(self.leader_epoch, self.log_end_offset, self.resources.storage, self.directory)
        self._ready = True

    def lead(self, epoch: int) -> None:
        """Append in this leader epoch, which is decided outside, from the next append on."""
        assert epoch >= self.leader_epoch
        self.leader_epoch, self._ready = epoch, False

    def _roll(self, now_ms: int) -> None:
        """Complete the active segment and begin another. If that fails the active one stays, and so do its records."""
        self.write_pending()
        old = self._active
        try:
            old.complete()
            new = Segment.create(self.folder, self.log_end_offset, self._config, now_ms)
        except StorageFault:
            old.seal = None
            raise
        self.sync_state.segment_written(old)
        self.save_snapshot()
        self.segments.append(new)
        self._active = new
        self._segments_changed()
        self._limits = self._rolling_limits()
        self.resources.counters.segments_rolled.value += 1

    def _segments_changed(self) -> None:
        self.times.forget()
        self.reader.forget()
        self.sync_state.segments_changed()

    def write_pending(self) -> None:
        """Write now. If it fails, raise, and raise again from the next `flush`, which answers the waiting producers."""
        try:
            self._write()
        except StorageFault as fault:
            self._failed = fault
            raise

    def flush(self) -> None:
        """Write the queued appends. Raises StorageFault, after everything since the last flush has been taken back."""
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
        self.high_watermark = self.log_end_offset
        if self.producers.unwritten:
            self.producers.written()
        if not active.sync.is_due:
            self.sync_state.segment_written(active)
        if self.aborted.waiting:
            self.aborted.write()

    def _take_back(self, fault: StorageFault) -> None:
        """Return to what the last flush left."""
        self.resources.counters.write_failures.value += 1
        log.error("%s-%s: appends from %s on taken back: %s", self.topic, self.index, self.high_watermark, fault)
        try:
            self._active.roll_back()
            self.sync_state.segment_written(self._active)  # else a power cut after a clean stop brings it back
        except StorageFault as second:
            self.condition.stop(f"{fault}; then {second}")
        self.log_end_offset = self.high_watermark
        self.producers.undo_unwritten()
        self.aborted.waiting.clear()

    # -- syncing

    @property
    def recovery_point(self) -> int:
        """Everything before it is on the disk."""
        return self.sync_state.recovery_point

    @property
    def flush_is_due(self) -> bool:
        """Whether `flush.messages` asks for a sync now, whatever the producer asked for."""
        return self.log_end_offset - self.sync_state.recovery_point >= self._config.flush_messages

    def sync_is_due(self, now_ms: int) -> bool:
        """Whether `flush.ms` has passed, or a roll, a deletion or a scan has left something to be made durable."""
        if self.sync_state.has_files_to_write:
            return True
        since_ms = self.sync_state.waiting_since_ms
        return since_ms >= 0 and abs(now_ms - since_ms) >= self._config.flush_ms  # the clock may have been set back

    def sync(self) -> None:
        """Have on the disk what was written so far. Safe in any thread. If it fails no appends are taken before a rewrite (`rewrite`)."""
        if self.condition.stopped is not None:
            raise self._not_serving()
        try:
            self.aborted.flush()
            self.durability.sync(self.segments, self.high_watermark)
        except StorageFault as fault:
            if not self.condition.is_deleted:
                self.resources.counters.sync_failures.value += 1
                if fault.code not in NO_DESCRIPTORS:
                    self.condition.stop(f"what was written may not be on the disk: {fault}")
                raise

    @property
    def has_unsynced(self) -> bool:
        return self.sync_state.waiting_since_ms >= 0

    def rewrite_job(self) -> Callable[[], None]:
        """What has a stopped partition take appends again once its disk works; raises StorageFault; may run in a worker."""
        with suppress(
            StorageFault
        ):  # which the next flush tells; the job cuts off what was queued and is not written now
            self.write_pending()
        job = self.durability.rewrite_job(self.segments, self._active, self.high_watermark)

        def rewrite_log() -> None:
            try:
                job()
            except Unreadable as damage:
                self.condition.go_offline(f"what was written and not synced is lost: {damage}")
                log.error("%s-%s is offline: %s", self.topic, self.index, self.condition.fault)
            else:
                self.condition.resume()

        return rewrite_log

    def replace_log(self, opened: Opened) -> None:
        """Go on with what a fresh opening has found; no appends are taken until unsynced bytes are rewritten."""
        leader_epoch = max(self.leader_epoch, opened.leader_epoch)
        self._begin(opened, State(stopped="it was opened again, and what it holds is not known to be on the disk"))
        self.leader_epoch = leader_epoch

    def save_snapshot(self, replaces: int | None = None) -> None:
        producers = self.producers
        if len(producers):
            snapshot = Snapshot(self.log_end_offset, producers.snapshot(), producers.remembered(), replaces)
            self.sync_state.save_snapshot(snapshot)

    def note_progress(self) -> None:
        """Now and then: have the active segment sealed up to here with the next sync, so that a crash costs no long scan."""
        active = self._active
        last = active.progress
        if self.condition.takes_appends and active.note_progress():
            self.sync_state.segment_written(active)
            self.sync_state.segments_changed()
            self.save_snapshot(replaces=None if last is None else last.contents.next_offset)

    # -- reading

    def read(
        self,
        offset: int,
        max_bytes: int,
        *,
        at_least_one: bool = True,
        upto: int | None = None,
        upconvert: Allowance | None = None,
    ) -> bytes:
        """The log from the batch that holds `offset` on, as it lies in the file; b"" if there is nothing yet.

        Cut at `max_bytes`, inside a batch if that is where it falls, as readers expect it; unless the first batch alone is
        larger and `at_least_one` asks for it. Nothing at or behind `upto`, a batch boundary. `upconvert`: v0 and v1 as v2.
        """
        written, believed = self.high_watermark, self._is_believed
        end_offset = written if upto is None or upto > written else upto
        if not self.log_start_offset <= offset < end_offset:
            if self.log_start_offset <= offset <= self.log_end_offset:
                return b""
            raise OffsetOutOfRange(f"{offset} is not in {self.log_start_offset} to {self.log_end_offset}")
        up = upconvert if believed else None
        data = self.reader.read(offset, end_offset, written, max_bytes, at_least_one=at_least_one, upconvert=up)
        if believed:
            return data
        whole = rewrite.sound(data, end_offset)
        if at_least_one and data and not whole:
            raise self._not_serving()
        return whole if upconvert is None else convert_whole(whole)

    # -- looking up

    def first_at_or_after(self, timestamp: int, upto: int | None = None) -> Found | None:
        """The first record, in offset order, with a timestamp at or after the given one; None if there is none."""
        self.resources.counters.lookups_by_time.value += 1
        end_offset = self.high_watermark if upto is None else min(upto, self.high_watermark)
        known_offset = end_offset if self._is_believed else min(end_offset, self.recovery_point)
        found = self.times.first_at_or_after(timestamp, self.log_start_offset, known_offset)
        if found is None and known_offset < end_offset:
            raise self._not_serving()  # it may lie where the page cache has lost what was written
        return found

    def largest_timestamp(self) -> Found | None:
        """The first record with the largest timestamp of the log."""
        if not self._is_believed and self.recovery_point < self.high_watermark:
            raise self._not_serving()
        return self.times.largest(self.log_start_offset, self.high_watermark)

    def offsets_before(self, timestamp: int, max_count: int, now_ms: int) -> list[int]:
        """ListOffsets v0: see `newest_before`. The log's end counts as a segment written now, unless the active segment is empty."""
        end = (self.high_watermark, now_ms) if self._active.size_bytes else None
        return self.times.newest_before(timestamp, max_count, self.log_start_offset, end)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest known leader epoch not above `epoch` and where it ends; (-1, -1) if nothing is known of it."""
        if epoch == self.leader_epoch:
            return epoch, self.log_end_offset
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

    def epoch_at(self, offset: int) -> int:
        """The leader epoch in which an offset was or will be written; -1 if that is not known."""
        if offset >= self.log_end_offset:
            return self.leader_epoch
        return self.epochs.epoch_of(offset)

    # -- the start of the log moves

    def delete_records_before(self, offset: int) -> None:
        """Move the log's start; whole segments before it go. The caller writes the log start checkpoint."""
        if offset > self.high_watermark or offset < 0:
            raise OffsetOutOfRange(f"{offset} is not in {self.log_start_offset} to {self.high_watermark}")
        if offset > self.log_start_offset:
            self.check_takes_appends()
            self._move_start(offset)

    def _move_start(self, offset: int) -> None:
        self.log_start_offset = offset
        self.reader.forget()
        if self.epochs.truncate_from_start(offset):
            self.epochs.save(self.resources.storage, self.directory)

    def apply_retention(self, now_ms: int) -> list[retention.Expired]:
        """Take out of use what has outlived its time, size or start offset; says what. The rest goes with `finish_retention`."""
        self.write_pending()
        expired = self.expiry.find(self, now_ms)
        self.producers.expire(now_ms)
        return self._expire(expired, now_ms)

    def finish_retention(self, now_ms: int) -> list[retention.Expired]:
        """When `expiry.is_due`: what had expired when `apply_retention` was called last, and still has."""
        self.write_pending()
        return self._expire(self.expiry.find_waiting(self, now_ms), now_ms)

    def _expire(self, expired: Sequence[retention.Expired], now_ms: int) -> list[retention.Expired]:
        if expired and expired[-1].base_offset == self._active.base_offset:
            expired = self._without_active(expired, now_ms)
        going = self.expiry.dispensable(self, expired)
        if self.expiry.waiting_upto is not None and not self.sync_state.has_snapshots:
            self.save_snapshot()
        try:
            for segment in going:
                self.take_out(segment, now_ms)
                self.resources.counters.segments_expired.value += 1
        finally:  # also if a later one could not be renamed
            if self.segments[0].base_offset > self.log_start_offset:
                self._move_start(self.segments[0].base_offset)
        return list(expired[: len(going)])

    def _without_active(self, expired: Sequence[retention.Expired], now_ms: int) -> Sequence[retention.Expired]:
        """All of it, once another segment is active; where none can be begun the one that is stays."""
        if not self.condition.takes_appends:
            return expired[:-1]
        if not self._ready:
            self._begin_appends()
        self._roll(now_ms)
        return expired

    def take_out(self, segment: Segment, now_ms: int) -> None:
        """Rename a segment's files to `.deleted`; they are removed after `file.delete.delay.ms`. If that fails it stays."""
        segment.retire(DELETED_SUFFIX)
        self.segments.remove(segment)
        self.doomed.add(segment, now_ms + self._config.file_delete_delay_ms)
        self._segments_changed()
        self.expiry.forget(segment.base_offset)
        storage = self.resources.storage
        snapshot = f"{self.directory}/{snapshot_file.file_name(segment.base_offset)}"
        if storage.exists(snapshot):  # of no use without the log
            storage.remove(snapshot)
        self.aborted.remove(segment.base_offset)

    @property
    def starts_inside_segment(self) -> bool:
        """Whether the log's start is not told by the name of its first segment, which a power cut may bring back."""
        return self.log_start_offset > (0 if self.sync_state.names_are_unsynced else self.segments[0].base_offset)

    # -- compaction

    def replace_segments(self, cleaned: Sequence[CleanedSegment], now_ms: int) -> bool:
        """Put compacted segments in the place of those they were made from; False if those are no longer all there.

        After a StorageFault files and memory do not agree: a restart finishes what was begun (see `swap_files`).
        """
        complete = {one.base_offset: one for one in self.segments[:-1]}
        storage = self.resources.storage
        bases = [one.base_offset for one in cleaned]
        if not all(base in complete for one in cleaned for base in one.replaces):
            swap_files.discard(storage, self.directory, bases)
            return False
        swap_files.promote(storage, self.directory, bases)
        for base in [base for one in cleaned for base in one.replaces]:
            self.take_out(complete[base], now_ms)
        swap_files.install(storage, self.directory, bases)
        for one in cleaned:
            self._put_in(one)
        self._segments_changed()
        return True

    def _put_in(self, cleaned: CleanedSegment) -> None:
        base_offset, seal = cleaned.base_offset, cleaned.seal
        segment = Segment(self.folder, base_offset, seal.contents, self._config, seal.created_ms, seal=seal)
        self.segments.insert(bisect_left(self.segments, base_offset, key=lambda one: one.base_offset), segment)
        if cleaned.aborted:
            self.aborted.put(base_offset, cleaned.aborted)

    # -- rescanning

    def set_active_apart(self, now_ms: int) -> None:
        """Go on in a new segment: the active one, which has records, is to be read again. Raises StorageFault."""
        self.write_pending()
        old, self._active = self._active, Segment.create(self.folder, self.log_end_offset, self._config, now_ms)
        self.segments.append(self._active)
        self.sync_state.segment_written(old)
        self._segments_changed()
        self._limits = self._rolling_limits()

    def take_rescanned(self, segment: Segment, seal: Seal) -> bool:
        """Go on with what was found in a closed segment that was read again; False if it is no longer here."""
        if segment not in self.segments[:-1] or self.condition.fault is not None:
            return False
        segment.take_over(seal)
        self._segments_changed()
        return True
