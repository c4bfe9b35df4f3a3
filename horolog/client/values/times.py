"""The grammar of times, the same everywhere; pure: the clock and the zone are passed in.

    time       := (epoch | instant | date-time | ago) | "earliest" | "latest"
    epoch      := "@" digits [unit]            1700000000 seconds, ...000 milliseconds, and so on: by magnitude, or as the unit says
    instant    := ("now" | day [clock] | period) [zone] [("+" | "-") duration]
    day        := "today" | "yesterday" | "tomorrow" | ["last"] weekday
    period     := ("this" | "last") ("minute" | "hour" | "day" | "week" | "month" | "year")     its beginning; a week begins on Monday
    date-time  := [weekday] date [clock] [zone] | clock [zone]                  without a date: of today
    date       := YYYY-MM-DD | YYYY/MM/DD | YYYYMMDD | D month [YYYY] | month D [YYYY] | D/month/YYYY | D-month-YYYY
    clock      := ["T" | ":" | ","] ["at"] (HH:MM[:SS[.fraction]] [half] | H half | "noon" | "midnight")
                  behind YYYYMMDD: "T" HHMM[SS[.fraction]]
    half       := "am" | "pm"
    zone       := see `zones`                  an offset may have the zone's name or abbreviation behind it; the year may stand there, too
    ago        := duration | "-" duration | duration ("-" | " ") "ago"          so long before now; see `durations`

Months and weekdays are names, of which three letters are enough. A weekday is the latest such day, or moment of it, not
after now; with "last" it is before today. A date without a year is the latest one not after now, and on that weekday if
one is given. A day without a clock is its start, and so is midnight. Local times that a zone skips (clocks go forward)
are read with the offset from before, so 02:30 becomes 03:30; of those that occur twice the first is taken. Both are noted in
`Moment.understood`. Abbreviations such as CET are refused without an offset: several zones use them, or one for half the year.
`Moment.until_ms` is the end of what the text names: of the minute 10:05, of the second 10:05:30, of the day, of last week.

With these forms any time can be pasted as `date`, Git, Go, Java, JavaScript, mail, HTTP and the logs of web servers write it.
Two times make a range (`time_ranges`).
"""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import NamedTuple

from horolog.base.readable import UNITS_MS, format_duration, format_time
from horolog.client.values.durations import ISO_DURATION, MAX_TIMESTAMP_MS, NUMBER, parse_duration, take_duration
from horolog.client.values.time_text import SPACE, TimeText, TimeTextError
from horolog.client.values.zones import ZONE_NAME, local_zone, parse_zone, take_offset, zone_instead_of
from horolog.protocol.epoch_units import UNIT_NAMES, to_ms, unit_by_magnitude

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
"""Between two times: see `time_ranges`. No time contains it."""
EXAMPLES = (
    "3d, 2h30m, 30m-ago, 2026-11-17, 2026-11-17T10:00+02:00, 17 Nov 10:05, today, monday 10:05 Europe/Berlin, last week,"
    " now-1h, @1700000000000"
)

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_SHORT_PERIODS_MS = {"minute": UNITS_MS["m"], "hour": UNITS_MS["h"]}
_PERIODS = ("day", "week", "month", "year", *_SHORT_PERIODS_MS)
_SHORTEST_NAME = 3
"""A weekday or a month may be abbreviated to this many letters."""

