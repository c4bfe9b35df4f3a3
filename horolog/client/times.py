"""The grammar of times and durations, the same wherever somebody may name one; pure: the clock and the zone are passed in.

    time       := (epoch | instant | date-time | ago) | "earliest" | "latest"
    epoch      := "@" digits [unit]            1700000000 seconds, ...000 milliseconds, and so on: by magnitude, or as the unit says
    instant    := ("now" | day [clock] | period) [zone] [("+" | "-") duration]
    day        := "today" | "yesterday" | "tomorrow" | ["last"] weekday
    period     := ("this" | "last") ("week" | "month" | "year")            its beginning; a week begins on Monday
    date-time  := [date ["T" | " "]] clock [zone] | date [zone]            without a date: of today
    date       := YYYY-MM-DD | D month [YYYY] | month D [YYYY]             a month by its name, three letters are enough
    clock      := HH:MM[:SS[.fraction]]
    zone       := "Z" | "UTC" | "GMT" | (+|-)HH[[:]MM] | IANA name         the day is that of this zone, too
    ago        := duration | "-" duration | duration ("-" | " ") "ago"     so long before now
    duration   := (number unit)+               largest unit first, each at most once; a day is 24 hours

A weekday is the latest such day, or moment of it, that is not after now; with "last" it is before today. A date without a year
is the latest one that is not after now. What has no clock is the start of the day. Local times that a zone passes over (clocks
go forward) are read with the offset from before, so 02:30 becomes 03:30; of those that come twice the first is taken. Both are
said in `Moment.understood`. Abbreviations such as CET are refused: several zones use them, or one for half of the year.
`Moment.until_ms` is the end of what the text names: of the minute 10:05, of the second 10:05:30, of the day, of last week.

Two times make a range (`time_ranges`).
"""

import os
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from fractions import Fraction
from typing import NamedTuple

from horolog.protocol.epoch_units import UNIT_NAMES, to_ms, unit_by_magnitude
from horolog.protocol.readable import UNITS_MS, format_duration, format_time

__all__ = [
    "EARLIEST",
    "LATEST",
    "RANGE_SEPARATOR",
    "Moment",
    "TimeTextError",
    "format_duration",
    "format_time",
    "is_clock",
    "local_zone",
    "on_day_of",
    "parse_duration",
    "parse_time",
    "parse_zone",
]

EARLIEST = -2
LATEST = -1
"""ListOffsets' names for the start and the end of a partition."""

RANGE_SEPARATOR = ".."
"""Between two times: see `time_ranges`. No time has it inside."""
LONGEST_TEXT = 100
MAX_TIMESTAMP_MS = 2**63 - 1
EXAMPLES = (
    "3d, 2h30m, 30m-ago, 2026-11-17, 2026-11-17T10:00+02:00, 17 Nov 10:05, today, monday 10:05 Europe/Berlin, last week,"
    " now-1h, @1700000000000"
)
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
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_PERIODS = ("week", "month", "year")
_SHORTEST_NAME = 3
"""A weekday or a month may be cut to so many letters."""

