"""The grammar of time zones, the same everywhere; pure except for the machine's own zone.

zone       := "Z" | "UTC" | "GMT" | [("UTC" | "GMT")] (+|-)HH[[:]MM] | IANA name

Abbreviations are not zones: several zones use each, or one uses it for half the year.
"""

import os
import re
from collections.abc import Mapping
from datetime import UTC, timedelta, timezone, tzinfo

from horolog.client.values.durations import UNIT_NAME
from horolog.client.values.time_text import TimeText, TimeTextError

_DIGITS = r"([+-])([0-9]{2})(?::?([0-9]{2}))?(?![0-9])(?!\.?[0-9]*\s*" + UNIT_NAME + ")"
"""Of an offset; `+05m` is a duration."""
_OFFSET = re.compile(r"\s*(?:([Zz])(?![A-Za-z])|(?:(?:UTC|GMT)(?=[+-]))?" + _DIGITS + ")", re.IGNORECASE)
ZONE_NAME = re.compile(
    r"(?<=[A-Za-z0-9\]]\s)\s*([A-Za-z]+(?:/[A-Za-z0-9_+-]+)+|(?:utc|gmt)(?![+-][0-9]{2}(?::?[0-9]{2})?(?![0-9.]*\s*"
    + UNIT_NAME
    + r")))(?![A-Za-z0-9/])",
    re.IGNORECASE,
)
"""A zone's name after something else."""
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


def parse_zone(text: str) -> tzinfo:
    """A zone by its IANA name, an offset (+02:00), `utc` or `local`; raises TimeTextError."""
    if text.lower() in {"utc", "gmt", "z"}:
        return UTC
    if text.lower() == "local":
        return local_zone(os.environ)
    source = TimeText(text, "Europe/Berlin, UTC, +02:00")
    offset = take_offset(source)
    if offset is not None and source.ended:
        return offset
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(text)
    except (KeyError, ValueError, OSError) as error:
        raise TimeTextError(f"{text!r} is not a known time zone; {_zones_like(text)}") from error


def _zones_like(text: str) -> str:
    from difflib import get_close_matches
    from zoneinfo import available_timezones

    close = get_close_matches(text, sorted(available_timezones()), n=1, cutoff=0.8)
    return f"do you mean {close[0]}?" if close else "examples: Europe/Berlin, UTC, +02:00"


def take_offset(source: TimeText) -> tzinfo | None:
    """An offset from UTC, as it may follow a time."""
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


def zone_instead_of(abbreviation: str) -> str | None:
    """The zones for which an abbreviation may stand."""
    return _SHORT_ZONES.get(abbreviation.lower())


def local_zone(environ: Mapping[str, str], localtime: str = "/etc/localtime") -> tzinfo:
    """The machine's zone: that of TZ, else that of its own file, else UTC."""
    from zoneinfo import ZoneInfo

    name = environ.get("TZ", "").removeprefix(":")
    if name:
        return parse_zone(name)
    try:
        with open(localtime, "rb") as file:  # noqa: PTH123 - pathlib would cost 10 ms
            return ZoneInfo.from_file(file, key="local")
    except (OSError, ValueError):
        return UTC
