"""The folder of a partition's segments, and the resources that they share."""

from dataclasses import dataclass, field

from horolog.broker.log.counters import LogCounters
from horolog.broker.log.indexes import IndexCache
from horolog.broker.log.integrity import RescanQueue
from horolog.broker.log.segments.converted_chunks import ConvertedChunks
from horolog.broker.log.storage import Storage


@dataclass(frozen=True, slots=True)
class SegmentFolder:
    """The folder of one partition, and the shared resources of all segments of the broker."""

    storage: Storage
    directory: str
    indexes: IndexCache
    counters: LogCounters
    rescan_queue: RescanQueue = field(default_factory=RescanQueue)
    converted: ConvertedChunks = field(default_factory=ConvertedChunks)
    """Pieces of logs that were converted for readers."""
