"""All that an opening has found of a partition, and what all partitions of a broker share."""

from collections.abc import Callable
from dataclasses import dataclass, field

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
from horolog.broker.topic_settings import TopicConfig


@dataclass(frozen=True, slots=True)
class Resources:
    """What all partitions of a broker share."""

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
    folders: SharedSyncs = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "folders", SharedSyncs(self.storage))


@dataclass(frozen=True, slots=True)
class Opened:
    """A partition as `recovery` has found it in its folder, or made it: all that a `Partition` begins with."""

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
    """Something was read from the logs themselves: the seals have to be written anew."""
    names_unsynced: bool = False
    """A power cut may still change the names in the folder."""
    recovery_point: int | None = None
    """Up to where the log is known to be on the disk, if that is not its end."""
    snapshot_offset: int = -1
    """Of the newest snapshot of producers that is known to be on the disk."""
    new_files: list[str] = field(default_factory=list)
    """Small files of a folder that was just made, which nobody has synced."""
    stopped: str | None = None
    """Why no appends can be taken."""

    def sync_state(self) -> SyncState:
        """What of it is on the disk, and what the first sync has to do."""
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
        """Give every descriptor back without writing anything."""
        for segment in self.segments:
            segment.close()
