"""A segment that lies in the bucket as its manifest describes it, and the lines that manifests and their pages have of segments.

A line is a JSON array: the name of the segment's objects without the extension, its next offset, the bytes of its log, the first
timestamp, the largest one and its offset, the formats that occur in it (`magics` of a seal), and when it was created.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from horolog.broker.bucket.names import SegmentName
from horolog.broker.bucket.sealed_lines import FormatError
from horolog.broker.log.integrity import Contents

_NUMBERS = 7
_LEAST = -1
"""Of all numbers: a segment without timestamps has -1 for them."""


class BucketSegment(NamedTuple):
    """A segment as its manifest describes it."""

    base_offset: int
    contents: Contents
    created_ms: int
    log_key: str
    meta_key: str

    @property
    def next_offset(self) -> int:
        return self.contents.next_offset


def described(folder: str, name: SegmentName, contents: Contents, created_ms: int) -> BucketSegment:
    """A segment whose objects have this name in the folder of its partition. A manifest leaves out damaged ranges: the `.meta` has them."""
    contents = Contents(
        contents.size_bytes,
        contents.next_offset,
        contents.max_timestamp,
        contents.max_timestamp_offset,
        contents.first_timestamp,
        contents.magics,
    )
    return BucketSegment(name.base_offset, contents, created_ms, name.log_key(folder), name.meta_key(folder))


def encode_lines(segments: Iterable[BucketSegment]) -> bytes:
    return b"".join(_encode_line(one) for one in segments)


def _encode_line(one: BucketSegment) -> bytes:
    holds = one.contents
    name = one.log_key.rpartition("/")[2].removesuffix(".log")
    numbers = (
        holds.next_offset,
        holds.size_bytes,
        holds.first_timestamp,
        holds.max_timestamp,
        holds.max_timestamp_offset,
        holds.magics,
        one.created_ms,
    )
    return json.dumps([name, *numbers], separators=(",", ":")).encode("ascii") + b"\n"


def decode_lines(data: bytes, folder: str) -> tuple[BucketSegment, ...]:
    """The segments of a partition whose objects lie in this folder; raises FormatError."""
    if data and not data.endswith(b"\n"):
        raise FormatError("a line about a segment has no end")
    segments = tuple(decode_line(line, folder) for line in data.splitlines())
    if not are_in_order(segments):
        raise FormatError("segments are not in the order of their offsets")
    return segments


def decode_line(line: bytes, folder: str) -> BucketSegment:
    """Raises FormatError."""
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, list) or len(content) != _NUMBERS + 1:
        raise FormatError(f"{line[:80]!r} describes no segment")
    shown, *numbers = content
    if any(type(one) is not int or not _LEAST <= one < 2**63 for one in numbers):
        raise FormatError(f"{line[:80]!r} describes no segment")
    next_offset, size_bytes, first, largest, largest_at, magics, created_ms = numbers
    name = SegmentName.parse(shown)
    if name is None or next_offset <= name.base_offset or size_bytes < 1:
        raise FormatError(f"{line[:80]!r} describes no segment")
    contents = Contents(size_bytes, next_offset, largest, largest_at, first, magics)
    return described(folder, name, contents, created_ms)


def are_in_order(segments: Sequence[BucketSegment]) -> bool:
    """Whether each segment begins where the one before ends, or later. Asserted on writing, damage on reading."""
    return all(before.next_offset <= one.base_offset for before, one in pairwise(segments))
