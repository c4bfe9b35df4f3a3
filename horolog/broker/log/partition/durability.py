"""Syncs what a partition has written: the work of one worker at a time, while the partition goes on.

The partition's `SyncState` has the work to do and its results. The order within a sync: log files (and the indexes of complete
segments), the folder, producer snapshots, seals, so that nothing on the disk describes data that is not there. A new folder and
its small files are synced with the first data that needs it. A topic's id that could not be written into the folder comes first:
records that survive a power cut survive as records of their topic.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Sequence

from horolog.broker.log.files import checkpoints
from horolog.broker.log.integrity import Seal, seals
from horolog.broker.log.partition import rewrite
from horolog.broker.log.partition.condition import Condition
from horolog.broker.log.partition.sync_state import ProducerSnapshot, SyncState
from horolog.broker.log.producers import producers_file, snapshot_file
from horolog.broker.log.segments import REBUILD_AT_ONCE_BYTES, Segment, syncing
from horolog.broker.log.storage import NO_DESCRIPTORS, SharedSyncs, Storage, StorageFault, parent_of

log = logging.getLogger(__name__)


class Durability:
    """Syncs and rewrites one partition. `state` is shared with the partition's thread; everything else belongs to the worker."""

    __slots__ = (
        "_condition",
        "_directory",
        "_files_fail",
        "_folders",
        "_guard",
        "_made_at",
        "_state",
        "_storage",
        "topic_id_due",
    )

    def __init__(
        self, storage: Storage, directory: str, state: SyncState, folders: SharedSyncs, condition: Condition
    ) -> None:
        self._storage = storage
        self._directory = directory
        self._state = state
        self._folders = folders
        self._condition = condition
        # The folder is there: syncs that begin from now on cover its name.
        self._made_at = folders.begun(parent_of(directory))
        self._guard = threading.Lock()
        self._files_fail = False
        self.topic_id_due: bytes | None = None
        """Set in the partition's thread: the topic's id, if it could not be written into the folder."""

    def __repr__(self) -> str:
        return f"<Durability of {self._directory}: {self._state!r}>"

    def is_due(self, now_ms: int, flush_ms: int) -> bool:
        """Whether `flush.ms` has passed, or a roll, a deletion or a scan has left something to sync."""
        if self._state.has_files_to_write:
            return True
        since_ms = self._state.waiting_since_ms
        return since_ms >= 0 and abs(now_ms - since_ms) >= flush_ms  # the clock may have been set back

    def is_due_at(self, end_offset: int, flush_messages: int) -> bool:
        """Whether `flush.messages` requires a sync of a log that ends here, whatever the producer's acks."""
        return end_offset - self._state.recovery_point >= flush_messages

    def sync(self, segments: Sequence[Segment], end_offset: int) -> None:
        """Sync everything written up to `end_offset`. Raises StorageFault, and from then on at every call.

        After a failed sync the kernel drops its dirty pages, and the next sync would lie: none is tried before `rewrite` has run.

        Snapshots and seals only save work at the next start: a failure is logged once and retried. If a snapshot will be the
        only record of producers, expiry waits for `snapshot_offset`.
        """
        state = self._state
        with self._guard:
            if state.failure is not None:
                raise state.failure
            save_seals = state.take_seals()
            known = [(one, one.seal or one.progress) for one in tuple(segments)] if save_seals else []
            complete = [seal for _, seal in known if seal is not None]
            snapshots = state.waiting_snapshots()
            state.sync_begins()
            try:
                self._sync_files()
                for segment in [one for one, _ in known if one.sync.indexes_are_due]:
                    segment.sync.take_up()
                    self._sync_segment(segment)
            except StorageFault as fault:
                state.give_back_seals(are_due=save_seals)
                if fault.code not in NO_DESCRIPTORS:
                    state.sync_failed(fault)
                raise
            state.reached(end_offset)
            try:
                self._save_snapshots(snapshots)
                if save_seals:
                    self._save_seals(segments, complete)
                self._files_fail = False
            except StorageFault as fault:
                state.give_back_seals(are_due=save_seals)
                self._warn(fault)

    def _sync_files(self) -> None:
        state = self._state
        self._write_topic_id()
        while (segment := state.take_segment()) is not None:
            self._sync_segment(segment)
        if state.new_files:
            self._sync_new_folder()
        if state.names_are_unsynced:
            self._sync_names()

    def _write_topic_id(self) -> None:
        if self.topic_id_due is not None:
            checkpoints.save_topic_id(self._storage, self._directory, self.topic_id_due)
            self.topic_id_due = None

    def _sync_segment(self, segment: Segment) -> None:
        size_bytes = segment.size_bytes
        try:
            syncing.datasync(segment)
        except StorageFault:
            self._state.give_back_segment(segment)
            raise
        segment.sync.reached(size_bytes)

    def _save_snapshots(self, snapshots: Sequence[ProducerSnapshot]) -> None:
        """Save the snapshots requested before the sync: a later one may describe data that is not on the disk."""
        if snapshots:  # first: until its snapshot exists, the log behind the previous one has the same
            producers_file.save(self._storage, self._directory, snapshots[-1].remembered)
        for offset, entries, _, replaces in snapshots:
            snapshot_file.save(self._storage, self._directory, offset, entries)
            if replaces is not None and replaces != offset:
                snapshot_file.remove(self._storage, self._directory, replaces)
            self._state.snapshot_saved(offset)

    def _save_seals(self, segments: Sequence[Segment], complete: Sequence[Seal]) -> None:
        """Save the seals, synced if the log takes appends or is long. A short log that has ended is read quickly if a power cut
        loses them, and its end is recorded with the clean stop.
        """
        is_short = sum(one.size_bytes for one in segments) <= REBUILD_AT_ONCE_BYTES
        has_ended = segments[-1].seal is not None
        save = seals.save_unsynced if is_short and has_ended else seals.save
        save(self._storage, self._directory, complete)

    def _warn(self, fault: StorageFault) -> None:
        if not self._files_fail and not self._condition.is_deleted:
            log.warning("%s: snapshots or seals could not be written; trying again: %s", self._directory, fault)
        self._files_fail = True

    def rewrite_job(self, segments: Sequence[Segment], active: Segment, end_offset: int) -> Callable[[], None]:
        """A job that rewrites everything not covered by a successful sync; raises StorageFault or Unreadable."""
        here = tuple(segments)
        unsynced = [(one, one.size_bytes) for one in here if one is active or one.sync.synced_bytes < one.size_bytes]
        return lambda: self._rewrite(here, unsynced, active, end_offset)

    def _rewrite(
        self, here: Iterable[Segment], unsynced: Iterable[tuple[Segment, int]], active: Segment, end_offset: int
    ) -> None:
        with self._guard:
            for segment in here:
                syncing.check_in_place(segment)
            rewrite.probe(self._storage, self._directory)
            self._write_topic_id()
            for segment, size_bytes in unsynced:
                rewrite.write_again(self._storage, segment, size_bytes, is_active=segment is active)
            if self._state.new_files:
                rewrite.write_small_files(self._storage, self._state.new_files)
                self._sync_new_folder()
            self._state.rewritten(end_offset)

    def _sync_new_folder(self) -> None:
        for path in self._state.new_files:
            file = self._storage.open(path)
            file.datasync()
            file.close()
        self._sync_names()
        self._folders.sync(parent_of(self._directory), self._made_at)
        self._state.new_files_synced()

    def _sync_names(self) -> None:
        changes = self._state.changes_of_names()
        self._storage.sync_dir(self._directory)
        self._state.names_synced(changes)