_EPOCH = re.compile(r"-?[0-9]+")
_DATE = re.compile(r"([0-9]{4})([-/])([0-9]{2})\2([0-9]{2})(?![0-9])")
_BASIC_DATE = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})[Tt](?=[0-9]{4})")
_JOINED_DATE = re.compile(r"([0-9]{1,2})([-/])([A-Za-z]{3,})\2([0-9]{4})(?![0-9])")
_DAY_BEFORE_MONTH = re.compile(r"[0-9]{1,2}(?:st|nd|rd|th)?\s*([A-Za-z]+)")
_DAY_NUMBER = re.compile(r"([0-9]{1,2})(?:st|nd|rd|th)?(?![0-9:.A-Za-z])|([0-9]{1,2})(?=[A-Za-z])")
_YEAR_OF_DAY = re.compile(r"\s*,?\s*([0-9]{4})(?![0-9:])")
_YEAR = re.compile(r"\s+([0-9]{4})(?![0-9:])")
_NUMBERS_OF_A_DATE = re.compile(r"[0-9]{1,2}([/.])[0-9]{1,2}\1[0-9]{2,4}(?![0-9])")
_BEFORE_DATE = re.compile(r"\s*,?\s*(?=[0-9]+[^0-9:.]|[A-Za-z])")

_CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]{1,9}))?)?")
_BASIC_CLOCK = re.compile(r"([0-9]{2})([0-9]{2})(?:([0-9]{2})(?:[.,]([0-9]{1,9}))?)?(?![0-9:])")
_HOUR_ALONE = re.compile(r"([0-9]{1,2})(?=\s*[ap]\.?m\b)", re.IGNORECASE)
_HALF = re.compile(r"\s*([ap])(?:m(?![A-Za-z])|\.m\.?(?![A-Za-z]))", re.IGNORECASE)
_HALF_DAYS = {"noon": 12, "midnight": 0}
_CLOCK_AHEAD = r"(?:at\s+)?(?=[0-9]{1,2}(?::|\s*[ap]\.?m\b)|noon|midnight)"
_BEFORE_CLOCK = re.compile(_CLOCK_AHEAD, re.IGNORECASE)
_BETWEEN_DAY_AND_CLOCK = re.compile(r"[Tt](?=[0-9]|$)|:(?=[0-9])|\s*,?\s*" + _CLOCK_AHEAD, re.IGNORECASE)
_NAME_OF_OFFSET = re.compile(r"\s*(?:\([^)]*\)|\[[^\]]*\])|\s+[A-Z]{2,5}(?![A-Za-z0-9/])")
"""What programs write after an offset, and adds nothing to it."""
_SINCE_START_OF_GO = re.compile(r"\s+m=[+-][0-9.]+")
_AGO = re.compile(r"(?:\s*-\s*|\s+)ago", re.IGNORECASE)


class Moment(NamedTuple):
    """A point in time, in milliseconds since the epoch (or EARLIEST, LATEST), and how it was understood."""

    ms: int
    understood: str
    until_ms: int | None = None
    """The end of the named time, if that is more than a point: a minute, a day, a week."""
    zone: tzinfo | None = None
    """The one that the text is about, if it is about a day."""


class _Calendar(NamedTuple):
    """The context for reading days: the clock, the zone of the text, and the zone in which times are shown."""

    now_ms: int
    zone: tzinfo
    shown_in: tzinfo
    is_zone_named: bool

    def today(self) -> date:
        return (_EPOCH_START + timedelta(milliseconds=self.now_ms)).astimezone(self.zone).date()

    def moment(self, day: date, clock: "_Clock | None") -> Moment:
        """A local time, and the end of the day, minute or second that it names; notes if it does not exist, or exists twice."""
        local = datetime.combine(day, time() if clock is None else clock.time)
        start = _local(local, self.zone, self.shown_in)._replace(zone=self.zone)
        if clock is not None:
            return start._replace(until_ms=start.ms + clock.length_ms)
        return start._replace(until_ms=_start_ms(day + timedelta(days=1), self.zone) if day < date.max else None)


class _Clock(NamedTuple):
    time: time
    length_ms: int


class _Date(NamedTuple):
    """A date as written; the year may be missing, or stand after the clock."""

    day: int
    month: int
    year: int | None
    weekday: int | None = None
    is_basic: bool = False