_SPACE = re.compile(r"\s*")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_LETTERS = re.compile(r"[A-Za-zµ]+")
_EPOCH = re.compile(r"-?[0-9]+")
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]{1,9}))?)?")
_SEPARATOR = re.compile(r"[Tt]|\s+(?=[0-9])")
_CLOCK_AHEAD = re.compile(r"\s*(?=[0-9]{1,2}:)")
_OFFSET = re.compile(r"\s*(?:([Zz])(?![A-Za-z])|([+-])([0-9]{2})(?::?([0-9]{2}))?(?![0-9.]*\s*[A-Za-z]))")
_DAY_NUMBER = re.compile(r"[0-9]{1,2}(?![0-9:.])")
_DAY_BEFORE_MONTH = re.compile(r"[0-9]{1,2}\s*([A-Za-z]+)")
_YEAR = re.compile(r"\s*([0-9]{4})(?![0-9:])")
_ZONE_NAME = re.compile(r"(?<=[A-Za-z0-9]\s)\s*([A-Za-z]+(?:/[A-Za-z0-9_+-]+)+|utc|gmt)(?![A-Za-z0-9/])", re.IGNORECASE)
_SHORT_ZONES = {
    **dict.fromkeys(("cet", "cest", "met", "mest"), "Europe/Berlin or +01:00"),
    **dict.fromkeys(("eet", "eest"), "Europe/Athens or +02:00"),
    **dict.fromkeys(("wet", "west", "bst"), "Europe/London or +01:00"),
    **dict.fromkeys(("est", "edt"), "America/New_York or -05:00"),
    **dict.fromkeys(("cst", "cdt"), "America/Chicago or -06:00"),
    **dict.fromkeys(("mst", "mdt"), "America/Denver or -07:00"),
    **dict.fromkeys(("pst", "pdt"), "America/Los_Angeles or -08:00"),
    **dict.fromkeys(("ist",), "Asia/Kolkata or +05:30"),
    **dict.fromkeys(("jst",), "Asia/Tokyo or +09:00"),
    **dict.fromkeys(("msk",), "Europe/Moscow or +03:00"),
    **dict.fromkeys(("aest", "aedt"), "Australia/Sydney or +10:00"),
}
_AGO = re.compile(r"(?:\s*-\s*|\s+)ago", re.IGNORECASE)


class TimeTextError(ValueError):
    """The text is no time, or no duration: the message says where it stopped being one and what would be."""


class Moment(NamedTuple):
    """A point in time, in milliseconds since the epoch (or EARLIEST, LATEST), and how it was understood."""

    ms: int
    understood: str
    until_ms: int | None = None
    """The end of what was named, where that is more than a point: a minute, a day, a week."""
    zone: tzinfo | None = None
    """The one that the text is about, if it is about a day."""


class _Calendar(NamedTuple):
    """What a text about days is read by: the clock, the zone that the text is about, and that in which times are shown."""

    now_ms: int
    zone: tzinfo
    shown_in: tzinfo

    def today(self) -> date:
        return (_EPOCH_START + timedelta(milliseconds=self.now_ms)).astimezone(self.zone).date()

    def moment(self, day: date, clock: "_Clock | None") -> Moment:
        """A local time, and the end of the day, minute or second that it names; says so where it does not exist, or exists twice."""
        local = datetime.combine(day, time() if clock is None else clock.time)
        start = _local(local, self.zone, self.shown_in)._replace(zone=self.zone)
        if clock is not None:
            return start._replace(until_ms=start.ms + clock.length_ms)
        return start._replace(until_ms=_start_ms(day + timedelta(days=1), self.zone) if day < date.max else None)


class _Clock(NamedTuple):
    time: time
    length_ms: int


class _Text:
    """A text that is read from left to right."""

    def __init__(self, text: str, examples: str) -> None:
        if len(text) > LONGEST_TEXT:
            raise TimeTextError(f"{text[:20]!r}... is too long; {examples} are examples")
        self.text = text
        self._read = text  # with blanks in place of what was taken out of the middle
        self.examples = examples
        self.position = len(text) - len(text.lstrip())
        self.end = len(text.rstrip())

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The next part if it looks so; passes over it."""
        found = self.sees(pattern)
        if found is not None:
            self.position = found.end()
        return found

    def sees(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The same without passing over it."""
        return pattern.match(self._read, self.position, self.end)

    def take_out(self, pattern: re.Pattern[str]) -> str | None:
        """The group of the first match anywhere, which is blank from now on."""
        found = pattern.search(self._read, self.position, self.end)
        if found is None:
            return None
        start, end = found.span(1)
        self._read = self._read[:start] + " " * (end - start) + self._read[end:]
        self.end = self.position + len(self._read[self.position : self.end].rstrip())
        return found[1]

    def word(self) -> str:
        """The letters that are next, in lower case, without passing over them."""
        found = self.sees(_LETTERS)
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
        if source.sees(_NUMBER) is None:
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
    if RANGE_SEPARATOR in text:
        raise TimeTextError(f"{text!r} is a range of times, and one time is expected here")
    word = source.word()
    if word in {"earliest", "beginning", "latest", "end"}:
        return _end_of_log(source, word, ends)
    named = source.take_out(_ZONE_NAME)
    calendar = _Calendar(now_ms, zone if named is None else parse_zone(named), zone)
    moment = _moment(source, calendar, named=named is not None)
    if not source.ended:
        raise _unread(source)
    if not -MAX_TIMESTAMP_MS <= moment.ms <= MAX_TIMESTAMP_MS:
        raise TimeTextError(f"{text!r} is beyond all times that a record may have")
    return moment


