"""Decides which segments at the front of a partition have outlived their time, its size or its start offset.

The rule on times: a segment is as old as its largest timestamp, or as its file if it holds no timestamp. With
`future.timestamp.max.ms` set, a largest timestamp further ahead of the clock than that counts as a mistake: such a segment
is as old as its file, too, so a record from the year 2100 keeps its segment only for `retention.ms` after the last write.
Without the setting the timestamp is believed, as in Kafka, and the segment keeps everything behind it; the decision names
that segment, so that the caller can log it once and count it.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from horolog.base.readable import format_duration, format_time
from horolog.broker.config.topic_settings import TopicConfig
from horolog.broker.log.segments import Segment
from horolog.protocol.records.timestamps import FUTURE_TOLERANCE_MS

log = logging.getLogger(__name__)


class Cause(StrEnum):
    """Why a segment was deleted; logs and metrics show the value."""

    START_OFFSET = "log start offset"
    SIZE = "size"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class SegmentAge:
    """The facts about one segment that the decision needs."""

    base_offset: int
    next_offset: int  # the base offset of the following segment; of the active one, the log end offset
    size_bytes: int
    largest_timestamp: int = -1


def ages_of(segments: Sequence[Segment], end_offset: int) -> list[SegmentAge]:
    following = [one.base_offset for one in segments[1:]] + [end_offset]
    return [
        SegmentAge(one.base_offset, next_offset, one.size_bytes, one.max_timestamp)
        for one, next_offset in zip(segments, following, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Expired:
    base_offset: int
    cause: Cause


@dataclass(frozen=True, slots=True)
class RetentionDecision:
    """The segments to delete, oldest first, and the one that keeps more from being deleted."""

    expired: tuple[Expired, ...]
    blocked_by_future: SegmentAge | None  # the first survivor by time, if only a timestamp in the future keeps it


class FutureWarnings:
    """Warns once for each segment that a timestamp in the future keeps from expiring, with everything behind it."""

    __slots__ = ("_name", "_told")

    def __init__(self, name: str) -> None:
        self._name = name
        self._told: set[int] = set()

    def __repr__(self) -> str:
        return f"<FutureWarnings of {self._name}: {sorted(self._told)}>"

    def tell(self, segment: SegmentAge | None, now_ms: int) -> bool:
        """Whether there was a new warning."""
        if segment is None or segment.base_offset in self._told:
            return False
        self._told.add(segment.base_offset)
        log.warning(
            "%s: a record of %s, %s in the future, keeps segment %s and everything after it from expiring (set horolog.future.timestamp.max.ms to limit this)",
            self._name,
            format_time(segment.largest_timestamp),
            format_duration(segment.largest_timestamp - now_ms),
            segment.base_offset,
        )
        return True

    def forget(self, base_offset: int) -> None:
        self._told.discard(base_offset)


def decide(
    segments: Sequence[SegmentAge],
    config: TopicConfig,
    now_ms: int,
    *,
    log_start_offset: int,
    deletable_up_to: int,
    modified_ms: Callable[[int], int],
) -> RetentionDecision:
    """Which leading segments to delete. The last of `segments` is the active one, deleted too if it has expired and is not empty.

    Nothing at or behind `deletable_up_to` (the high watermark) is deleted. `modified_ms(base_offset)` returns the last write of
    the segment's file, and is called only if timestamps do not decide.
    """
    expired: list[Expired] = []
    rest = list(segments)
    _take_while(rest, expired, Cause.START_OFFSET, deletable_up_to, lambda one: one.next_offset <= log_start_offset)
    if not config.delete:
        return RetentionDecision(tuple(expired), None)
    if config.retention_bytes >= 0:
        _take_while(rest, expired, Cause.SIZE, deletable_up_to, _over_size(rest, config.retention_bytes))
    if config.retention_ms < 0:
        return RetentionDecision(tuple(expired), None)

    def too_old(one: SegmentAge) -> bool:
        return now_ms - time_of(one, config.future_timestamp_max_ms, now_ms, modified_ms) > config.retention_ms

    _take_while(rest, expired, Cause.TIME, deletable_up_to, too_old)
    return RetentionDecision(tuple(expired), _blocked(rest, config.future_timestamp_max_ms, now_ms))


def decide_of(
    segments: Sequence[Segment],
    config: TopicConfig,
    now_ms: int,
    start_offset: int,
    deletable_up_to: int,
    end_offset: int,
) -> RetentionDecision:
    """`decide` for the segments of one log that ends at an offset."""
    by_base = {one.base_offset: one for one in segments}
    return decide(
        ages_of(segments, end_offset),
        config,
        now_ms,
        log_start_offset=start_offset,
        deletable_up_to=deletable_up_to,
        modified_ms=lambda base_offset: by_base[base_offset].files.modified_ms(),
    )


def time_of(segment: SegmentAge, future_max_ms: int, now_ms: int, modified_ms: Callable[[int], int]) -> int:
    """The time of a segment: its largest timestamp, or its file's time if that is missing or not believed."""
    largest = segment.largest_timestamp
    if largest < 0 or _beyond_belief(largest, future_max_ms, now_ms):
        return modified_ms(segment.base_offset)
    return largest


def _beyond_belief(timestamp: int, future_max_ms: int, now_ms: int) -> bool:
    return 0 <= future_max_ms < timestamp - now_ms


def _take_while(
    rest: list[SegmentAge],
    expired: list[Expired],
    cause: Cause,
    deletable_up_to: int,
    doomed: Callable[[SegmentAge], bool],
) -> None:
    """Move segments from the front of `rest` to `expired` until the first survivor; an empty active segment always survives."""
    taken = 0
    for segment in rest:
        is_empty_active = segment.size_bytes == 0 and taken == len(rest) - 1
        if is_empty_active or segment.next_offset > deletable_up_to or not doomed(segment):
            break
        expired.append(Expired(segment.base_offset, cause))
        taken += 1
    del rest[:taken]


def _over_size(segments: Sequence[SegmentAge], retention_bytes: int) -> Callable[[SegmentAge], bool]:
    """Delete a segment while the rest without it still holds at least `retention_bytes`."""
    surplus = sum(segment.size_bytes for segment in segments) - retention_bytes

    def doomed(segment: SegmentAge) -> bool:
        nonlocal surplus
        if surplus < segment.size_bytes:
            return False
        surplus -= segment.size_bytes
        return True

    return doomed


def _blocked(rest: Sequence[SegmentAge], future_max_ms: int, now_ms: int) -> SegmentAge | None:
    if not rest:
        return None
    first = rest[0]
    ahead_ms = first.largest_timestamp - now_ms
    if ahead_ms <= FUTURE_TOLERANCE_MS or _beyond_belief(first.largest_timestamp, future_max_ms, now_ms):
        return None
    return first