def parse_time(text: str, *, now_ms: int, zone: tzinfo, ends: bool = False) -> Moment:
    """The moment that a text means; with `ends`, `earliest` and `latest` are moments too. Raises TimeTextError."""
    source = TimeText(text, EXAMPLES)
    if RANGE_SEPARATOR in text:
        raise TimeTextError(f"{text!r} is a range of times; expected a single time")
    word = source.word()
    if word in {"earliest", "beginning", "latest", "end"}:
        return _end_of_log(source, word, ends)
    named = source.take_out(ZONE_NAME)
    moment = _moment(source, _Calendar(now_ms, zone if named is None else parse_zone(named), zone, named is not None))
    if not source.ended:
        raise _unread(source)
    if not -MAX_TIMESTAMP_MS <= moment.ms <= MAX_TIMESTAMP_MS:
        raise TimeTextError(f"{text!r} is outside the times that a record can have")
    return moment


def is_clock(text: str) -> bool:
    """Whether a text is only a time of day: the day has to come from elsewhere."""
    try:
        source = TimeText(text, EXAMPLES)
        return _clock_if_any(source, _BEFORE_CLOCK) is not None and source.ended
    except TimeTextError:
        return False


def is_midnight(text: str) -> bool:
    """Whether a time of day is midnight as a word, where one day ends and the next begins."""
    return text.strip().lower().endswith("midnight")


def on_day_of(text: str, other: Moment, zone: tzinfo, *, days: int = 0) -> Moment:
    """A time of day (see `is_clock`) on the day of another moment, or this many days later, in that moment's zone; shown in `zone`."""
    calendar = _Calendar(other.ms, other.zone or zone, zone, is_zone_named=True)
    return calendar.moment(
        calendar.today() + timedelta(days=days), _clock_if_any(TimeText(text, EXAMPLES), _BEFORE_CLOCK)
    )


def _moment(source: TimeText, calendar: _Calendar) -> Moment:
    if source.take(re.compile("@")):
        return _epoch(source, calendar.shown_in)
    if source.sees(ISO_DURATION):
        return _ago(source, calendar)
    began = source.position
    written = _date_if_any(source)
    if written is not None:
        return _date_time(source, calendar, written, began)
    clock = _clock_if_any(source, _BEFORE_CLOCK)
    if clock is not None:
        return _at_clock(source, calendar, clock, _Calendar.today)
    if source.word():
        return _anchored(source, calendar)
    if source.sees(_NUMBERS_OF_A_DATE):
        raise TimeTextError(f"{source.text!r}: which number is the month? Write the date as 2026-11-24 or 24 Nov 2026")
    if calendar.is_zone_named:
        raise source.error("a date or a time of day before the zone")
    return _ago(source, calendar)


def _unread(source: TimeText) -> TimeTextError:
    """The rest that is not part of a time, and what to write in place of a zone's abbreviation."""
    ended = source.position
    source.take(SPACE)
    instead = zone_instead_of(source.word())
    if instead is None:
        if not source.text[ended : source.position].strip():
            source.position = ended  # else a zone was taken out there
        return source.error("nothing more")
    short = source.text[source.position : source.end].split()[0]
    return TimeTextError(
        f"{source.text!r}: {short} is an ambiguous abbreviation of a time zone; write {instead}, or another"
    )


def _end_of_log(source: TimeText, word: str, ends: bool) -> Moment:
    source.position += len(word)
    if not ends or not source.ended:
        source.position -= 0 if ends else len(word)
        raise source.error("nothing more" if ends else "a time")
    if word in {"earliest", "beginning"}:
        return Moment(EARLIEST, "the start of each partition")
    return Moment(LATEST, "the end of each partition")


def _epoch(source: TimeText, zone: tzinfo) -> Moment:
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


# -- words


def _anchored(source: TimeText, calendar: _Calendar) -> Moment:
    """A word, perhaps a clock, perhaps a duration before or after."""
    if source.take_word("now") is not None:
        moment = Moment(calendar.now_ms, format_time(calendar.now_ms, calendar.shown_in))
    else:
        moment = _day(source, calendar)
    source.take(SPACE)
    sign = source.take(re.compile(r"[+-]"))
    if sign is None:
        return moment
    source.take(SPACE)
    ms = moment.ms + (take_duration(source) if sign[0] == "+" else -take_duration(source))
    return Moment(ms, format_time(ms, calendar.shown_in))