def is_clock(text: str) -> bool:
    """Whether a text is a time of day and nothing else: something else has to say of which day."""
    return _CLOCK.fullmatch(text.strip()) is not None


def on_day_of(text: str, other: Moment, zone: tzinfo) -> Moment:
    """A time of day (see `is_clock`) of the day of another moment, in that one's zone; `zone` is that in which it is shown."""
    calendar = _Calendar(other.ms, other.zone or zone, zone)
    return calendar.moment(calendar.today(), _clock(_Text(text, EXAMPLES)))


def _moment(source: _Text, calendar: _Calendar, *, named: bool) -> Moment:
    if source.take(re.compile("@")):
        return _epoch(source, calendar.shown_in)
    if source.word():
        return _anchored(source, calendar, named=named)
    month = source.sees(_DAY_BEFORE_MONTH)
    if source.sees(_DATE) or (month is not None and _month_number(month[1])):
        return _date_time(source, calendar, named=named)
    if source.sees(_CLOCK):
        return _on_day(source, calendar, _Calendar.today, named=named)
    if named:
        raise source.error("a date or a time of day before the zone")
    return _ago(source, calendar)


def _unread(source: _Text) -> TimeTextError:
    """The rest that is no part of a time; abbreviations of zones are told how to be one."""
    ended = source.position
    source.take(_SPACE)
    instead = _SHORT_ZONES.get(source.word())
    if instead is None:
        if not source.text[ended : source.position].strip():
            source.position = ended  # else a zone was taken out of there
        return source.error("nothing more")
    short = source.text[source.position : source.end].split()[0]
    return TimeTextError(
        f"{source.text!r}: {short} is an abbreviation that names no zone for sure; write {instead}, or another"
    )


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


def _anchored(source: _Text, calendar: _Calendar, *, named: bool) -> Moment:
    """A word, perhaps a clock, perhaps so much before or after."""
    if _month_number(source.word()):
        return _date_time(source, calendar, named=named)
    if source.take_word("now") is not None:
        moment = Moment(calendar.now_ms, format_time(calendar.now_ms, calendar.shown_in))
    else:
        moment = _day(source, calendar, named=named)
    source.take(_SPACE)
    sign = source.take(re.compile(r"[+-]"))
    if sign is None:
        return moment
    source.take(_SPACE)
    ms = moment.ms + (_duration(source) if sign[0] == "+" else -_duration(source))
    return Moment(ms, format_time(ms, calendar.shown_in))


def _day(source: _Text, calendar: _Calendar, *, named: bool) -> Moment:
    day = source.take_word("today", "yesterday", "tomorrow")
    if day is not None:
        days = timedelta(days={"today": 0, "yesterday": -1, "tomorrow": 1}[day])
        return _on_day(source, calendar, lambda one: one.today() + days, named=named)
    last = source.take_word("last") is not None
    this = not last and source.take_word("this") is not None
    source.take(_SPACE)
    if (last or this) and source.word() in _PERIODS:
        return _period(source.take_word(*_PERIODS) or "", calendar, last=last)
    number = _number_of(source.word(), _WEEKDAYS)
    if number is None or this:
        raise source.error("a weekday, week, month or year" if last else "week, month or year" if this else "a time")
    source.position += len(source.word())
    clock = _clock_if_any(source)
    calendar = _in_own_zone(source, calendar, named=named, clock=clock)
    today = calendar.today()
    back = (today.weekday() - number) % 7
    moment = calendar.moment(today - timedelta(days=back), clock)
    if moment.ms > calendar.now_ms or (last and back == 0):
        moment = calendar.moment(today - timedelta(days=back + 7), clock)
    return moment


