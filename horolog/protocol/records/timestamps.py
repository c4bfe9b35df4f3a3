"""The rules of KIP-32 about time as pure functions: what a timestamp means, and which ones a topic accepts.

A message carries the time of its creation (CreateTime) or that of its append (LogAppendTime); the type is bit 3 of the
attributes of a v1 message or wrapper, or of a v2 batch. v0 has neither time nor type. Under LogAppendTime the wrapper's or
batch's time counts for every record in it. A CreateTime further from the broker's clock than a bound allows is refused.
"""

from enum import IntEnum
from typing import Final, NamedTuple

from horolog.base.readable import format_duration, time_and_number
from horolog.protocol.errors import OTHER_NAMES, ErrorCode
from horolog.protocol.records.record import MAX_INT64, MIN_INT64

NO_TIMESTAMP: Final = -1
UNBOUNDED_MS: Final = MAX_INT64  # the default of every bound: nothing is refused
FUTURE_TOLERANCE_MS: Final = 3_600_000  # no further ahead it is a clock that runs fast, not a mistake worth a warning
TIMESTAMP_TYPE_BIT: Final = 0x08
TOO_EARLY = "earlier than the earliest accepted"
TOO_LATE = "later than the latest accepted"
_REFUSAL = OTHER_NAMES[ErrorCode.INVALID_TIMESTAMP]


class TimestampType(IntEnum):
    NONE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class Accepted(NamedTuple):
    """The times that a topic accepts at one moment, both ends included."""

    now_ms: int
    before_max_ms: int
    after_max_ms: int

    @property
    def earliest(self) -> int:
        return MIN_INT64 if self.before_max_ms == UNBOUNDED_MS else self.now_ms - self.before_max_ms

    @property
    def latest(self) -> int:
        return min(MAX_INT64, self.now_ms + self.after_max_ms)


def all_accepted(lowest: int, highest: int, now_ms: int, before_max_ms: int, after_max_ms: int) -> bool:
    """Whether all times between two, both included, keep to the bounds: the one place that decides. Called for every append."""
    return (
        (now_ms - lowest <= before_max_ms or before_max_ms == UNBOUNDED_MS)
        and highest - now_ms <= after_max_ms
        and highest <= MAX_INT64
    )


def excess_ms(timestamp: int, times: Accepted) -> int:
    """By how much a time is out of bounds: negative when too early, positive when too late, 0 when it is accepted."""
    if timestamp < times.earliest:
        return timestamp - times.earliest
    return max(0, timestamp - times.latest)


def is_accepted_in_batch(timestamp: int, times: Accepted) -> bool:
    """A v2 record may have no time, whatever the bounds, as in 3.9 and later."""
    return timestamp == NO_TIMESTAMP or all_accepted(timestamp, timestamp, *times)


def is_accepted_in_set(timestamp: int, times: Accepted) -> bool:
    """In sets of v0 and v1 no time is -1 and judged like any other, as in 0.10; smaller numbers are no times."""
    return timestamp >= NO_TIMESTAMP and all_accepted(timestamp, timestamp, *times)


def describe_refusal(timestamp: int, times: Accepted) -> str:
    """Which time, by how much, and what would have been accepted; in KIP-32's own word for it."""
    excess = excess_ms(timestamp, times)
    if excess == 0:
        return f"timestamp {timestamp} is neither a time nor -1, which stands for none"
    side, bound = (TOO_EARLY, times.earliest) if excess < 0 else (TOO_LATE, times.latest)
    by = f"{format_duration(abs(excess))} ({abs(excess)} ms)"
    shown = f"{timestamp} (no time)" if timestamp == NO_TIMESTAMP else time_and_number(timestamp)
    return f"{_REFUSAL}: timestamp {shown} is {by} {side}, {time_and_number(bound)}"


def type_of(attributes: int, magic: int) -> TimestampType:
    if magic == 0:
        return TimestampType.NONE
    return TimestampType.LOG_APPEND_TIME if attributes & TIMESTAMP_TYPE_BIT else TimestampType.CREATE_TIME


def effective_timestamp(own: int, outer: int, outer_type: int) -> int:
    """The time of a record inside a wrapper or batch: its own, unless the outer one is an append time."""
    return outer if outer_type == TimestampType.LOG_APPEND_TIME else own
