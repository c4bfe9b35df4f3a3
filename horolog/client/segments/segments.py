"""Reads and evaluates a broker's list of a topic's segments (`/log/TOPIC` of its HTTP port, docs/operations.md); pure.

`parse` trusts nothing: a response that differs from that page is refused. `bytes_before` joins the positions between which a
time's first record lies, from the indexes, with that record's exact offset, from a lookup.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple


class Segment(NamedTuple):
    """Times are None if no record has one."""

    base_offset: int
    next_offset: int
    size_bytes: int
    first_ms: int | None
    """The largest time of its first batch."""
    largest_ms: int | None
    largest_offset: int
    created_ms: int
    modified_ms: int | None
    """Set if times do not say how old the segment is."""
    future: bool
    late: bool
    """Whether its first batch, or all of it, is earlier than a record of an earlier segment."""


class Bracket(NamedTuple):
    """The first record at or after a time: its offset, and the bytes before its batch, at least and at most."""

    from_offset: int
    from_bytes: int
    to_offset: int
    to_bytes: int


class PartitionSegments(NamedTuple):
    partition: int
    log_start_offset: int
    high_watermark: int
    segments: tuple[Segment, ...]
    at: tuple[Bracket, ...]
    """For each time that was asked for."""

    @property
    def size_bytes(self) -> int:
        return sum(one.size_bytes for one in self.segments)

    @property
    def largest(self) -> Segment | None:
        """The segment with the largest time, the first of several."""
        with_times = [one for one in self.segments if one.largest_ms is not None]
        return max(with_times, key=lambda one: one.largest_ms or 0, default=None)


class TopicSegments(NamedTuple):
    topic: str
    id: str
    now_ms: int
    partitions: dict[int, PartitionSegments]
    """The listed partitions; one that is offline, or whose worker is away, is missing."""

    def covers(self, partitions: Iterable[int]) -> bool:
        return all(one in self.partitions for one in partitions)


def parse(body: bytes, times: int) -> TopicSegments:
    """Raises ValueError for any other text, or for a response with another number of times than asked for."""
    try:
        page = json.loads(body)
        found = [_partition(one, times) for one in page["partitions"] if "error" not in one]
        return TopicSegments(
            str(page["topic"]), str(page["id"]), _number(page["now_ms"]), {one.partition: one for one in found}
        )
    except (TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError("it is not a page of segments") from error


def _partition(given: Mapping[str, Any], times: int) -> PartitionSegments:
    segments = tuple(_segment(one) for one in given["segments"])
    at = tuple(Bracket(*map(_number, one)) for one in given.get("at", ()))
    if not segments or len(at) != times:
        raise ValueError("it does not answer the request")
    start, end = _number(given["log_start_offset"]), _number(given["high_watermark"])
    return PartitionSegments(_number(given["partition"]), start, end, segments, at)


def _segment(given: Mapping[str, Any]) -> Segment:
    modified = given.get("modified_ms")
    return Segment(
        _number(given["base_offset"]),
        _number(given["next_offset"]),
        _number(given["bytes"]),
        _time(given["first_ms"]),
        _time(given["largest_ms"]),
        _number(given["largest_offset"]),
        _number(given["created_ms"]),
        None if modified is None else _number(modified),
        given["future"] is True,
        given["late"] is True,
    )


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
        raise ValueError("expected a number")
    return value


def _time(value: object) -> int | None:
    number = _number(value)
    return None if number < 0 else number


def bytes_before(brackets: Sequence[Bracket], offsets: Sequence[int]) -> list[float]:
    """How many bytes lie before the first record at or after each time, given their offsets; never decreases."""
    found: list[float] = []
    for bracket, offset in zip(brackets, offsets, strict=True):
        width = bracket.to_offset - bracket.from_offset
        share = min(max(offset - bracket.from_offset, 0), width) / width if width > 0 else 0.0
        at = bracket.from_bytes + share * (bracket.to_bytes - bracket.from_bytes)
        found.append(max(at, found[-1]) if found else at)
    return found


def bytes_between(brackets: Sequence[Bracket], offsets: Sequence[int]) -> list[float]:
    """How many bytes lie between each time and the next."""
    return [after - before for before, after in pairwise(bytes_before(brackets, offsets))]