def _period(name: str, calendar: _Calendar, *, last: bool) -> Moment:
    """The week, month or year of today, or the one before it."""
    today = calendar.today()
    if name == "week":
        start = today - timedelta(days=today.weekday())
        first, end = (start - timedelta(days=7), start) if last else (start, start + timedelta(days=7))
    elif name == "month":
        start = today.replace(day=1)
        before, after = (start - timedelta(days=1)).replace(day=1), (start + timedelta(days=31)).replace(day=1)
        first, end = (before, start) if last else (start, after)
    else:
        start = today.replace(month=1, day=1)
        year = start.year
        first, end = (start.replace(year=year - 1), start) if last else (start, start.replace(year=year + 1))
    return calendar.moment(first, None)._replace(until_ms=_start_ms(end, calendar.zone))


def _number_of(word: str, names: tuple[str, ...]) -> int | None:
    """Which of the names a word is, or begins."""
    found = [number for number, name in enumerate(names) if len(word) >= _SHORTEST_NAME and name.startswith(word)]
    return found[0] if found else None


def _month_number(word: str) -> int | None:
    """From 1."""
    number = _number_of(word.lower(), _MONTHS)
    return None if number is None else number + 1


def _on_day(source: _Text, calendar: _Calendar, day_of: Callable[[_Calendar], date], *, named: bool) -> Moment:
    """Perhaps a clock, perhaps an offset; the day is asked for once the zone is known."""
    clock = _clock_if_any(source)
    calendar = _in_own_zone(source, calendar, named=named, clock=clock)
    return calendar.moment(day_of(calendar), clock)


def _in_own_zone(source: _Text, calendar: _Calendar, *, named: bool, clock: _Clock | None) -> _Calendar:
    """The calendar of the offset that stands behind a clock, if no zone was named."""
    offset = None if named or clock is None else _offset(source)
    return calendar if offset is None else calendar._replace(zone=offset)


def _clock_if_any(source: _Text) -> _Clock | None:
    before = source.position
    source.take(_SPACE)
    if source.sees(_CLOCK) is None:
        source.position = before
        return None
    return _clock(source)


def _clock(source: _Text) -> _Clock:
    began = source.position
    found = source.take(_CLOCK)
    if found is None:
        raise source.error("a time of day (HH:MM)")
    hour, minute, second, fraction = found.groups()
    try:
        clock = time(int(hour), int(minute), int(second or 0), int((fraction or "0").ljust(9, "0")[:6]))
    except ValueError as error:
        source.position = began
        raise source.error("a time of day from 00:00 to 23:59:59") from error
    return _Clock(clock, 60_000 if second is None else 1000 if fraction is None else 1)


def _date_time(source: _Text, calendar: _Calendar, *, named: bool) -> Moment:
    began = source.position
    written = source.take(_DATE)
    day, month, year = (int(written[3]), int(written[2]), int(written[1])) if written else _named_date(source)
    separated = source.take(_SEPARATOR) if written else source.take(_CLOCK_AHEAD)
    clock = _clock(source) if separated else None
    offset = None if named else _offset(source)
    calendar = calendar if offset is None else calendar._replace(zone=offset)
    try:
        return _dated(calendar, day, month, year, clock)
    except ValueError as error:
        source.position = began
        raise source.error("a day of the calendar") from error
    except OverflowError as error:
        raise TimeTextError(f"{source.text!r} is beyond the calendar") from error


