"""The state that a partition's thread shares with its workers: which files have to be synced, and how much is on the disk.

More than one thread writes this object, the `Condition` of a partition and the `SegmentSync` of each of its segments; no other
object of a partition is shared like this. The methods are grouped by the thread that calls them. Nothing waits here:

- work is requested by a queue or a flag, and a flag is cleared *before* the work: a write meanwhile requests it again;
- a count has one writer: the partition's thread counts the changes of names, the worker counts those that are synced.

One worker at a time works for a partition, see `Durability`.
"""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from horolog.broker.log.producers import ProducerStates, Remembered, SnapshotEntry
from horolog.broker.log.segments import Segment
from horolog.broker.log.storage import StorageFault


class ProducerSnapshot(NamedTuple):
    """The known producers at an offset."""

    offset: int
    entries: Sequence[SnapshotEntry]
    remembered: Sequence[Remembered] = ()
    replaces: int | None = None
    """The offset of another snapshot that may be removed once this one is saved."""


class SyncState:
    """The attributes are for reading; the methods change them."""

    __slots__ = (
        "_name_changes",
        "_names_synced",
        "_seals_are_due",
        "_segments",
        "_snapshots",
        "failure",
        "new_files",
        "recovery_point",
        "snapshot_offset",
        "waiting_since_ms",
    )

    def __init__(self, recovery_point: int, snapshot_offset: int = -1, new_files: Sequence[str] = ()) -> None:
        self._segments: deque[Segment] = deque()
        self._snapshots: deque[ProducerSnapshot] = deque()
        self._seals_are_due = False
        self._name_changes = 0
        self._names_synced = 0
        """How many of the changes a sync of the folder has covered."""
        self.new_files = new_files
        """Small files of a new folder, not synced yet. The folder's existence is recorded elsewhere, so it has to be on the
        disk only with its first data."""
        self.failure: StorageFault | None = None
        """The failure of the last sync, until everything unsynced has been written again."""
        self.recovery_point = recovery_point
        """Everything before it is on the disk."""
        self.snapshot_offset = snapshot_offset
        """The offset of the newest snapshot of producers known to be on the disk."""
        self.waiting_since_ms = -1
        """The time of the first append that is not synced yet."""

    def __repr__(self) -> str:
        return f"<SyncState: synced to offset {self.recovery_point}{', more is due' if self.has_work else ''}>"

    @property
    def has_snapshots(self) -> bool:
        """Whether any wait to be written."""
        return bool(self._snapshots)

    @property
    def names_are_unsynced(self) -> bool:
        """Whether a power cut may bring back the names of segments as they were."""
        return self._names_synced < self._name_changes

    @property
    def has_files_to_write(self) -> bool:
        return bool(self._snapshots or self._seals_are_due)

    @property
    def has_work(self) -> bool:
        return bool(self._segments or self.has_files_to_write or self.names_are_unsynced)

    # -- in the partition's thread

    def append_waits(self, now_ms: int) -> None:
        """Call this for an append while `waiting_since_ms` is unset."""
        self.waiting_since_ms = now_ms

    def segment_written(self, segment: Segment) -> None:
        if not segment.sync.is_due:  # else it is queued already, and its sync covers this write too
            segment.sync.ask()
            self._segments.append(segment)

    def segments_changed(self, *, came_or_went: bool = True) -> None:
        """The seals have to be written again; if segments were added or removed, their names have to be synced, too."""
        self._seals_are_due = True
        if came_or_went:
            self.names_changed()

    def names_changed(self) -> None:
        """The names of files have to be synced with the next sync."""
        self._name_changes += 1

    def save_snapshot(self, snapshot: ProducerSnapshot) -> None:
        """Write a snapshot of the producers once the log is on the disk up to its offset."""
        self._snapshots.append(snapshot)

    def save_producers(self, producers: ProducerStates, end_offset: int, replaces: int | None = None) -> None:
        """Write a snapshot of these producers once the log is on the disk up to its present end; none if there are none."""
        if len(producers):
            self.save_snapshot(ProducerSnapshot(end_offset, producers.snapshot(), producers.remembered(), replaces))

    # -- in the single worker that syncs or rewrites

    def sync_begins(self) -> None:
        self.waiting_since_ms = -1

    def take_segment(self) -> Segment | None:
        """The next segment to sync."""
        if not self._segments:
            return None
        segment = self._segments.popleft()
        segment.sync.take_up()
        return segment

    def give_back_segment(self, segment: Segment) -> None:
        """Its sync has failed."""
        self.segment_written(segment)

    def take_seals(self) -> bool:
        """Whether the seals have to be written again."""
        are_due, self._seals_are_due = self._seals_are_due, False
        return are_due

    def give_back_seals(self, *, are_due: bool) -> None:
        """The seals could not be written: restore what `take_seals` returned."""
        self._seals_are_due |= are_due

    def changes_of_names(self) -> int:
        """The argument for `names_synced` once the folder has been synced."""
        return self._name_changes

    def names_synced(self, changes: int) -> None:
        self._names_synced = changes

    def waiting_snapshots(self) -> tuple[ProducerSnapshot, ...]:
        return tuple(self._snapshots)

    def snapshot_saved(self, offset: int) -> None:
        """The oldest waiting snapshot is on the disk."""
        self.snapshot_offset = max(self.snapshot_offset, offset)
        self._snapshots.popleft()

    def new_files_synced(self) -> None:
        self.new_files = ()

    def reached(self, end_offset: int) -> None:
        """A sync or a rewrite has covered the log up to here."""
        self.recovery_point = max(self.recovery_point, end_offset)

    def sync_failed(self, fault: StorageFault) -> None:
        self.failure = fault

    def rewritten(self, end_offset: int) -> None:
        """Everything up to here has been written again and synced."""
        self.reached(end_offset)
        self.failure = None
