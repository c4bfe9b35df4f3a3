"""Times, durations and counts as people read them, for log lines, refusals and reports."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import pairwise

UNITS_MS: dict[str, int] = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
"""The units of durations, the largest first; a day is 24 hours."""

YEAR_MS = 31_556_952_000
"""On average."""
YEARS_FROM = 10
NO_LIMIT_MS = 2**63 - 1
_NAMES_MS = {"day": 86_400_000, "hour": 3_600_000, "minute": 60_000, "second": 1000, "millisecond": 1}

_EPOCH_START = datetime(1970, 1, 1, tzinfo=UTC)


def counted(count: int, noun: str) -> str:
    """A number with its noun: `1 partition`, `1,024 partitions`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers, with runs of three or more as their ends: 0-3, 5."""
    if not numbers:
        return ""
    starts = [numbers[0], *(after for before, after in pairwise(numbers) if after != before + 1)]
    ends = [*(before for before, after in pairwise(numbers) if after != before + 1), numbers[-1]]
    return ", ".join(_run(start, end) for start, end in zip(starts, ends, strict=True))


def _run(start: int, end: int) -> str:
    if end - start < 2:
        return f"{start}" if start == end else f"{start}, {end}"
    return f"{start}-{end}"


def format_time(timestamp_ms: int, zone: tzinfo = UTC) -> str:
    """ISO 8601 with milliseconds and offset; `@ms` for what lies beyond the calendar."""
    try:
        when = _EPOCH_START + timedelta(milliseconds=timestamp_ms)
        return when.astimezone(zone).isoformat(timespec="milliseconds")
    except OverflowError:
        return f"@{timestamp_ms}"


def exact_time(timestamp_ms: int, zone: tzinfo = UTC) -> str:
    """The same without needless digits, as the command line reads it again: `2023-11-14T22:13:20Z`; `@...ms` beyond the calendar."""
    text = format_time(timestamp_ms, zone)
    if text.startswith("@"):
        return f"{text}ms"
    return text.replace(".000", "", 1).removesuffix("+00:00") + ("Z" if text.endswith("+00:00") else "")


def format_duration(duration_ms: int) -> str:
    """A duration of its two largest units, as the command line would read it again; smaller units are left out."""
    if duration_ms < 0:
        return "-" + format_duration(-duration_ms)
    parts: list[str] = []
    for unit, unit_ms in UNITS_MS.items():
        count, duration_ms = divmod(duration_ms, unit_ms)
        if count:
            parts.append(f"{count}{unit}")
        elif parts:
            break
        if len(parts) == 2:
            break
    return "".join(parts) or "0s"


def format_distance(distance_ms: int) -> str:
    """How far off a time is, for people only: ten years and more are shown in years, since a wrong unit makes tens of thousands."""
    years = round(abs(distance_ms) / YEAR_MS)
    if years < YEARS_FROM:
        return format_duration(distance_ms)
    return f"{'-' if distance_ms < 0 else ''}{years:,} years"


def spoken_time(timestamp_ms: int, zone: tzinfo = UTC) -> str:
    """A time for people only: like `format_time`, and beyond the calendar the year."""
    text = format_time(timestamp_ms, zone)
    return f"about the year {round(1970 + timestamp_ms / YEAR_MS):,}" if text.startswith("@") else text


def setting_text(key: str, value: str) -> str:
    """The value of a setting for people: milliseconds as a duration that says exactly the same, `14 days`; others unchanged."""
    if not key.endswith(".ms") or not (value.isascii() and value.isdigit()):
        return value
    left = int(value)
    if left >= NO_LIMIT_MS:
        return "no limit"
    if left >= 1000 * YEAR_MS:
        return format_distance(left)
    parts = []
    for name, unit_ms in _NAMES_MS.items():
        count, left = divmod(left, unit_ms)
        if count:
            parts.append(f"{count} {name}{'' if count == 1 else 's'}")
    return " ".join(parts) or "0 milliseconds"


def time_and_number(timestamp_ms: int) -> str:
    """A time as a setting or a record has it, and as people read it: `1700000000000 (2023-11-14T22:13:20.000+00:00)`."""
    return f"{timestamp_ms} ({format_time(timestamp_ms)})"
