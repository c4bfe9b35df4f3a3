"""Durations as Java reads them: PnDTnHnMn.nS, not negative."""

import re
from typing import Final

_FORM: Final = re.compile(
    r"P(?=[0-9]|T[0-9])(?:([0-9]+)D)?(?:T(?=[0-9])(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+)(?:\.([0-9]{1,9}))?S)?)?",
    re.IGNORECASE,
)


def is_duration(text: str) -> bool:
    return len(text) <= 64 and _FORM.fullmatch(text) is not None


def duration_ms(text: str) -> int:
    """The whole milliseconds of a duration, which the text has to be."""
    found = _FORM.fullmatch(text)
    assert found is not None, text
    days, hours, minutes, seconds, fraction = found.groups()
    whole_s = ((int(days or 0) * 24 + int(hours or 0)) * 60 + int(minutes or 0)) * 60 + int(seconds or 0)
    return whole_s * 1000 + int((fraction or "").ljust(9, "0")) // 1_000_000
