"""Converts human-readable setting values: `retention.ms=7d` and `retention.bytes=10GiB` become a broker's numbers."""

from horolog.commands.errors import UsageError
from horolog.commands.online.actions import assignments

_MS_BY_SUFFIX = {".ms": 1, ".seconds": 1000, ".minutes": 60_000, ".hours": 3_600_000}
_SHIFTS = {
    "kib": 10,
    "kb": 10,
    "k": 10,
    "mib": 20,
    "mb": 20,
    "m": 20,
    "gib": 30,
    "gb": 30,
    "g": 30,
    "tib": 40,
    "tb": 40,
    "t": 40,
}
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ "


def settings_of(texts: list[str] | None) -> dict[str, str]:
    """`KEY=VALUE` arguments in a broker's form. Raises UsageError."""
    return {key: value_of(key, text) for key, text in assignments(texts).items()}


def value_of(key: str, text: str) -> str:
    """A duration or a size becomes a number in the unit of its key; any other text is unchanged. Raises UsageError."""
    if not text or text.strip().removeprefix("-").isdecimal():
        return text
    unit_ms = _MS_BY_SUFFIX.get(key[key.rfind(".") :])
    if unit_ms is not None:
        return str(_duration(key, text, unit_ms))
    return str(_size(key, text)) if key.endswith((".bytes", "_byte_rate")) else text


def _duration(key: str, text: str, unit_ms: int) -> int:
    from horolog.client.values.times import TimeTextError, format_duration, parse_duration

    try:
        duration_ms = parse_duration(text)
    except TimeTextError as error:
        raise UsageError(f"{key}={error}") from error
    if duration_ms % unit_ms:
        raise UsageError(f"{key}={text!r} is not a multiple of {format_duration(unit_ms)}, the unit of this setting")
    return duration_ms // unit_ms


def _size(key: str, text: str) -> int:
    digits = text.rstrip(_LETTERS)
    shift = _SHIFTS.get(text[len(digits) :].strip().lower())
    if not digits.isdecimal() or shift is None:
        raise UsageError(f"{key}={text!r} is not a size", "give a size such as 10GiB, 500MiB or 1073741824")
    return int(digits) << shift
