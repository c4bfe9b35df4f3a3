"""The types that keys and values decode to, and their text: dict, list, str, int, float, bool, None, bytes, Decimal and Instant.

In text and JSON a time is ISO 8601 in UTC, a decimal keeps its digits, and bytes are text or hexadecimal digits (`readable_bytes`).
In JSON these are strings, as are numbers that are not finite.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from json import dumps
from math import isfinite
from typing import Any

DEEPEST = 200
"""How deep values may nest: more is refused by all formats, long before Python's own limit."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""Tabs and the ends of lines belong to text."""


class DecodingError(ValueError):
    """The bytes cannot be decoded, or the schema cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Instant:
    """A point in time, in nanoseconds since 1970."""

    ns: int

    @classmethod
    def of_ms(cls, ms: int) -> "Instant":
        return cls(ms * 1_000_000)

    def __str__(self) -> str:
        """ISO 8601 in UTC with as many digits as needed, at least three; `@...ns` beyond the calendar."""
        seconds, rest = divmod(self.ns, 1_000_000_000)
        try:
            start = (EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")
        except OverflowError:
            return f"@{self.ns}ns"
        return f"{start.rjust(19, '0')}.{fraction(rest)}Z"


def fraction(ns: int) -> str:
    """The fraction of a second: three, six or nine digits."""
    digits = f"{ns:09}"
    return digits[:3] if digits.endswith("000000") else digits[:6] if digits.endswith("000") else digits


def day(days: int) -> str | int:
    """Days since 1970 as ISO 8601, or as a number beyond the calendar."""
    try:
        return (EPOCH + timedelta(days=days)).date().isoformat()
    except OverflowError:
        return days


def clock(ns: int) -> str | int:
    """Nanoseconds since midnight as HH:MM:SS.fff, or as a number if no day has that many."""
    if not 0 <= ns < 86_400_000_000_000:
        return ns
    seconds, rest = divmod(ns, 1_000_000_000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{fraction(rest)}"


def text_of(data: bytes) -> str | None:
    """The bytes as text if they are UTF-8 and less than half control characters; else None.

    A coloured log line, or a text with a NUL inside, is text: such characters are escaped for display.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    if text.isprintable() or 2 * len(_CONTROLS.findall(text)) < len(text):
        return text
    return None


def readable_bytes(data: bytes) -> str:
    """The bytes as text if they are text, else as hexadecimal digits."""
    text = text_of(data)
    return data.hex() if text is None else text


def deeper_than(value: Any, limit: int) -> bool:
    """Whether lists and objects nest deeper; level by level, since this must not recurse."""
    level = [value]
    for _ in range(limit + 1):
        level = [
            each
            for one in level
            if isinstance(one, (dict, list))
            for each in (one.values() if isinstance(one, dict) else one)
        ]
        if not level:
            return False
    return True


def plain(value: Any) -> Any:
    """The value in JSON's types."""
    if isinstance(value, dict):
        return {_name(key): plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if value is None or isinstance(value, (str, int)):
        return value
    return _as_string(value)


def _as_string(value: Any) -> str:
    if isinstance(value, bytes):
        return readable_bytes(value)
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def _name(key: Any) -> str:
    """A key as a string: JSON has no others, MessagePack does."""
    if isinstance(key, str):
        return key
    if isinstance(key, (bool, type(None))):
        return {True: "true", False: "false", None: "null"}[key]
    return plain_text(key)


def as_json(value: Any) -> str:
    """JSON on one line."""
    return dumps(plain(value), ensure_ascii=False, separators=(",", ":"))


def plain_text(value: Any) -> str:
    """Text unchanged, all else as JSON; times, bytes and decimals without quotes."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (dict, list, bool, float)) or value is None:
        return as_json(value)
    return str(value) if isinstance(value, int) else _as_string(value)
