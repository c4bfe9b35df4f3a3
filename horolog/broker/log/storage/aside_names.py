"""The names of files that hold bytes of a log which were set aside (see `set_aside`, which writes them).

    <segment's base offset, 20 digits>.log.<position>.<first offset>-<last offset>.<crc32c, 8 hex digits>.damaged
    <segment's base offset, 20 digits>.log.<position>.<first offset>.<crc32c, 8 hex digits>.torn

`position` is the place in the log file at which the range began, the checksum that of the bytes. The offsets are those that
nothing good is left for.
"""

import re
from dataclasses import dataclass

DAMAGED = "damaged"
TORN = "torn"
DAMAGED_SUFFIX = f".{DAMAGED}"
"""Of the copy of a whole small file, too, of which something could not be read."""

_NAME = re.compile(
    r"(?P<base>\d{20})\.log\.(?P<position>\d{1,19})\.(?P<first>\d{1,19})(?:-(?P<last>\d{1,19}))?"
    r"\.(?P<crc>[0-9a-f]{8})\.(?P<kind>damaged|torn)",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class SetAside:
    """What the name of a file tells."""

    name: str
    kind: str
    base_offset: int
    position: int
    first_offset: int
    last_offset: int | None
    crc: int


def parse_name(name: str) -> SetAside | None:
    """What a file name tells, None for other files."""
    found = _NAME.fullmatch(name)
    if found is None or (found["kind"] == DAMAGED) != (found["last"] is not None):
        return None
    return SetAside(
        name,
        found["kind"],
        int(found["base"]),
        int(found["position"]),
        int(found["first"]),
        None if found["last"] is None else int(found["last"]),
        int(found["crc"], 16),
    )
