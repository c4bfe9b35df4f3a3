"""Notices records with times that retention does not expect when they are appended, not only when retention runs.

A record already older than `retention.ms` may be deleted at once; one in the future keeps itself and everything behind it.
Both are counted per append, by its largest time; the first of a topic in an hour is logged. Whether a record is too old is judged by the
clock of retention, which does not believe a wall clock that is ahead of the store's, or has jumped ahead.
"""

import logging
from dataclasses import dataclass, field
from typing import Protocol

from horolog.base.clock import Clock
from horolog.base.readable import format_duration, format_time
from horolog.broker.config.topic_settings import TopicConfig
from horolog.broker.log.counters import LogCounters
from horolog.protocol.epoch_units import UNIT_NAMES, misread_as_ms, to_ms
from horolog.protocol.records.record import MAX_INT64

log = logging.getLogger(__name__)

FAR_AHEAD_MS = 86_400_000
"""Further in the future than a clock with a wrong time zone."""
SILENCE_MS = 3_600_000

_AHEAD = (
    "topic %s: partition %s was sent a record of %s%s, %s ahead of this broker's clock (%s): retention by time keeps it, and"
    " everything behind it, until then; set message.timestamp.after.max.ms to refuse such records"
)
_BEHIND = (
    "topic %s: partition %s was sent records of %s%s or earlier, which retention.ms (%s) keeps no longer: it reaches back to %s;"
    " the next retention check deletes them, unless their segment has a later record"
)


def kept_ms(config: TopicConfig) -> int:
    """How old a record may be before retention by time deletes it; unlimited if it deletes nothing."""
    return config.retention_ms if config.delete and config.retention_ms >= 0 else MAX_INT64


class WatchedPartition(Protocol):
    """The partition that was appended to."""

    topic: str
    index: int

    @property
    def config(self) -> TopicConfig: ...


@dataclass(slots=True)
class TimeWatch:
    """The warnings logged, in their order; shared by all partitions."""

    clock: Clock | None = None
    """That of retention; None if it is the one that records are appended by."""
    _told: dict[tuple[str, str], int] = field(default_factory=dict)

    def note(self, place: WatchedPartition, counters: LogCounters, largest: int, now_ms: int) -> None:
        """Count an append whose largest time lies in the future, or is older than `kept_ms`; -1 is not a time."""
        topic, partition, retention_ms = place.topic, place.index, place.config.retention_ms
        if largest > now_ms:
            counters.appends_from_future.value += 1
            if largest - now_ms > FAR_AHEAD_MS:
                counters.appends_far_ahead.value += 1
                if self._is_news(topic, _AHEAD, now_ms):
                    ahead = format_duration(largest - now_ms)
                    log.warning(
                        _AHEAD, topic, partition, format_time(largest), _unit_hint(largest), ahead, format_time(now_ms)
                    )
        elif largest >= 0 and largest < (retention_now_ms := self._retention_now_ms(now_ms)) - retention_ms:
            counters.appends_behind_retention.value += 1
            if self._is_news(topic, _BEHIND, now_ms):
                edge = format_time(retention_now_ms - retention_ms)
                kept = format_duration(retention_ms)
                log.warning(_BEHIND, topic, partition, format_time(largest), _unit_hint(largest), kept, edge)

    def _retention_now_ms(self, now_ms: int) -> int:
        return now_ms if self.clock is None else self.clock.wall_ms()

    def _is_news(self, topic: str, what: str, now_ms: int) -> bool:
        """Whether there was no such warning for the topic for an hour; the clock may have been set back."""
        told_ms = self._told.get((topic, what))
        if told_ms is not None and abs(now_ms - told_ms) < SILENCE_MS:
            return False
        while self._told and abs(now_ms - next(iter(self._told.values()))) >= SILENCE_MS:
            del self._told[next(iter(self._told))]
        self._told[topic, what] = now_ms
        return True


def _unit_hint(timestamp: int) -> str:
    """A hint at the unit of a timestamp that is hardly in milliseconds."""
    unit = misread_as_ms(timestamp)
    return "" if unit is None else f" (if {timestamp} are {UNIT_NAMES[unit]}: of {format_time(to_ms(timestamp, unit))})"
