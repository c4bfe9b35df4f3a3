"""What a partition is made from, and what all partitions of a broker share."""

from collections.abc import Callable
from dataclasses import dataclass, field

from horolog.broker.log.batch_times import TimesCache
from horolog.broker.log.converted_chunks import ConvertedChunks
from horolog.broker.log.counters import LogCounters
from horolog.broker.log.index_cache import IndexCache
from horolog.broker.log.leader_epochs import LeaderEpochs
from horolog.broker.log.producer_state import ProducerStates
from horolog.broker.log.segment import Segment
from horolog.broker.log.storage import Storage
from horolog.broker.log.suspects import Suspects
from horolog.broker.log.time_watch import TimeWatch
from horolog.broker.log.transaction_index import TransactionIndex


@dataclass(frozen=True, slots=True)
class Resources:
    """What all partitions of a broker share."""

    storage: Storage
    producer_expiration_ms: int = 86_400_000
    random: Callable[[], float] = lambda: 0.0
    indexes: IndexCache = field(default_factory=IndexCache)
    times: TimesCache = field(default_factory=TimesCache)
    counters: LogCounters = field(default_factory=LogCounters)
    suspects: Suspects = field(default_factory=Suspects)
    watch: TimeWatch = field(default_factory=TimeWatch)
    converted: ConvertedChunks = field(default_factory=ConvertedChunks)


@dataclass(slots=True)
class Opened:
    """What a partition is made from: found by `recovery` in a folder, or new."""

    topic: str
    index: int
    directory: str
    topic_id: bytes | None
    segments: list[Segment]
    producers: ProducerStates
    epochs: LeaderEpochs
    leader_epoch: int
    log_start_offset: int
    aborted: dict[int, TransactionIndex] = field(default_factory=dict)
    unsealed: bool = False
    """Something was read from the logs themselves: the seals have to be written anew."""
    names_unsynced: bool = False
    """A power cut may still change what is in the folder."""
    recovery_point: int | None = None
    """Up to where the log is known to be on the disk, if that is not its end."""
    snapshot_offset: int = -1
    """Of the newest snapshot of producers that is known to be on the disk."""
    new_files: list[str] = field(default_factory=list)
    """Small files of a folder that was just made, which nobody has synced."""
