"""The grammar of times and durations, the same wherever somebody may name one; pure: the clock and the zone are passed in.

    time      := epoch | "earliest" | "latest" | anchor [clock] [("+" | "-") duration] | clock | date-time | ago
    epoch     := "@" digits [unit]             1700000000 seconds, ...000 milliseconds, and so on: by magnitude, or as the unit says
    anchor    := "now" | "today" | "yesterday" | "tomorrow" | ["last"] weekday
    clock     := HH:MM[:SS[.fraction]]         alone: of today
    date-time := YYYY-MM-DD [("T" | " ") clock] ["Z" | (+|-)HH[[:]MM]]
    ago       := duration | "-" duration | duration ("-" | " ") "ago"        so long before now
    duration  := (number unit)+                largest unit first, each at most once; a day is 24 hours

A weekday is the latest such day, or moment of it, that is not after now; with "last" it is before today. What
has no clock is the start of the day. Local times that a zone passes over (clocks go forward) are read with the offset
from before, so 02:30 becomes 03:30; of those that come twice the first is taken. Both are said in `Moment.understood`.
"""

import os
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from fractions import Fraction
from typing import NamedTuple

from horolog.protocol.epoch_units import UNIT_NAMES, to_ms, unit_by_magnitude
from horolog.protocol.readable import UNITS_MS, format_duration, format_time

__all__ = [
    "EARLIEST",
    "LATEST",
    "Moment",
    "TimeTextError",
    "format_duration",
    "format_time",
    "local_zone",
    "parse_duration",
    "parse_time",
    "parse_zone",
]

EARLIEST = -2
LATEST = -1
"""ListOffsets' names for the start and the end of a partition."""

LONGEST_TEXT = 100
MAX_TIMESTAMP_MS = 2**63 - 1
EXAMPLES = "3d, 2h30m, 30m-ago, 2026-11-17, 2026-11-17T10:00+02:00, today, monday 10:05, now-1h, @1700000000000"
DURATION_EXAMPLES = "90s, 5m, 1h30m, 250ms, 2w"

_UNIT_NAMES = {
    **dict.fromkeys(("w", "week", "weeks"), "w"),
    **dict.fromkeys(("d", "day", "days"), "d"),
    **dict.fromkeys(("h", "hr", "hour", "hours"), "h"),
    **dict.fromkeys(("m", "min", "minute", "minutes"), "m"),
    **dict.fromkeys(("s", "sec", "second", "seconds"), "s"),
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), "ms"),
}
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

_SPACE = re.compile(r"\s*")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_LETTERS = re.compile(r"[A-Za-zµ]+")
_EPOCH = re.compile(r"-?[0-9]+")
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]{1,9}))?)?")
_SEPARATOR = re.compile(r"[Tt]|\s+(?=[0-9])")
_OFFSET = re.compile(r"\s*(?:([Zz])|([+-])([0-9]{2})(?::?([0-9]{2}))?)")
_AGO = re.compile(r"(?:\s*-\s*|\s+)ago", re.IGNORECASE)


class TimeTextError(ValueError):
    """The text is no time, or no duration: the message says where it stopped being one and what would be."""


class Moment(NamedTuple):
    """A point in time, in milliseconds since the epoch (or EARLIEST, LATEST), and how it was understood."""

    ms: int
    understood: str


