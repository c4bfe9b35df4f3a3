"""The data that the steps of opening a partition share."""

from dataclasses import dataclass, field
from typing import NamedTuple

from horolog.broker.log.integrity import Seal
from horolog.broker.log.segments import Segment, reader
from horolog.broker.log.storage import StorageFault


class PartitionFolder(NamedTuple):
    """A partition and its folder."""

    topic: str
    number: int
    directory: str


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The data folder's facts about a partition before it is opened."""

    was_clean: bool
    log_start_offset: int
    now_ms: int
    recovery_point: int = 0
    """After a clean stop: the log's end. Otherwise it says nothing about the end."""
    may_be_unsynced: bool = False
    """The last process was killed: bytes behind the last seal may exist only in the page cache."""
    records_only: bool = False
    """The caller wants records alone: the state of producers and transactions is not read, so all of them look committed."""
    believes_indexes: bool = False
    """The caller wants little of it: an unsealed segment is presumed from its index files, if they fit. With `records_only`."""
    presumes_copies: bool = False
    """A sealed log whose file is a copy is checked against its indexes, instead of its ends against the seal."""
    is_made: bool = False
    """The folder was made of batches just now, and a crash leaves nothing to rely on: what was made is not synced. Aborted
    transactions of segments that have no index for them are found in the batches."""
    has_logs_only: bool = False
    """The folder was written without index files: one that is missing was not lost, and is made without a warning."""


@dataclass(slots=True)
class Findings:
    """The results of opening the segments, by their base offsets."""

    scanned: set[int] = field(default_factory=set)
    vouching: dict[int, Seal] = field(default_factory=dict)
    abort_markers: list[int] = field(default_factory=list)


def position_of(segment: Segment, offset: int) -> int:
    """The position to begin at for an offset; the segment's start if its indexes do not tell."""
    if offset <= segment.base_offset:
        return 0
    try:
        return reader.find(segment, offset) or 0
    except StorageFault:
        return 0
