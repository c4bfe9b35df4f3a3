"""Decides whether a compacted partition is worth cleaning, which of its segments take part, and how they are grouped.

A partition is a clean part, in which each key occurs once, and behind it a dirty part. The offset between them is kept in
`cleaner-offset-checkpoint`. A pass learns the keys of the dirty part and rewrites both parts. It is due when the dirty
part is more than `min.cleanable.dirty.ratio` of both, or when its oldest record has waited for `max.compaction.lag.ms`.
Never taken: the active segment, segments at or behind the last stable offset, and the first one that is younger than
`min.compaction.lag.ms`, with everything behind it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from horolog.broker.config.topic_settings import TopicConfig
from horolog.broker.log.indexes import LARGEST_RELATIVE_OFFSET

LARGEST_SEGMENT_BYTES = 2**31 - 1
NO_LIMIT_MS = 2**63 - 1


@dataclass(frozen=True, slots=True)
class SegmentFacts:
    """The facts about one segment that cleaning needs."""

    base_offset: int
    next_offset: int  # the base offset of the following segment; of the active one, the log end offset
    size_bytes: int
    index_bytes: int = 0
    time_index_bytes: int = 0
    first_timestamp: int = -1
    largest_timestamp: int = -1
    modified_ms: int = 0  # of its log file


@dataclass(frozen=True, slots=True)
class CleanPlan:
    """One pass over a partition: the segments to rewrite, and where the dirty part begins and may end."""

    segments: tuple[SegmentFacts, ...]
    first_dirty_offset: int
    end_offset: int
    dirty_ratio: float
    overdue: bool  # taken because of max.compaction.lag.ms
    checkpoint_was_wrong: bool  # it pointed outside of the log, so everything counts as dirty


def plan(
    segments: Sequence[SegmentFacts],
    config: TopicConfig,
    *,
    checkpoint: int | None,
    log_start_offset: int,
    last_stable_offset: int,
    now_ms: int,
) -> CleanPlan | None:
    """The segments to clean, or None if it is not worth it. `segments` are all of the partition, the active one last."""
    active = segments[-1]
    first_dirty = log_start_offset if checkpoint is None else checkpoint
    wrong = not log_start_offset <= first_dirty <= active.base_offset
    if wrong:
        first_dirty = log_start_offset
    end = _end_of_dirty(segments, config, first_dirty, last_stable_offset, now_ms)
    dirty = [one for one in segments if one.next_offset > first_dirty and one.base_offset < end]
    dirty_bytes = sum(one.size_bytes for one in dirty)
    if dirty_bytes == 0:
        return None
    clean_bytes = sum(one.size_bytes for one in segments if one.base_offset < first_dirty)
    ratio = dirty_bytes / (clean_bytes + dirty_bytes)
    overdue = _overdue(dirty, config, now_ms)
    if ratio <= config.min_cleanable_dirty_ratio and not overdue:
        return None
    taking_part = tuple(one for one in segments if one.base_offset < end)
    return CleanPlan(taking_part, first_dirty, end, ratio, overdue, wrong)


def _end_of_dirty(
    segments: Sequence[SegmentFacts], config: TopicConfig, first_dirty: int, last_stable_offset: int, now_ms: int
) -> int:
    """The base offset of the first segment that may not be cleaned."""
    for segment in segments[:-1]:
        if segment.next_offset > last_stable_offset:
            return segment.base_offset
        too_young = now_ms - segment_time(segment) < config.min_compaction_lag_ms
        if config.min_compaction_lag_ms > 0 and segment.next_offset > first_dirty and too_young:
            return segment.base_offset
    return segments[-1].base_offset


def segment_time(segment: SegmentFacts) -> int:
    """When the segment was filled: its largest timestamp, or that of its file when no record has one."""
    return segment.largest_timestamp if segment.largest_timestamp >= 0 else segment.modified_ms


def _overdue(dirty: Sequence[SegmentFacts], config: TopicConfig, now_ms: int) -> bool:
    if config.max_compaction_lag_ms >= NO_LIMIT_MS:
        return False
    return any(
        one.first_timestamp >= 0 and now_ms - one.first_timestamp > config.max_compaction_lag_ms for one in dirty
    )


def tombstone_horizon_ms(plan: CleanPlan, config: TopicConfig, now_ms: int) -> int:
    """Tombstones of formats v0 and v1 are removed from segments whose time is not later than this; -1: from none.

    Unlike v2 batches they have no mark of when they became deletable, so the time of the last clean segment is used: it
    was cleaned before, so everything older by `delete.retention.ms` has been readable for that long. Segments with
    timestamps are judged by these, never by their files' times, which a copy changes; a timestamp in the future counts
    as now.
    """
    clean = [one for one in plan.segments if one.next_offset <= plan.first_dirty_offset]
    if not clean:
        return -1
    return min(segment_time(clean[-1]), now_ms) - config.delete_retention_ms


def group(
    segments: Sequence[SegmentFacts], max_size_bytes: int, max_index_bytes: int, end_offset: int
) -> list[list[SegmentFacts]]:
    """Groups of neighbours that fit into one segment: by size before cleaning, by both indexes, and by offset range."""
    max_size_bytes = min(max_size_bytes, LARGEST_SEGMENT_BYTES)
    groups: list[list[SegmentFacts]] = []
    size_bytes = index_bytes = time_index_bytes = 0
    for segment in segments:
        size_bytes += segment.size_bytes
        index_bytes += segment.index_bytes
        time_index_bytes += segment.time_index_bytes
        fits = size_bytes <= max_size_bytes and max(index_bytes, time_index_bytes) <= max_index_bytes
        if groups and fits and _in_range(groups[-1][0], segment, end_offset):
            groups[-1].append(segment)
        else:
            groups.append([segment])
            size_bytes, index_bytes, time_index_bytes = (
                segment.size_bytes,
                segment.index_bytes,
                segment.time_index_bytes,
            )
    return groups


def _in_range(first: SegmentFacts, segment: SegmentFacts, end_offset: int) -> bool:
    """Whether the offsets of `segment` can be expressed relative to the base offset of `first`."""
    last_offset = min(segment.next_offset, end_offset) - 1
    return segment.size_bytes == 0 or last_offset - first.base_offset <= LARGEST_RELATIVE_OFFSET
