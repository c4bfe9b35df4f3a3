"""Retention as facts: a partition's next deletion and its time, what keeps records, and what other settings would leave.

Retention works on segments: the first goes when its largest time is past `retention.ms`, or when those after it hold
`retention.bytes`. Kafka's protocol does not show segments, so facts from its responses are bounds, and each says so: the
first segment ends no earlier than its first record and no later than `segment.ms` lets it. Files give exact facts, and so
does horolog's HTTP port (`segment_retention`). This module decides; `retention_look` asks a broker.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from horolog.base.readable import format_distance, spoken_time
from horolog.protocol.records.timestamps import FUTURE_TOLERANCE_MS

DAY_MS = 86_400_000
FOR_EVER_MS = 2**63 - 1
NO_CLEANER = "Kafka's protocol does not show when the cleaner runs"
FUTURE_KEY = "horolog.future.timestamp.max.ms"
UNKNOWN_KEY = "horolog.settings.unknown"
KEYS = (
    *("cleanup.policy", "retention.ms", "retention.bytes", "segment.ms", "segment.bytes"),
    *("message.timestamp.type", "message.timestamp.after.max.ms", FUTURE_KEY, UNKNOWN_KEY),
)


class Cause(StrEnum):
    TIME = "time"
    SIZE = "size"
    START_OFFSET = "log start offset"


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings of a topic that delete its records; -1: no bound."""

    deletes: bool
    compacts: bool
    retention_ms: int
    retention_bytes: int
    segment_ms: int
    segment_bytes: int
    future_max_ms: int

    @staticmethod
    def of(settings: Mapping[str, str | None]) -> "Rules":
        """The rules of a topic's settings. Raises ValueError with a sentence."""

        def number(key: str, otherwise: int) -> int:
            text = settings.get(key)
            try:
                return otherwise if text is None else int(text)
            except ValueError as error:
                raise ValueError(f"{key}={text}: expected a whole number") from error

        policy = (settings.get("cleanup.policy") or "delete").replace(" ", "").split(",")
        return Rules(
            deletes="delete" in policy,
            compacts="compact" in policy,
            retention_ms=number("retention.ms", 7 * DAY_MS),
            retention_bytes=number("retention.bytes", -1),
            segment_ms=number("segment.ms", 7 * DAY_MS),
            segment_bytes=number("segment.bytes", 1 << 30),
            future_max_ms=number(FUTURE_KEY, -1),
        )


@dataclass(frozen=True, slots=True)
class Next:
    """The next deletion. The times are bounds, equal if the segments are known; a time in the past means at the next check."""

    cause: Cause
    from_ms: int
    until_ms: int
    up_to_offset: int | None = None
    """Records before it are deleted; None: not known."""
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class RetentionResult:
    """What a partition would hold under other settings, right after the next check."""

    first_offset: int
    records: int
    size_bytes: int | None
    first_ms: int | None
    exact: bool


@dataclass(slots=True)
class PartitionFacts:
    partition: int
    first_offset: int
    end_offset: int
    size_bytes: int | None
    first_ms: int | None
    """The time of the first record that has one."""
    largest_ms: int | None
    largest_offset: int | None = None
    next: Next | None = None
    held_by: list[str] = field(default_factory=list)
    """What keeps records from being deleted, in sentences."""
    unknown: list[str] = field(default_factory=list)
    """Facts that the source cannot provide."""
    left: RetentionResult | None = None

    @property
    def records(self) -> int:
        """The number of offsets; compaction and transactions leave some without a record."""
        return self.end_offset - self.first_offset

    @property
    def bytes_a_day(self) -> float | None:
        """The mean from the first time to the largest; a span of less than a day counts as one day."""
        if self.size_bytes is None or self.first_ms is None or self.largest_ms is None or not self.records:
            return None
        return self.size_bytes * DAY_MS / max(self.largest_ms - self.first_ms, DAY_MS)


def holds_of(rules: Rules, facts: PartitionFacts, now_ms: int) -> list[str]:
    """What the settings keep, and what a record from the future keeps."""
    found = []
    if rules.compacts:
        found.append(
            "compaction keeps the last record of each key, and removes earlier ones when the cleaner runs"
            + ("" if rules.deletes else ": nothing is deleted by age or size (cleanup.policy=compact)")
        )
    if not rules.deletes:
        return found
    if rules.retention_ms < 0:
        found.append("no record is deleted by age (retention.ms=-1)")
    if rules.retention_bytes < 0 and rules.retention_ms < 0:
        found.append("no record is deleted by size (retention.bytes=-1)")
    ahead_ms = (facts.largest_ms or 0) - now_ms
    if facts.largest_ms is not None and ahead_ms > FUTURE_TOLERANCE_MS and rules.retention_ms >= 0:
        found.append(_about_future(rules, facts, ahead_ms))
    return found


