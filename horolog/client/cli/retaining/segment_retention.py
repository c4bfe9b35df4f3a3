"""The facts of retention for known segments, from files or from a broker's HTTP port: exactly what the broker will decide."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from horolog.broker.log.partition import retention
from horolog.client.segments.retention import FOR_EVER_MS, Cause, Next, PartitionFacts, RetentionResult

if TYPE_CHECKING:
    from horolog.broker.config.topic_settings import TopicConfig
    from horolog.client.segments.segments import PartitionSegments

ACTIVE_ALONE = "all records are in the active segment, which is deleted when all of it has expired"


def take(
    facts: PartitionFacts,
    told: "PartitionSegments",
    config: "TopicConfig",
    other: "TopicConfig | None",
    now_ms: int,
) -> None:
    """Merge a broker's segments into the facts from its Kafka responses."""
    ages = [
        retention.SegmentAge(
            one.base_offset, one.next_offset, one.size_bytes, -1 if one.largest_ms is None else one.largest_ms
        )
        for one in told.segments
    ]
    modified = {
        one.base_offset: one.created_ms if one.modified_ms is None else one.modified_ms for one in told.segments
    }
    facts.size_bytes = told.size_bytes
    largest = told.largest
    if largest is not None:
        facts.largest_ms, facts.largest_offset = largest.largest_ms, largest.largest_offset
    facts.next = next_of(ages, config, now_ms, facts.first_offset, modified.__getitem__)
    if len(ages) == 1 and facts.records and config.delete:
        facts.held_by.append(ACTIVE_ALONE)
    if other is not None:
        facts.left = left_under(ages, facts, other, now_ms, modified.__getitem__)


def config_of(settings: Mapping[str, str | None]) -> "TopicConfig":
    """The config as the broker resolves it. Raises ValueError for a value that it would reject."""
    from horolog.broker.config.setting_types import SettingsError
    from horolog.broker.config.settings import Settings
    from horolog.broker.config.topic_settings import ROWS, resolve

    try:
        return resolve({key: text for key, text in settings.items() if text is not None and key in ROWS}, Settings())
    except SettingsError as error:
        raise ValueError(str(error)) from error


def next_of(
    segments: list[retention.SegmentAge],
    config: "TopicConfig",
    now_ms: int,
    start: int,
    modified_ms: Callable[[int], int],
) -> Next | None:
    """What the next check deletes; else the first segment, at the time it expires."""
    if not segments:
        return None
    decision = retention.decide(
        segments,
        config,
        now_ms,
        log_start_offset=start,
        deletable_up_to=segments[-1].next_offset,
        modified_ms=modified_ms,
    )
    if decision.expired:
        gone = {one.base_offset for one in decision.expired}
        going = [one for one in segments if one.base_offset in gone]
        cause = {retention.Cause.SIZE: Cause.SIZE, retention.Cause.TIME: Cause.TIME}.get(decision.expired[0].cause)
        size_bytes = sum(one.size_bytes for one in going)
        return Next(cause or Cause.START_OFFSET, now_ms, now_ms, going[-1].next_offset, size_bytes)
    first = segments[0]
    if not config.delete or config.retention_ms < 0 or first.size_bytes == 0:
        return None
    at_ms = retention.time_of(first, config.future_timestamp_max_ms, now_ms, modified_ms) + config.retention_ms + 1
    return Next(Cause.TIME, at_ms, at_ms, first.next_offset, first.size_bytes) if at_ms < FOR_EVER_MS else None


def left_under(
    segments: list[retention.SegmentAge],
    facts: PartitionFacts,
    config: "TopicConfig",
    now_ms: int,
    modified_ms: Callable[[int], int],
) -> RetentionResult:
    """What the next check would leave under other settings."""
    decision = retention.decide(
        segments,
        config,
        now_ms,
        log_start_offset=facts.first_offset,
        deletable_up_to=facts.end_offset,
        modified_ms=modified_ms,
    )
    gone = {one.base_offset for one in decision.expired}
    rest = [one for one in segments if one.base_offset not in gone]
    first = max(facts.first_offset, rest[0].base_offset) if rest else facts.end_offset
    first_ms = facts.first_ms if not gone else None
    return RetentionResult(first, facts.end_offset - first, sum(one.size_bytes for one in rest), first_ms, exact=True)