def _day(source: TimeText, calendar: _Calendar) -> Moment:
    day = source.take_word("today", "yesterday", "tomorrow")
    if day is not None:
        days = timedelta(days={"today": 0, "yesterday": -1, "tomorrow": 1}[day])
        return _at_clock(source, calendar, _clock_if_any(source), lambda one: one.today() + days)
    last = source.take_word("last") is not None
    this = not last and source.take_word("this") is not None
    source.take(SPACE)
    if (last or this) and source.word() in _PERIODS:
        return _period(source.take_word(*_PERIODS) or "", calendar, last=last)
    number = _number_of(source.word(), _WEEKDAYS)
    if number is None or this:
        periods = f"{', '.join(_PERIODS[:-1])} or {_PERIODS[-1]}"
        raise source.error(f"a weekday, {periods}" if last else periods if this else "a time")
    source.position += len(source.word())
    return _on_weekday(source, calendar, number, last=last)


def _on_weekday(source: TimeText, calendar: _Calendar, number: int, *, last: bool) -> Moment:
    """The latest such day, perhaps with a clock; or the date after the weekday."""
    before = source.position
    if not last and source.take(_BEFORE_DATE):
        began = source.position
        written = _date_if_any(source)
        if written is not None:
            return _date_time(source, calendar, written._replace(weekday=number), began)
    source.position = before
    clock = _clock_if_any(source)
    calendar = _in_own_zone(source, calendar, clock)
    today = calendar.today()
    back = (today.weekday() - number) % 7
    moment = calendar.moment(today - timedelta(days=back), clock)
    if moment.ms > calendar.now_ms or (last and back == 0):
        moment = calendar.moment(today - timedelta(days=back + 7), clock)
    return moment


def _period(name: str, calendar: _Calendar, *, last: bool) -> Moment:
    """The minute, hour, day, week, month or year of now, or the one before it."""
    length_ms = _SHORT_PERIODS_MS.get(name)
    if length_ms is not None:
        start_ms = calendar.now_ms - _ms_of_day(calendar) % length_ms - (length_ms if last else 0)
        return Moment(start_ms, format_time(start_ms, calendar.shown_in), start_ms + length_ms, calendar.zone)
    today = calendar.today()
    if name == "day":
        first, end = (today - timedelta(days=1), today) if last else (today, today + timedelta(days=1))
    elif name == "week":
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


def _ms_of_day(calendar: _Calendar) -> int:
    """How much of the day has passed on the zone's clocks."""
    now = (_EPOCH_START + timedelta(milliseconds=calendar.now_ms)).astimezone(calendar.zone)
    wall = now.replace(tzinfo=None)
    return (wall - datetime.combine(wall, time())) // timedelta(milliseconds=1)


def _number_of(word: str, names: tuple[str, ...]) -> int | None:
    """The number of the name that a word is or abbreviates."""
    found = [number for number, name in enumerate(names) if len(word) >= _SHORTEST_NAME and name.startswith(word)]
    return found[0] if found else None


def _month_number(word: str) -> int | None:
    """The number of a month, from 1."""
    number = _number_of(word.lower(), _MONTHS)
    return None if number is None else number + 1


def _at_clock(
    source: TimeText, calendar: _Calendar, clock: _Clock | None, day_of: Callable[[_Calendar], date]
) -> Moment:
    """A clock, perhaps with an offset; the day is computed once the zone is known."""
    calendar = _in_own_zone(source, calendar, clock)
    return calendar.moment(day_of(calendar), clock)


def _in_own_zone(source: TimeText, calendar: _Calendar, clock: _Clock | None) -> _Calendar:
    """The calendar of the offset after a clock, if no zone was named."""
    offset = None if calendar.is_zone_named or clock is None else _named_offset(source)
    return calendar if offset is None else calendar._replace(zone=offset)


# -- clocks


