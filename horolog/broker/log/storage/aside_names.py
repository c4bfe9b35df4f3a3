"""The names of files with bytes of a log that were set aside (`set_aside` writes them).

    <segment's base offset, 20 digits>.log.<position>.<first offset>-<last offset>.<crc32c, 8 hex digits>.damaged
    <segment's base offset, 20 digits>.log.<position>.<first offset>.<crc32c, 8 hex digits>.torn

`position` is the range's start in the log file, the checksum that of the bytes. The offsets are those of which no good batch is
left.
"""

import re
from dataclasses import dataclass

DAMAGED = "damaged"
TORN = "torn"
DAMAGED_SUFFIX = f".{DAMAGED}"
"""Also the suffix of a copy of a whole small file that could not be read completely."""

_NAME = re.compile(
    r"(?P<base>\d{20})\.log\.(?P<position>\d{1,19})\.(?P<first>\d{1,19})(?:-(?P<last>\d{1,19}))?"
    r"\.(?P<crc>[0-9a-f]{8})\.(?P<kind>damaged|torn)",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class SetAside:
    """The fields of a file's name."""

    name: str
    kind: str
    base_offset: int
    position: int
    first_offset: int
    last_offset: int | None
    crc: int


def parse_name(name: str) -> SetAside | None:
    """The fields of a file name, None for other files."""
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