def waits_for_future(rules: Rules, facts: PartitionFacts, now_ms: int) -> str | None:
    """The sentence about a record from the future that keeps everything after it; None if there is none."""
    ahead_ms = (facts.largest_ms or 0) - now_ms
    believes = rules.future_max_ms < 0 or ahead_ms <= rules.future_max_ms
    waits = rules.deletes and rules.retention_ms >= 0 and ahead_ms > FUTURE_TOLERANCE_MS and believes
    return _about_future(rules, facts, ahead_ms) if waits else None


def _about_future(rules: Rules, facts: PartitionFacts, ahead_ms: int) -> str:
    largest_ms = facts.largest_ms or 0
    place = "a record" if facts.largest_offset is None else f"the record at offset {facts.largest_offset}"
    said = f"{place} is {format_distance(ahead_ms)} in the future ({spoken_time(largest_ms)})"
    if 0 <= rules.future_max_ms < ahead_ms:
        return f"{said}: {FUTURE_KEY} makes retention ignore that time, and use the age of the segment's file instead"
    return f"{said}: its segment, and everything after it, stays until {spoken_time(largest_ms + rules.retention_ms)}"


def next_by_bounds(rules: Rules, facts: PartitionFacts, edge: int | None, now_ms: int) -> Next | None:
    """From a broker's responses. `edge` is the first offset younger than `retention.ms`, if there is one."""
    if not rules.deletes or not facts.records:
        return None
    by_size = _next_by_size(rules, facts, now_ms)
    by_time = _next_by_time(rules, facts, edge, now_ms)
    if by_size is None or by_time is None:
        return by_size or by_time
    return by_size if by_size.from_ms <= now_ms else by_time


def _next_by_size(rules: Rules, facts: PartitionFacts, now_ms: int) -> Next | None:
    """At the latest when the surplus fills a whole segment; a smaller first segment may go earlier."""
    if rules.retention_bytes < 0 or facts.size_bytes is None:
        return None
    surplus = facts.size_bytes - rules.retention_bytes
    if surplus <= 0:
        return None
    return Next(Cause.SIZE, now_ms, now_ms if surplus >= rules.segment_bytes else FOR_EVER_MS, None, None)


def _next_by_time(rules: Rules, facts: PartitionFacts, edge: int | None, now_ms: int) -> Next | None:
    if rules.retention_ms < 0 or facts.first_ms is None or facts.largest_ms is None:
        return None
    latest_ms = min(facts.first_ms + rules.segment_ms, facts.largest_ms) if rules.segment_ms >= 0 else facts.largest_ms
    from_ms = max(facts.first_ms + rules.retention_ms, now_ms)
    if edge is not None and edge >= facts.end_offset:  # all records are older
        return Next(Cause.TIME, now_ms, max(now_ms, latest_ms + rules.retention_ms), facts.end_offset)
    return Next(Cause.TIME, from_ms, max(from_ms, latest_ms + rules.retention_ms))


def unknown_of(rules: Rules, facts: PartitionFacts) -> list[str]:
    """What Kafka's protocol does not show about a deletion."""
    found = []
    if facts.next is not None and facts.next.from_ms != facts.next.until_ms:
        found.append(
            "Kafka's protocol does not show where the first segment ends, so the time of its deletion is unknown; use --dir to read the files"
        )
    if facts.size_bytes is None:
        found.append("this broker does not report the size")
    if facts.largest_ms is None and facts.records:
        found.append("this broker does not report the largest time, or no record has one")
    if rules.compacts:
        found.append(NO_CLEANER)
    return found


def left_by_lookup(rules: Rules, facts: PartitionFacts, edge: int | None, edge_ms: int | None) -> RetentionResult:
    """Under these rules, from the first offset young enough: whole segments stay, so up to one more segment may remain."""
    first, size, first_ms = facts.first_offset, facts.size_bytes, facts.first_ms
    if rules.deletes and rules.retention_ms >= 0:
        first = max(first, facts.end_offset if edge is None else edge)
        first_ms = edge_ms if first > facts.first_offset else first_ms
    share = (facts.end_offset - first) / facts.records if facts.records else 0.0
    if size is not None:
        size = round(size * share)
        if rules.deletes and 0 <= rules.retention_bytes < size:
            first = facts.end_offset - round((facts.end_offset - first) * rules.retention_bytes / size)
            size, first_ms = rules.retention_bytes, None
    return RetentionResult(first, facts.end_offset - first, size, first_ms, exact=first == facts.first_offset)
