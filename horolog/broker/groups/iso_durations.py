"""Durations as Java reads them: PnDTnHnMn.nS, not negative."""

import re
from typing import Final

_FORM: Final = re.compile(
    r"P(?=[0-9]|T[0-9])(?:[0-9]+D)?(?:T(?=[0-9])(?:[0-9]+H)?(?:[0-9]+M)?(?:[0-9]+(?:\.[0-9]{1,9})?S)?)?", re.IGNORECASE
)


def is_duration(text: str) -> bool:
    return len(text) <= 64 and _FORM.fullmatch(text) is not None