def _named_date(source: _Text) -> tuple[int, int, int | None]:
    """Day, month and perhaps the year, where the month goes by its name."""
    first = source.take(_DAY_NUMBER)
    source.take(_SPACE)
    month = _month_number(source.word())
    assert month is not None, "looked at before"
    source.position += len(source.word())
    if first is None:
        source.take(_SPACE)
        first = source.take(_DAY_NUMBER)
        if first is None:
            raise source.error("a day of the month")
    year = source.take(_YEAR)
    return int(first[0]), month, None if year is None else int(year[1])


def _dated(calendar: _Calendar, day: int, month: int, year: int | None, clock: _Clock | None) -> Moment:
    """A moment of a date; without a year the latest that is not after now. ValueError if no year has the day."""
    if year is not None:
        return calendar.moment(date(year, month, day), clock)
    this_year = calendar.today().year
    date(_LEAP_YEAR, month, day)  # so that 30 Feb ends here
    for candidate in range(this_year, this_year - _YEARS_TO_29_FEB, -1):
        try:
            moment = calendar.moment(date(candidate, month, day), clock)
        except ValueError:
            continue
        if moment.ms <= calendar.now_ms:
            return moment
    raise ValueError("no year has this day")


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


def _ago(source: _Text, calendar: _Calendar) -> Moment:
    if re.fullmatch(r"[0-9]{6,}", source.text[source.position : source.end]):
        raise TimeTextError(_bare_number(source, calendar.shown_in))
    source.take(re.compile("-"))
    if source.sees(_NUMBER) is None:
        raise source.error("a time")
    ms = calendar.now_ms - _duration(source)
    source.take(_AGO)
    return Moment(ms, format_time(ms, calendar.shown_in))


def _bare_number(source: _Text, zone: tzinfo) -> str:
    """The readings of a number without `@`."""
    number = int(source.text)
    units = dict.fromkeys((unit_by_magnitude(number), "ms"))
    readings = [f"@{number}{unit} is {format_time(to_ms(number, unit), zone)}" for unit in units]
    return f"{source.text!r}: a bare number may be anything; since 1970, {' and '.join(readings)}"


# -- zones and the calendar


def parse_zone(text: str) -> tzinfo:
    """A zone by its IANA name, an offset (+02:00), `utc` or `local`; raises TimeTextError."""
    if text.lower() in {"utc", "gmt", "z"}:
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
        raise TimeTextError(f"{text!r} is no time zone known here; {_zones_like(text)}") from error


def _zones_like(text: str) -> str:
    from difflib import get_close_matches
    from zoneinfo import available_timezones

    close = get_close_matches(text, sorted(available_timezones()), n=1, cutoff=0.8)
    return f"do you mean {close[0]}?" if close else "Europe/Berlin, UTC, +02:00 are examples"


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
_LEAP_YEAR = 2000
_YEARS_TO_29_FEB = 9
"""1896 and 1904 are leap years, 1900 is none."""


def _start_ms(day: date, zone: tzinfo) -> int:
    return (datetime.combine(day, time(), zone) - _EPOCH_START) // timedelta(milliseconds=1)


def _local(naive: datetime, zone: tzinfo, show_in: tzinfo) -> Moment:
    """A local time as a moment; says so if that time does not exist in the zone, or exists twice."""
    first, second = naive.replace(tzinfo=zone, fold=0), naive.replace(tzinfo=zone, fold=1)
    ms = (first - _EPOCH_START) // timedelta(milliseconds=1)
    shown = format_time(ms, show_in)
    before, after = first.utcoffset(), second.utcoffset()
    if before == after or before is None or after is None:
        return Moment(ms, shown)
    clock = naive.isoformat(sep=" ")
    if before < after:
        return Moment(ms, f"{shown}: the clocks go forward over {clock}, which does not exist")
    again = format_time((second - _EPOCH_START) // timedelta(milliseconds=1), show_in)
    return Moment(ms, f"{shown}: {clock} comes twice, {again} would be the second")
