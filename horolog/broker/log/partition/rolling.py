"""Decides whether to roll the active segment before an append: by size, time, index or offset range."""

from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

from horolog.broker.config.topic_settings import TopicConfig
from horolog.broker.log.indexes import LARGEST_RELATIVE_OFFSET


class Reason(StrEnum):
    """Why a segment was rolled; logs and metrics show the value."""

    SIZE = "size"
    TIME = "time"
    INDEX_FULL = "index full"
    OFFSET_RANGE = "offset range"


class Growing(Protocol):
    """The facts that the decision needs about the segment that would take the append."""

    @property
    def end_bytes(self) -> int: ...
    @property
    def created_ms(self) -> int: ...
    @property
    def first_timestamp(self) -> int:
        """The timestamp of its first batch or message; -1 if that carries none."""

    @property
    def index_is_full(self) -> bool:
        """Whether one of its indexes has no room for another entry."""


class RollingLimits:
    """The limits of the active segment. Made when a segment begins, and when the configuration changes."""

    __slots__ = ("_last_offset", "_roll_after_ms", "_segment_bytes")

    def __init__(self, base_offset: int, config: TopicConfig, jitter_ms: int = 0) -> None:
        """`jitter_ms` is drawn once for the segment, see `draw_jitter_ms`."""
        self._segment_bytes = config.segment_bytes
        self._roll_after_ms = segment_time_ms(config) - jitter_ms
        self._last_offset = base_offset + LARGEST_RELATIVE_OFFSET

    def __repr__(self) -> str:
        return f"<RollingLimits {self._segment_bytes} bytes, {self._roll_after_ms} ms, to offset {self._last_offset}>"

    def exceeded_by(
        self, size_bytes: int, last_offset: int, max_timestamp: int, segment: Growing, now_ms: int
    ) -> Reason | None:
        """The reason to roll before this record set is appended, or None. Called for every append.

        `max_timestamp` is the largest timestamp with a meaning: -1 for sets without times and for transaction markers.
        An empty segment is never rolled: a new one would have the same name. A segment whose first record has a timestamp
        is rolled by the records' times, strictly later than segment.ms, and not by the wall clock, so that loading an old
        dump cuts segments as the live traffic did. Only a segment without such a timestamp is rolled by its age on the
        wall clock.
        """
        end_bytes = segment.end_bytes
        if not end_bytes:
            return None
        if end_bytes > self._segment_bytes - size_bytes:
            return Reason.SIZE
        first = segment.first_timestamp
        waited_ms = max_timestamp - first if first >= 0 else now_ms - segment.created_ms
        if waited_ms > self._roll_after_ms:
            return Reason.TIME
        if segment.index_is_full:
            return Reason.INDEX_FULL
        if last_offset > self._last_offset:
            return Reason.OFFSET_RANGE
        return None


def segment_time_ms(config: TopicConfig) -> int:
    """How long a segment may take records: on a compacted topic no longer than the cleaner may wait for it."""
    return min(config.segment_ms, config.max_compaction_lag_ms) if config.compact else config.segment_ms


def limits_of(base_offset: int, config: TopicConfig, random: Callable[[], float]) -> RollingLimits:
    """The limits of a segment that begins now, or whose configuration has changed."""
    return RollingLimits(base_offset, config, draw_jitter_ms(config, random))


def draw_jitter_ms(config: TopicConfig, random: Callable[[], float]) -> int:
    """How much earlier one segment rolls by time, so that partitions created together do not roll together.

    `random` returns a number from 0 up to but not including 1.
    """
    return int(random() * min(config.segment_jitter_ms, config.segment_ms))
