"""Text files whose lines carry a checksum each, so that damage costs what it hit and nothing else.

A line, in ASCII:

    <crc32 of the rest of the line, 8 hex digits> SPACE <JSON object>

The first one is the head; each file defines what it and the others say: `cluster_file`, `adoption.adopted_file`.
"""

import json
import zlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

CHECKSUM_SIZE = 8


class UnreadableLine(NamedTuple):
    """A line that cannot be trusted."""

    number: int
    reason: str


def encode_line(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, ensure_ascii=True, separators=(", ", ": "))
    return f"{zlib.crc32(text.encode('ascii')):08x} {text}\n"


def read_lines(
    data: bytes, take_head: Callable[[dict[str, Any]], None], take_other: Callable[[dict[str, Any], str], None]
) -> list[UnreadableLine]:
    """Pass on the head, and every other line with its text; those that cannot be read or are not taken are left out and returned."""
    unreadable: list[UnreadableLine] = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        if not line:
            continue
        try:
            content = decode_line(line)
            if number == 1:
                take_head(content)
            else:
                take_other(content, line.decode("ascii") + "\n")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            unreadable.append(UnreadableLine(number, str(error)))
    return unreadable


def decode_line(line: bytes) -> dict[str, Any]:
    """The object of a line. Raises ValueError."""
    checksum, _, text = line.partition(b" ")
    if len(checksum) != CHECKSUM_SIZE or checksum != b"%08x" % zlib.crc32(text):
        raise ValueError("wrong checksum")
    content = json.loads(text)
    if not isinstance(content, dict):
        raise ValueError("no object")  # noqa: TRY004 - as everything else that is wrong with a line
    return content