def _clock_if_any(source: TimeText, before: re.Pattern[str] = _BETWEEN_DAY_AND_CLOCK) -> _Clock | None:
    """The next time of day, with what precedes it."""
    return None if source.take(before) is None else _clock(source, _CLOCK)


def _clock(source: TimeText, form: re.Pattern[str]) -> _Clock:
    began = source.position
    word = source.take_word(*_HALF_DAYS)
    if word is not None:
        return _Clock(time(_HALF_DAYS[word]), 60_000)
    hour, minute, second, fraction = _numbers_of_clock(source, form)
    half = source.take(_HALF)
    try:
        if half is not None:
            hour = _hour_of_day(hour, half[1].lower())
        clock = time(hour, int(minute), int(second or 0), int((fraction or "0").ljust(9, "0")[:6]))
    except ValueError as error:
        source.position = began
        expected = "a time of day from 00:00 to 23:59:59" if half is None else "an hour from 1 to 12 before am or pm"
        raise source.error(expected) from error
    return _Clock(clock, 60_000 if second is None else 1000 if fraction is None else 1)


def _numbers_of_clock(source: TimeText, form: re.Pattern[str]) -> tuple[int, str, str | None, str | None]:
    """Hour, minute, second and fraction."""
    found = source.take(form)
    if found is not None:
        return int(found[1]), found[2], found[3], found[4]
    found = source.take(_HOUR_ALONE)
    if found is None:
        raise source.error("a time of day (HH:MM)")
    return int(found[1]), "0", None, None


def _hour_of_day(hour: int, half: str) -> int:
    """The hour of the day of a 12-hour clock. ValueError if there is none."""
    if not 1 <= hour <= 12:
        raise ValueError(hour)
    return hour % 12 + (12 if half == "p" else 0)


# -- dates


def _date_if_any(source: TimeText) -> _Date | None:
    """The next date."""
    for form in (_DATE, _BASIC_DATE):
        found = source.take(form)
        if found is not None:
            year, month, day = (int(found[1]), int(found[form.groups - 1]), int(found[form.groups]))
            return _Date(day, month, year, is_basic=form is _BASIC_DATE)
    joined = source.sees(_JOINED_DATE)
    number = None if joined is None else _month_number(joined[3])
    if joined is not None and number is not None:
        source.position = joined.end()
        return _Date(int(joined[1]), number, int(joined[4]))
    month_behind = source.sees(_DAY_BEFORE_MONTH)
    if _month_number(source.word() if month_behind is None else month_behind[1]):
        return _named_date(source)
    return None


def _named_date(source: TimeText) -> _Date:
    """Day, month and perhaps the year, with the month as a name."""
    first = source.take(_DAY_NUMBER)
    source.take(SPACE)
    month = _month_number(source.word())
    assert month is not None, "looked at before"
    source.position += len(source.word())
    if first is None:
        source.take(SPACE)
        first = source.take(_DAY_NUMBER)
        if first is None:
            raise source.error("a day of the month")
    year = source.take(_YEAR_OF_DAY)
    return _Date(int(first[1] or first[2]), month, None if year is None else int(year[1]))


def _date_time(source: TimeText, calendar: _Calendar, written: _Date, began: int) -> Moment:
    """A date that begins there, perhaps with a clock, an offset and the year."""
    clock = _clock(source, _BASIC_CLOCK) if written.is_basic else _clock_if_any(source)
    offset, year = _behind_clock(source, clock, written.year)
    written = written._replace(year=year)
    by = calendar if offset is None else calendar._replace(zone=offset)
    try:
        moment = _dated(by, written, clock)
    except _OtherWeekdayError as error:
        raise TimeTextError(f"{source.text!r}: {error}") from error
    except ValueError as error:
        source.position = began
        raise source.error("a day of the calendar") from error
    except OverflowError as error:
        raise TimeTextError(f"{source.text!r} is beyond the calendar") from error
    if offset is not None and calendar.is_zone_named:
        _check_agree(source, moment, offset, calendar.zone)
    return moment


