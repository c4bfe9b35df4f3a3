"""What the steps of opening a partition tell each other."""

from dataclasses import dataclass, field
from typing import NamedTuple

from horolog.broker.log.integrity import Seal
from horolog.broker.log.segments import Segment, reader
from horolog.broker.log.storage import StorageFault


class Place(NamedTuple):
    """A partition, and the folder that it lies in."""

    topic: str
    number: int
    directory: str


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the data folder knows about a partition before it is opened."""

    was_clean: bool
    log_start_offset: int
    now_ms: int
    recovery_point: int = 0
    """After a clean stop: where the log ended. Otherwise it says nothing about the end."""
    may_be_unsynced: bool = False
    """The last process was killed: bytes behind the last seal may exist only in the page cache."""
    records_only: bool = False
    """Who opens it looks for records alone: nothing is asked of producers and transactions, so all of them look committed."""
    believes_indexes: bool = False
    """Who opens it wants little of it: an unsealed segment is taken for what its index files say, if they fit. With `records_only`."""
    presumes_copies: bool = False
    """Of a sealed log whose file is a copy the indexes are held against it, and not its ends against the seal."""


@dataclass(slots=True)
class Findings:
    """What opening the segments has told, by their base offsets."""

    scanned: set[int] = field(default_factory=set)
    vouching: dict[int, Seal] = field(default_factory=dict)
    abort_markers: list[int] = field(default_factory=list)


def position_of(segment: Segment, offset: int) -> int:
    """Where to begin with an offset; the segment's begin if its indexes do not tell."""
    if offset <= segment.base_offset:
        return 0
    try:
        return reader.find(segment, offset) or 0
    except StorageFault:
        return 0