class _Text:
    """A text that is read from left to right."""

    def __init__(self, text: str, examples: str) -> None:
        if len(text) > LONGEST_TEXT:
            raise TimeTextError(f"{text[:20]!r}... is too long; {examples} are examples")
        self.text = text
        self.examples = examples
        self.position = len(text) - len(text.lstrip())
        self.end = len(text.rstrip())

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The next part if it looks so; passes over it."""
        found = pattern.match(self.text, self.position, self.end)
        if found is not None:
            self.position = found.end()
        return found

    def word(self) -> str:
        """The letters that are next, in lower case, without passing over them."""
        found = _LETTERS.match(self.text, self.position, self.end)
        return found[0].lower() if found is not None else ""

    def take_word(self, *words: str) -> str | None:
        word = self.word()
        if word not in words:
            return None
        self.position += len(word)
        return word

    @property
    def ended(self) -> bool:
        return self.position >= self.end

    def error(self, expected: str) -> TimeTextError:
        """The part that was read, where it stopped, and the words that would do."""
        read, rest = self.text[: self.position], self.text[self.position : self.end]
        found = f"found {rest!r}" if rest else "it ends"
        where = f"after {read!r} " if read.strip() else ""
        return TimeTextError(f"{self.text!r}: {where}{expected} is expected, but {found}; {self.examples} are examples")


# -- durations


def parse_duration(text: str) -> int:
    """A duration in milliseconds; raises TimeTextError."""
    source = _Text(text, DURATION_EXAMPLES)
    duration_ms = _duration(source)
    if not source.ended:
        raise source.error("nothing more")
    return duration_ms


def _duration(source: _Text) -> int:
    """(number unit)+, largest unit first."""
    total = Fraction(0)
    smallest = MAX_TIMESTAMP_MS
    while True:
        began = source.position
        number = source.take(_NUMBER)
        if number is None:
            if smallest != MAX_TIMESTAMP_MS:
                break
            raise source.error("a number")
        source.take(_SPACE)
        unit_ms = UNITS_MS[_unit(source)]
        if unit_ms >= smallest:
            source.position = began
            raise source.error("a smaller unit than the one before")
        smallest = unit_ms
        total += Fraction(number[0]) * unit_ms
        ended = source.position
        source.take(_SPACE)
        if _NUMBER.match(source.text, source.position, source.end) is None:
            source.position = ended
            break
    if total.denominator != 1:
        raise TimeTextError(f"{source.text!r} is no whole number of milliseconds, the smallest unit there is")
    if total > MAX_TIMESTAMP_MS:
        raise TimeTextError(f"{source.text!r} is longer than any log may be: {MAX_TIMESTAMP_MS} ms is the most")
    return int(total)


def _unit(source: _Text) -> str:
    word = source.word()
    if word in {"month", "months", "mo", "y", "year", "years"}:
        raise source.error("a unit of fixed length (w, d, h, m, s, ms)")
    unit = _UNIT_NAMES.get(word)
    if unit is None:
        raise source.error("a unit (w, d, h, m, s, ms)")
    source.position += len(word)
    return unit


# -- times


def parse_time(text: str, *, now_ms: int, zone: tzinfo, ends: bool = False) -> Moment:
    """The moment that a text means; with `ends`, `earliest` and `latest` are moments too. Raises TimeTextError."""
    source = _Text(text, EXAMPLES)
    word = source.word()
    if word in {"earliest", "beginning", "latest", "end"}:
        return _end_of_log(source, word, ends)
    if source.take(re.compile("@")):
        moment = _epoch(source, zone)
    elif word:
        moment = _anchored(source, now_ms, zone)
    elif _DATE.match(source.text, source.position, source.end):
        moment = _date_time(source, zone)
    elif _CLOCK.match(source.text, source.position, source.end):
        moment = _local(datetime.combine(_today(now_ms, zone), _clock(source)), zone)
    else:
        moment = _ago(source, now_ms, zone)
    if not source.ended:
        raise source.error("nothing more")
    if not -MAX_TIMESTAMP_MS <= moment.ms <= MAX_TIMESTAMP_MS:
        raise TimeTextError(f"{text!r} is beyond all times that a record may have")
    return moment


def _end_of_log(source: _Text, word: str, ends: bool) -> Moment:
    source.position += len(word)
    if not ends or not source.ended:
        source.position -= 0 if ends else len(word)
        raise source.error("nothing more" if ends else "a time")
    if word in {"earliest", "beginning"}:
        return Moment(EARLIEST, "the start of each partition")
    return Moment(LATEST, "the end of each partition")


def _epoch(source: _Text, zone: tzinfo) -> Moment:
    digits = source.take(_EPOCH)
    if digits is None:
        raise source.error("a number of milliseconds since 1970")
    number = int(digits[0])
    unit = source.take_word(*UNIT_NAMES)
    if unit is not None:
        ms = to_ms(number, unit)
        return Moment(ms, format_time(ms, zone))
    unit = unit_by_magnitude(number)
    ms = to_ms(number, unit)
    if unit == "ms":
        return Moment(ms, format_time(ms, zone))
    said = f"{format_time(ms, zone)}: @{number} is read as {UNIT_NAMES[unit]}; @{number}ms would be milliseconds"
    return Moment(ms, said)


def _anchored(source: _Text, now_ms: int, zone: tzinfo) -> Moment:
    """A word, perhaps a clock, perhaps so much before or after."""
    if source.take_word("now") is not None:
        moment = Moment(now_ms, format_time(now_ms, zone))
    else:
        moment = _day(source, now_ms, zone)
    source.take(_SPACE)
    sign = source.take(re.compile(r"[+-]"))
    if sign is None:
        return moment
    source.take(_SPACE)
    ms = moment.ms + (_duration(source) if sign[0] == "+" else -_duration(source))
    return Moment(ms, format_time(ms, zone))


def _day(source: _Text, now_ms: int, zone: tzinfo) -> Moment:
    today = _today(now_ms, zone)
    named = source.take_word("today", "yesterday", "tomorrow")
    if named is not None:
        day = today + timedelta(days={"today": 0, "yesterday": -1, "tomorrow": 1}[named])
        return _local(datetime.combine(day, _clock_if_any(source)), zone)
    last = source.take_word("last") is not None
    if last:
        source.take(_SPACE)
    weekday = source.word()
    matches = [n for n, name in enumerate(_WEEKDAYS) if len(weekday) >= 3 and name.startswith(weekday)]
    if not matches:
        raise source.error("a weekday" if last else "a time")
    source.position += len(weekday)
    clock = _clock_if_any(source)
    back = (today.weekday() - matches[0]) % 7
    moment = _local(datetime.combine(today - timedelta(days=back), clock), zone)
    if moment.ms > now_ms or (last and back == 0):
        moment = _local(datetime.combine(today - timedelta(days=back + 7), clock), zone)
    return moment


def _clock_if_any(source: _Text) -> time:
    """The clock behind a day, or the day's start."""
    before = source.position
    source.take(_SPACE)
    if _CLOCK.match(source.text, source.position, source.end) is None:
        source.position = before
        return time()
    return _clock(source)


