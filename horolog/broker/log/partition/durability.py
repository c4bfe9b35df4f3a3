"""What of a partition is written but not on the disk yet, and how it gets there.

`sync` runs in a worker thread while the partition goes on; everything else belongs to the partition's thread. What is passed
between them is a queue and flags that are cleared *before* the work they ask for, so that what is written meanwhile asks
again. The order within a sync: log files (and the indexes of complete segments), the folder, producer snapshots, seals: nothing
on the disk describes data that is not there. A new folder and its small files are synced with the first data that needs it.
"""

import logging
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from horolog.broker.log.integrity import seals
from horolog.broker.log.partition import rewrite
from horolog.broker.log.producers import Remembered, SnapshotEntry, producers_file, snapshot_file
from horolog.broker.log.segments import Segment
from horolog.broker.log.storage import NO_DESCRIPTORS, OverlayStorage, Storage, StorageFault, parent_of

log = logging.getLogger(__name__)


class Snapshot(NamedTuple):
    """What was known of the producers at an offset."""

    offset: int
    entries: Sequence[SnapshotEntry]
    remembered: Sequence[Remembered] = ()
    replaces: int | None = None
    """The offset of another snapshot that may go once this one is there."""


class Durability:
    """One partition's unsynced files and unwritten seals and snapshots."""

    __slots__ = (
        "_directory",
        "_directory_changes",
        "_directory_synced",
        "_failed",
        "_files_fail",
        "_guard",
        "_new_files",
        "_seals_changed",
        "_snapshots",
        "_storage",
        "_unsynced",
        "in_memory",
        "recovery_point",
        "snapshot_offset",
        "waiting_since_ms",
    )

    def __init__(self, storage: Storage, directory: str, recovery_point: int) -> None:
        self._storage = storage
        self.in_memory = isinstance(storage, OverlayStorage)
        """What it is to write is not written at all: what is read is what lies on the disk."""
        self._directory = directory
        self._guard = threading.Lock()
        self._unsynced: deque[Segment] = deque()
        self._snapshots: deque[Snapshot] = deque()
        self._seals_changed = False
        self._directory_changes = 0
        self._directory_synced = 0
        """How many of the changes a sync of the folder has covered."""
        self._new_files: list[str] = []
        self._failed: StorageFault | None = None
        self._files_fail = False
        self.recovery_point = recovery_point
        """Everything before it is on the disk."""
        self.snapshot_offset = -1
        """Of the newest snapshot of producers that is known to be on the disk."""
        self.waiting_since_ms = -1
        """When the first append came that is not synced yet."""

    def segment_written(self, segment: Segment) -> None:
        segment.needs_sync = True
        self._unsynced.append(segment)

    def segments_changed(self) -> None:
        """Segments came or went: their names have to be on the disk, and the seals to be written anew."""
        self.names_changed()
        self._seals_changed = True

    def names_changed(self) -> None:
        """The names of files have to be on the disk with the next sync."""
        self._directory_changes += 1

    def folder_created(self, files: list[str]) -> None:
        """The folder is new. That it exists is on record elsewhere, so it has to be on the disk only with its first data."""
        self._new_files = files

    def save_snapshot(self, snapshot: Snapshot) -> None:
        """Write a snapshot of the producers once the log is on the disk up to its offset."""
        self._snapshots.append(snapshot)

    @property
    def has_snapshots(self) -> bool:
        """Whether any wait to be written."""
        return bool(self._snapshots)

    @property
    def names_are_unsynced(self) -> bool:
        """Whether a power cut may bring back the names of segments as they were."""
        return self._directory_synced < self._directory_changes

    @property
    def has_work(self) -> bool:
        return bool(self._unsynced or self._snapshots or self._seals_changed or self.names_are_unsynced)

    @property
    def has_files_to_write(self) -> bool:
        return bool(self._snapshots or self._seals_changed)

    def sync(self, segments: Sequence[Segment], end_offset: int) -> None:
        """Have everything on the disk that has been written up to `end_offset`. Raises StorageFault, from then on every time.

        After a failed sync the kernel drops its dirty pages, and the next sync would lie: none is tried before `rewrite` has run.

        Snapshots and seals only spare work at the next start: should they fail, that is logged once and tried again. Where a
        snapshot is all that will tell of producers, `snapshot_offset` is waited for.
        """
        with self._guard:
            if self._failed is not None:
                raise self._failed
            save_seals, self._seals_changed = self._seals_changed, False
            known = [(one, one.seal or one.progress) for one in tuple(segments)] if save_seals else []
            complete = [seal for _, seal in known if seal is not None]
            snapshots = tuple(self._snapshots)
            self.waiting_since_ms = -1
            try:
                self._sync_files()
                for segment in [one for one, _ in known if one.indexes_unsynced]:
                    self._sync_segment(segment)
            except StorageFault as fault:
                self._seals_changed |= save_seals
                if fault.code not in NO_DESCRIPTORS:
                    self._failed = fault
                raise
            self.recovery_point = max(self.recovery_point, end_offset)
            try:
                self._save_snapshots(snapshots)
                if save_seals:
                    seals.save(self._storage, self._directory, complete)
                self._files_fail = False
            except StorageFault as fault:
                self._seals_changed |= save_seals
                self._warn(fault)

    def _sync_files(self) -> None:
        while self._unsynced:
            self._sync_segment(self._unsynced.popleft())
        if self._new_files:
            self._sync_new_folder()
        if self.names_are_unsynced:
            changes = self._directory_changes
            self._storage.sync_dir(self._directory)
            self._directory_synced = changes

    def _sync_segment(self, segment: Segment) -> None:
        segment.needs_sync = False
        size_bytes = segment.size_bytes
        try:
            segment.datasync()
        except StorageFault:
            self.segment_written(segment)
            raise
        segment.synced_bytes = max(segment.synced_bytes, size_bytes)

    def _save_snapshots(self, snapshots: Sequence[Snapshot]) -> None:
        """Those that were asked for before the sync: what a later one tells of may not be on the disk."""
        if snapshots:  # first: what it tells of a snapshot that is not there yet is in the log behind the one before
            producers_file.save(self._storage, self._directory, snapshots[-1].remembered)
        for offset, entries, _, replaces in snapshots:
            snapshot_file.save(self._storage, self._directory, offset, entries)
            if replaces is not None and replaces != offset:
                snapshot_file.remove(self._storage, self._directory, replaces)
            self.snapshot_offset = max(self.snapshot_offset, offset)
            self._snapshots.popleft()

    def _warn(self, fault: StorageFault) -> None:
        if not self._files_fail:
            log.warning("%s: snapshots or seals cannot be written, which is tried again: %s", self._directory, fault)
        self._files_fail = True

    def repair_job(self, segments: Sequence[Segment], active: Segment, end_offset: int) -> Callable[[], None]:
        """What writes everything again that no successful sync has covered; raises StorageFault or Unreadable."""
        here = tuple(segments)
        unsynced = [(one, one.size_bytes) for one in here if one is active or one.synced_bytes < one.size_bytes]
        return lambda: self._repair(here, unsynced, active, end_offset)

    def _repair(
        self, here: Iterable[Segment], unsynced: Iterable[tuple[Segment, int]], active: Segment, end_offset: int
    ) -> None:
        with self._guard:
            for segment in here:
                segment.check_in_place()
            rewrite.probe(self._storage, self._directory)
            for segment, size_bytes in unsynced:
                rewrite.write_again(self._storage, segment, size_bytes, is_active=segment is active)
            if self._new_files:
                rewrite.write_small_files(self._storage, self._new_files)
                self._sync_new_folder()
            self.recovery_point = max(self.recovery_point, end_offset)
            self._failed = None

    def _sync_new_folder(self) -> None:
        for path in self._new_files:
            file = self._storage.open(path)
            file.datasync()
            file.close()
        self._storage.sync_dir(self._directory)
        self._storage.sync_dir(parent_of(self._directory))
        self._new_files = []
