"""Times and durations as people read them, for everything that is said to people: log lines, refusals, reports."""

from datetime import UTC, datetime, timedelta, tzinfo

UNITS_MS: dict[str, int] = {"w": 604_800_000, "d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
"""The units of durations, the largest first; a day is 24 hours."""

_EPOCH_START = datetime(1970, 1, 1, tzinfo=UTC)


def format_time(timestamp_ms: int, zone: tzinfo = UTC) -> str:
    """ISO 8601 with milliseconds and offset; `@ms` for what lies beyond the calendar."""
    try:
        when = _EPOCH_START + timedelta(milliseconds=timestamp_ms)
        return when.astimezone(zone).isoformat(timespec="milliseconds")
    except OverflowError:
        return f"@{timestamp_ms}"


def exact_time(timestamp_ms: int, zone: tzinfo = UTC) -> str:
    """The same without digits that say nothing, as the command line reads it again: `2023-11-14T22:13:20Z`; `@...ms` beyond the calendar."""
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


def time_and_number(timestamp_ms: int) -> str:
    """A time as a setting or a record has it, and as people read it: `1700000000000 (2023-11-14T22:13:20.000+00:00)`."""
    return f"{timestamp_ms} ({format_time(timestamp_ms)})"