def _clock(source: _Text) -> time:
    began = source.position
    found = source.take(_CLOCK)
    if found is None:
        raise source.error("a time of day (HH:MM)")
    hour, minute, second, fraction = found.groups()
    try:
        return time(int(hour), int(minute), int(second or 0), int((fraction or "0").ljust(9, "0")[:6]))
    except ValueError as error:
        source.position = began
        raise source.error("a time of day from 00:00 to 23:59:59") from error


def _date_time(source: _Text, zone: tzinfo) -> Moment:
    began = source.position
    found = source.take(_DATE)
    assert found is not None, "looked at before"
    try:
        day = date(*(int(part) for part in found.groups()))
    except ValueError as error:
        source.position = began
        raise source.error("a day of the calendar") from error
    clock = _clock(source) if source.take(_SEPARATOR) else time()
    offset = _offset(source)
    try:
        return _local(datetime.combine(day, clock), zone if offset is None else offset, show_in=zone)
    except OverflowError as error:
        raise TimeTextError(f"{source.text!r} is beyond the calendar") from error


def _offset(source: _Text) -> tzinfo | None:
    """An offset from UTC as it may stand behind a time."""
    found = source.take(_OFFSET)
    if found is None:
        return None
    zulu, sign, hours, minutes = found.groups()
    if zulu:
        return UTC
    offset = timedelta(hours=int(hours), minutes=int(minutes or 0))
    if offset >= timedelta(hours=24) or int(minutes or 0) > 59:
        source.position = found.start()
        raise source.error("an offset from UTC below 24 hours")
    return timezone(-offset if sign == "-" else offset)


def _ago(source: _Text, now_ms: int, zone: tzinfo) -> Moment:
    if re.fullmatch(r"[0-9]{6,}", source.text[source.position : source.end]):
        raise TimeTextError(_bare_number(source, zone))
    source.take(re.compile("-"))
    if _NUMBER.match(source.text, source.position, source.end) is None:
        raise source.error("a time")
    ms = now_ms - _duration(source)
    source.take(_AGO)
    return Moment(ms, format_time(ms, zone))


def _bare_number(source: _Text, zone: tzinfo) -> str:
    """The readings of a number without `@`."""
    number = int(source.text)
    units = dict.fromkeys((unit_by_magnitude(number), "ms"))
    readings = [f"@{number}{unit} is {format_time(to_ms(number, unit), zone)}" for unit in units]
    return f"{source.text!r}: a bare number may be anything; since 1970, {' and '.join(readings)}"


# -- zones and the calendar


def parse_zone(text: str) -> tzinfo:
    """A zone by its IANA name, an offset (+02:00), `utc` or `local`; raises TimeTextError."""
    if text.lower() in {"utc", "z"}:
        return UTC
    if text.lower() == "local":
        return local_zone(os.environ)
    source = _Text(text, "Europe/Berlin, UTC, +02:00")
    offset = _offset(source)
    if offset is not None and source.ended:
        return offset
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(text)
    except (KeyError, ValueError, OSError) as error:
        raise TimeTextError(f"{text!r} is no time zone known here; Europe/Berlin, UTC, +02:00 are examples") from error


def local_zone(environ: Mapping[str, str], localtime: str = "/etc/localtime") -> tzinfo:
    """The machine's zone: what TZ names, else what its own file says, else UTC."""
    from zoneinfo import ZoneInfo

    name = environ.get("TZ", "").removeprefix(":")
    if name:
        return parse_zone(name)
    try:
        with open(localtime, "rb") as file:  # noqa: PTH123 - pathlib would cost 10 ms
            return ZoneInfo.from_file(file, key="local")
    except (OSError, ValueError):
        return UTC


_EPOCH_START = datetime(1970, 1, 1, tzinfo=UTC)


def _today(now_ms: int, zone: tzinfo) -> date:
    return (_EPOCH_START + timedelta(milliseconds=now_ms)).astimezone(zone).date()


def _local(naive: datetime, zone: tzinfo, show_in: tzinfo | None = None) -> Moment:
    """A local time as a moment; says so if that time does not exist in the zone, or exists twice."""
    first, second = naive.replace(tzinfo=zone, fold=0), naive.replace(tzinfo=zone, fold=1)
    ms = (first - _EPOCH_START) // timedelta(milliseconds=1)
    shown = format_time(ms, show_in or zone)
    before, after = first.utcoffset(), second.utcoffset()
    if before == after or before is None or after is None:
        return Moment(ms, shown)
    clock = naive.isoformat(sep=" ")
    if before < after:
        return Moment(ms, f"{shown}: the clocks go forward over {clock}, which does not exist")
    again = format_time((second - _EPOCH_START) // timedelta(milliseconds=1), show_in or zone)
    return Moment(ms, f"{shown}: {clock} comes twice, {again} would be the second")
