"""The grammar of durations, the same everywhere; pure.

duration   := (number unit)+ | iso         the largest unit first, each at most once; a day is 24 hours
unit       := w | d | h | m | s | ms       or the word: weeks, day, hrs, minutes, sec
iso        := "P" [nW] [nD] ["T" [nH] [nM] [nS]]           as ISO 8601 has it

The last number may have a fraction, as long as the whole is a number of milliseconds.
"""

import re
from collections.abc import Callable
from fractions import Fraction

from horolog.base.readable import UNITS_MS
from horolog.client.values.time_text import SPACE, TimeText, TimeTextError

MAX_TIMESTAMP_MS = 2**63 - 1
DURATION_EXAMPLES = "90s, 5m, 1h30m, 250ms, 2w, PT5M"

_UNIT_NAMES = {
    **dict.fromkeys(("w", "week", "weeks"), "w"),
    **dict.fromkeys(("d", "day", "days"), "d"),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), "h"),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), "m"),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), "ms"),
}
UNIT_NAME = "(?:" + "|".join(sorted(_UNIT_NAMES, key=len, reverse=True)) + ")(?![A-Za-z])"
"""A unit, as a regular expression."""
_UNITS_WITHOUT_A_LENGTH = ("month", "months", "mo", "y", "year", "years")
_A_LENGTH = "a unit of fixed length (w, d, h, m, s, ms)"
NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
ISO_DURATION = re.compile(r"[Pp](?=[0-9]|[Tt][0-9])")
_ISO_TIME = re.compile(r"[Tt](?=[0-9])")
_LETTER = re.compile(r"[A-Za-z]")
_DATE_UNITS = {"w": "w", "d": "d"}
_TIME_UNITS = {"h": "h", "m": "m", "s": "s"}


def parse_duration(text: str) -> int:
    """A duration in milliseconds; raises TimeTextError."""
    source = TimeText(text, DURATION_EXAMPLES)
    duration_ms = take_duration(source)
    if not source.ended:
        raise source.error("nothing more")
    return duration_ms


def take_duration(source: TimeText) -> int:
    """The next duration."""
    if source.take(ISO_DURATION) is None:
        return _whole_ms(source, _sum(source, _unit, UNITS_MS["w"] + 1)[0])
    total, smallest = Fraction(0), UNITS_MS["w"] + 1
    if source.sees(_ISO_TIME) is None:
        total, smallest = _sum(source, lambda text: _iso_unit(text, _DATE_UNITS), smallest)
    if source.take(_ISO_TIME) is not None:
        total += _sum(source, lambda text: _iso_unit(text, _TIME_UNITS), smallest)[0]
    return _whole_ms(source, total)


def _sum(source: TimeText, unit_of: Callable[[TimeText], str], below: int) -> tuple[Fraction, int]:
    """(number unit)+, the largest unit first, and the smallest of them; each is smaller than `below`."""
    total = Fraction(0)
    smallest = below
    while True:
        began = source.position
        number = source.take(NUMBER)
        if number is None:
            raise source.error("a number")
        source.take(SPACE)
        unit_ms = UNITS_MS[unit_of(source)]
        if unit_ms >= smallest:
            source.position = began
            raise source.error("a smaller unit than the one before")
        smallest = unit_ms
        total += Fraction(number[0]) * unit_ms
        ended = source.position
        source.take(SPACE)
        if source.sees(NUMBER) is None:
            source.position = ended
            return total, smallest


def _whole_ms(source: TimeText, total: Fraction) -> int:
    if total.denominator != 1:
        raise TimeTextError(f"{source.text!r} is not a whole number of milliseconds, the smallest unit")
    if total > MAX_TIMESTAMP_MS:
        raise TimeTextError(f"{source.text!r} is too long: the maximum is {MAX_TIMESTAMP_MS} ms")
    return int(total)


def _unit(source: TimeText) -> str:
    word = source.word()
    if word in _UNITS_WITHOUT_A_LENGTH:
        raise source.error(_A_LENGTH)
    unit = _UNIT_NAMES.get(word)
    if unit is None:
        raise source.error("a unit (w, d, h, m, s, ms)")
    source.position += len(word)
    return unit


def _iso_unit(source: TimeText, units: dict[str, str]) -> str:
    letter = source.sees(_LETTER)
    unit = units.get(letter[0].lower()) if letter is not None else None
    if unit is None:
        is_calendar = letter is not None and units is _DATE_UNITS and letter[0].lower() in "my"
        raise source.error(_A_LENGTH if is_calendar else f"a unit ({', '.join(units).upper()})")
    source.position += 1
    return unit
