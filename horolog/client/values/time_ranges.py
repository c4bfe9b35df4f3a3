"""The grammar of time ranges, for every `--since` and `--until`: two times of which the second may depend on the first; pure.

    range := since ".." until                 in one text, wherever a range is expected
    until := "+" duration                     so long after since
           | clock                            of the day of since, in its zone; without a since, of today; midnight is the end of that day
           | time                             as everywhere

A length may be given in place of the end. A range that does not end after it begins is refused. `earliest` as the beginning
and `latest` as the end leave it open.
"""

from datetime import tzinfo
from typing import NamedTuple

from horolog.client.values.times import (
    EARLIEST,
    LATEST,
    RANGE_SEPARATOR,
    Moment,
    TimeTextError,
    format_time,
    is_clock,
    is_midnight,
    on_day_of,
    parse_duration,
    parse_time,
)

NAMED_BY_AN_INSTANT_MS = 60_000
"""The length of a point in time where a range is expected: `now-1h` is then a minute."""


class TimeRange(NamedTuple):
    """Since a moment, up to another, which is excluded; None if not given."""

    since: Moment | None
    until: Moment | None

    @property
    def since_ms(self) -> int | None:
        """None also for the start of each partition."""
        return None if self.since is None or self.since.ms < 0 else self.since.ms

    @property
    def until_ms(self) -> int | None:
        return None if self.until is None or self.until.ms == LATEST else self.until.ms


def split_range(text: str) -> tuple[str, str] | None:
    """The two texts around `..`; None if there is none."""
    since, found, until = text.partition(RANGE_SEPARATOR)
    if not found:
        return None
    if not since.strip() or not until.strip():
        raise TimeTextError(
            f"{text!r}: expected a time on both sides of {RANGE_SEPARATOR}; examples: 10:05..10:10, monday 10:05..+5m"
        )
    return since.strip(), until.strip()


def parse_range(
    since: str | None,
    until: str | None,
    *,
    length_ms: int | None = None,
    now_ms: int,
    zone: tzinfo,
    ends: bool = False,
) -> TimeRange:
    """The range from one text to another, or of a given length. `since` alone may hold both; with `ends` it may begin at the end
    of each partition. Raises TimeTextError.
    """
    pair = None if since is None else split_range(since)
    if pair is not None:
        if until is not None:
            raise TimeTextError(f"{since!r} already sets the end: leave out {until!r}")
        since, until = pair
    if until is not None and length_ms is not None:
        raise TimeTextError("the end and the length of a range are both given; give only one of them")
    first = None if since is None else parse_time(since, now_ms=now_ms, zone=zone, ends=True)
    if first is not None and first.ms == LATEST and not ends:
        raise TimeTextError(f"{since!r}: there is nothing after the end of a partition")
    if length_ms is not None:
        last: Moment | None = _after(first, length_ms, "a length", zone)
    elif until is None:
        return TimeRange(first, None)
    else:
        last = _until(until, first, now_ms=now_ms, zone=zone)
    if first is not None and last is not None and 0 <= last.ms <= first.ms:
        raise TimeTextError(f"the end, {last.understood}, is not after the start, {first.understood}")
    return TimeRange(first, last)


def parse_named(
    text: str, *, length_ms: int | None, around_ms: int | None, until: str | None, now_ms: int, zone: tzinfo
) -> TimeRange:
    """A range that one text names: two times, or one with what lies around or after it; also a minute, a day or a week alone."""
    if split_range(text) is not None or until is not None or length_ms is not None:
        if around_ms is not None:
            raise TimeTextError(f"{text!r}: a range around a time cannot have another end")
        return parse_range(text, until, length_ms=length_ms, now_ms=now_ms, zone=zone)
    moment = parse_time(text, now_ms=now_ms, zone=zone)
    if around_ms is not None:
        return TimeRange(_shifted(moment, -around_ms, zone), _shifted(moment, around_ms, zone))
    end_ms = moment.ms + NAMED_BY_AN_INSTANT_MS if moment.until_ms is None else moment.until_ms
    return TimeRange(moment, Moment(end_ms, format_time(end_ms, zone)))


def _until(text: str, first: Moment | None, *, now_ms: int, zone: tzinfo) -> Moment:
    if text.lstrip().startswith("+"):
        return _after(first, parse_duration(text.lstrip()[1:]), repr(text), zone)
    if first is None or first.ms in {EARLIEST, LATEST} or not is_clock(text):
        last = parse_time(text, now_ms=now_ms, zone=zone, ends=True)
        if last.ms == EARLIEST:
            raise TimeTextError(f"{text!r}: there is nothing before the start of a partition")
        return last
    return on_day_of(text, first, zone, days=1 if is_midnight(text) else 0)


def _after(first: Moment | None, length_ms: int, said: str, zone: tzinfo) -> Moment:
    if first is None or first.ms in {EARLIEST, LATEST}:
        raise TimeTextError(f"{said} counts from the start of the range: give a time as the start")
    return _shifted(first, length_ms, zone)


def _shifted(moment: Moment, by_ms: int, zone: tzinfo) -> Moment:
    return Moment(moment.ms + by_ms, format_time(moment.ms + by_ms, zone))
