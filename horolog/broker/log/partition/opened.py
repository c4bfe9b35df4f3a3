"""The result of opening a partition, and the resources that all partitions of a broker share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from horolog.broker.config.topic_settings import TopicConfig
from horolog.broker.log.counters import LogCounters
from horolog.broker.log.files import LeaderEpochs
from horolog.broker.log.indexes import IndexCache, TransactionIndex
from horolog.broker.log.integrity import RescanQueue
from horolog.broker.log.partition.rare_changes import RareChanges
from horolog.broker.log.partition.sync_state import SyncState
from horolog.broker.log.partition.time_watch import TimeWatch
from horolog.broker.log.producers import ProducerStates
from horolog.broker.log.segments import ConvertedChunks, Segment, SegmentFolder, TimesCache
from horolog.broker.log.storage import SharedSyncs, Storage

if TYPE_CHECKING:
    from horolog.broker.log.partition.partition import Partition


@dataclass(frozen=True, slots=True)
class Resources:
    """The resources that all partitions of a broker share."""

    storage: Storage
    producer_expiration_ms: int = 86_400_000
    random: Callable[[], float] = lambda: 0.0
    indexes: IndexCache = field(default_factory=IndexCache)
    times: TimesCache = field(default_factory=TimesCache)
    counters: LogCounters = field(default_factory=LogCounters)
    rescan_queue: RescanQueue = field(default_factory=RescanQueue)
    watch: TimeWatch = field(default_factory=TimeWatch)
    converted: ConvertedChunks = field(default_factory=ConvertedChunks)
    changes: RareChanges = field(default_factory=RareChanges)
    kind: type[Partition] | None = None
    """The class of the broker's partitions, if it is a subclass."""
    folders: SharedSyncs = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "folders", SharedSyncs(self.storage))


@dataclass(frozen=True, slots=True)
class OpenedPartition:
    """A partition as `recovery` has found or created it: the initial state of a `Partition`."""

    topic: str
    index: int
    topic_id: bytes | None
    config: TopicConfig
    resources: Resources
    folder: SegmentFolder
    segments: list[Segment]
    producers: ProducerStates
    epochs: LeaderEpochs
    leader_epoch: int
    log_start_offset: int
    aborted: dict[int, TransactionIndex] = field(default_factory=dict)
    unsealed: bool = False
    """Whether logs had to be read: the seals have to be written again."""
    names_unsynced: bool = False
    """Whether a power cut may still change the names in the folder."""
    recovery_point: int | None = None
    """The offset up to which the log is known to be on the disk, if that is not its end."""
    snapshot_offset: int = -1
    """The offset of the newest snapshot of producers known to be on the disk."""
    new_files: list[str] = field(default_factory=list)
    """Small files of a new folder, not synced yet."""
    stopped: str | None = None
    """Why no appends can be taken."""

    def sync_state(self) -> SyncState:
        """How much of it is on the disk, and the work of the first sync."""
        synced = self.segments[-1].next_offset if self.recovery_point is None else self.recovery_point
        state = SyncState(synced, self.snapshot_offset, self.new_files)
        if self.names_unsynced:
            state.names_changed()
        if self.unsealed:
            state.segments_changed()
            for segment in self.segments:
                state.segment_written(segment)
        return state

    def close_files(self) -> None:
        """Close every descriptor without writing anything."""
        for segment in self.segments:
            segment.close()