def _behind_clock(source: TimeText, clock: _Clock | None, year: int | None) -> tuple[tzinfo | None, int | None]:
    """The offset and the year that may follow a clock, in either order."""
    offset = None
    while clock is not None:
        found = source.take(_YEAR) if year is None else None
        if found is not None:
            year = int(found[1])
        elif offset is None and (offset := _named_offset(source)) is not None:
            source.take(_SINCE_START_OF_GO)
        else:
            break
    return offset, year


def _named_offset(source: TimeText) -> tzinfo | None:
    """An offset, perhaps followed by the name of its zone."""
    began = source.position
    offset = take_offset(source)
    if offset is not None and source.position - began > 1:  # a name after Z does not belong to it
        source.take(_NAME_OF_OFFSET)
    return offset


def _check_agree(source: TimeText, moment: Moment, offset: tzinfo, zone: tzinfo) -> None:
    """Refuse an offset that the zone named with it does not have at that time."""
    at = _EPOCH_START + timedelta(milliseconds=moment.ms)
    if at.astimezone(zone).utcoffset() != at.astimezone(offset).utcoffset():
        raise TimeTextError(
            f"{source.text!r}: {offset} is not the offset of {zone} at that time; leave one of them out"
        )


class _OtherWeekdayError(ValueError):
    """The date is not on the weekday given before it."""


def _dated(calendar: _Calendar, written: _Date, clock: _Clock | None) -> Moment:
    """A moment of a date; without a year the latest not after now. ValueError if no year has the day."""
    if written.year is not None:
        day = date(written.year, written.month, written.day)
        if written.weekday not in {None, day.weekday()}:
            raise _OtherWeekdayError(f"{day} is a {_WEEKDAYS[day.weekday()].capitalize()}")
        return calendar.moment(day, clock)
    this_year = calendar.today().year
    date(_LEAP_YEAR, written.month, written.day)  # 30 Feb fails here
    for candidate in range(this_year, max(0, this_year - _YEARS_TO_ANY_DAY), -1):
        try:
            day = date(candidate, written.month, written.day)
        except ValueError:
            continue
        moment = calendar.moment(day, clock)
        if moment.ms <= calendar.now_ms and written.weekday in {None, day.weekday()}:
            return moment
    raise ValueError("no year has this day")


def _ago(source: TimeText, calendar: _Calendar) -> Moment:
    if re.fullmatch(r"[0-9]{6,}", source.text[source.position : source.end]):
        raise TimeTextError(_bare_number(source, calendar.shown_in))
    source.take(re.compile("-"))
    if source.sees(NUMBER) is None and source.sees(ISO_DURATION) is None:
        raise source.error("a time")
    ms = calendar.now_ms - take_duration(source)
    source.take(_AGO)
    return Moment(ms, format_time(ms, calendar.shown_in))


def _bare_number(source: TimeText, zone: tzinfo) -> str:
    """The possible readings of a number without `@`."""
    number = int(source.text[source.position : source.end])
    units = dict.fromkeys((unit_by_magnitude(number), "ms"))
    readings = [f"@{number}{unit} is {format_time(to_ms(number, unit), zone)}" for unit in units]
    return f"{source.text!r}: a bare number may be anything; since 1970, {' and '.join(readings)}"


# -- the calendar


_EPOCH_START = datetime(1970, 1, 1, tzinfo=UTC)
_LEAP_YEAR = 2000
_YEARS_TO_ANY_DAY = 41
"""Within this many years each date falls on each weekday, even 29 February around 1900."""


def _start_ms(day: date, zone: tzinfo) -> int:
    return (datetime.combine(day, time(), zone) - _EPOCH_START) // timedelta(milliseconds=1)


def _local(naive: datetime, zone: tzinfo, show_in: tzinfo) -> Moment:
    """A local time as a moment; notes if it does not exist in the zone, or exists twice."""
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
    return Moment(ms, f"{shown}: {clock} occurs twice, {again} would be the second")
