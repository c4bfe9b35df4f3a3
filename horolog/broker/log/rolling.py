"""Decides whether the active segment must make way for a new one before an append: by size, time, index or offset range."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from horolog.broker.topic_settings import TopicConfig

LARGEST_RELATIVE_OFFSET = 2**31 - 1


class Reason(StrEnum):
    """Why a segment was rolled; the value is what logs and metrics say."""

    SIZE = "size"
    TIME = "time"
    INDEX_FULL = "index full"
    OFFSET_RANGE = "offset range"


@dataclass(frozen=True, slots=True)
class ActiveSegment:
    """What the decision needs to know of the segment that would take the append."""

    base_offset: int
    size_bytes: int
    created_ms: int
    first_timestamp: int = -1  # of its first batch or message; -1 when that carries none
    index_full: bool = False  # one of its indexes has no room for another entry
    jitter_ms: int = 0  # drawn once for the segment, see draw_jitter_ms


@dataclass(frozen=True, slots=True)
class Incoming:
    """What the decision needs to know of the record set about to be appended."""

    size_bytes: int
    last_offset: int
    max_timestamp: int = -1  # the largest that carries meaning: -1 for sets without times and for transaction markers


def should_roll(segment: ActiveSegment, incoming: Incoming, config: TopicConfig, now_ms: int) -> Reason | None:
    """The reason to roll before this append, or None.

    An empty segment is never rolled: a new one would have the same name. A segment whose first record has a timestamp
    is rolled by what the records say, strictly later than segment.ms; the wall clock plays no part, so that loading an
    old dump cuts segments as the live traffic did. Only a segment without such a timestamp goes by the wall clock and
    its age.
    """
    if segment.size_bytes == 0:
        return None
    if segment.size_bytes > config.segment_bytes - incoming.size_bytes:
        return Reason.SIZE
    if _waited_ms(segment, incoming, now_ms) > segment_time_ms(config) - segment.jitter_ms:
        return Reason.TIME
    if segment.index_full:
        return Reason.INDEX_FULL
    if incoming.last_offset - segment.base_offset > LARGEST_RELATIVE_OFFSET:
        return Reason.OFFSET_RANGE
    return None


def _waited_ms(segment: ActiveSegment, incoming: Incoming, now_ms: int) -> int:
    if segment.first_timestamp < 0:
        return now_ms - segment.created_ms
    return incoming.max_timestamp - segment.first_timestamp


def segment_time_ms(config: TopicConfig) -> int:
    """How long a segment may take records: on a compacted topic not longer than the cleaner may wait for it."""
    return min(config.segment_ms, config.max_compaction_lag_ms) if config.compact else config.segment_ms


def draw_jitter_ms(config: TopicConfig, random: Callable[[], float]) -> int:
    """How much earlier one segment rolls by time, so that partitions created together do not roll together.

    `random` returns a number from 0 up to but not including 1.
    """
    return int(random() * min(config.segment_jitter_ms, config.segment_ms))
