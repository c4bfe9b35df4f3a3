"""Lays out a topic's segments below its timeline: where each lies in time, and which are late, ahead or due for deletion; pure.

Positions are in thousandths of the timeline's width. Neighbours too narrow to be distinguished are drawn as one.
"""

from collections.abc import Sequence
from typing import NamedTuple

from horolog.base.readable import counted
from horolog.client.segments.segments import PartitionSegments, Segment, TopicSegments

WIDTH = 1000
NARROWEST = 3
"""Of a drawn segment; a quarter of it is left free on the right, so that neighbours are distinguished."""
ROWS_AT_MOST = 8
LISTED_AT_MOST = 200


class StripPiece(NamedTuple):
    x: int
    width: int
    kind: str
    """`due`: older than retention keeps; `active`: it is written to; `held`: all others."""
    segments: int = 1


class StripRow(NamedTuple):
    partition: int
    pieces: tuple[StripPiece, ...]


class Listed(NamedTuple):
    """A segment as a row of the table."""

    partition: int
    segment: Segment
    active: bool
    due: bool
    behind_ms: int | None
    """How much earlier it begins than a record before it; None: in order."""


class Strip(NamedTuple):
    rows: tuple[StripRow, ...]
    rows_left_out: int
    late: tuple[StripPiece, ...]
    ahead: tuple[StripPiece, ...]
    listed: tuple[Listed, ...]
    """The segments of the shown times, the newest first."""
    not_listed: int
    shown: int
    """How many lie in these times."""
    late_count: int
    ahead_count: int
    due_count: int
    latest_ms: int
    """How late the latest of them is."""

    @property
    def said(self) -> str:
        """The strip in words."""
        parts = [f"{counted(self.shown, 'segment')} in {counted(len(self.rows) + self.rows_left_out, 'partition')}"]
        parts += [f"{self.due_count} older than retention"] if self.due_count else []
        parts += [f"{self.late_count} late"] if self.late_count else []
        parts += [f"{self.ahead_count} with records ahead of now"] if self.ahead_count else []
        return ", ".join(parts)


def strip_of(told: TopicSegments, since_ms: int, until_ms: int, edge_ms: int | None) -> Strip:
    """The segments between two times; `edge_ms`: those whose largest time is before it may be deleted."""
    found: list[Listed] = []
    rows: list[StripRow] = []
    for number in sorted(told.partitions):
        shown = [one for one in _listed(told.partitions[number], edge_ms) if _overlaps(one.segment, since_ms, until_ms)]
        found += shown
        if len(rows) < ROWS_AT_MOST:
            rows.append(StripRow(number, _pieces(shown, since_ms, until_ms)))
    late = [one for one in found if one.behind_ms is not None]
    ahead = [one for one in found if one.segment.future]
    newest = sorted(found, key=lambda one: (-(one.segment.largest_ms or 0), one.partition))
    return Strip(
        tuple(rows),
        len(told.partitions) - len(rows),
        _marks([one.segment.first_ms or 0 for one in late], since_ms, until_ms, "late"),
        _marks([one.segment.largest_ms or 0 for one in ahead], since_ms, until_ms, "ahead"),
        tuple(newest[:LISTED_AT_MOST]),
        max(0, len(newest) - LISTED_AT_MOST),
        len(found),
        len(late),
        len(ahead),
        sum(one.due for one in found),
        max((one.behind_ms or 0 for one in late), default=0),
    )


def _listed(told: PartitionSegments, edge_ms: int | None) -> list[Listed]:
    found, high = [], -1
    for number, one in enumerate(told.segments):
        first = one.first_ms if one.first_ms is not None else one.largest_ms
        behind = max(1, high - first) if one.late and first is not None else None
        due = edge_ms is not None and one.largest_ms is not None and one.largest_ms < edge_ms
        found.append(Listed(told.partition, one, number == len(told.segments) - 1, due, behind))
        high = max(high, -1 if one.largest_ms is None else one.largest_ms)
    return found


def _overlaps(segment: Segment, since_ms: int, until_ms: int) -> bool:
    if segment.largest_ms is None:
        return False
    return _begin(segment) < until_ms and segment.largest_ms >= since_ms


def _begin(segment: Segment) -> int:
    largest = segment.largest_ms or 0
    return largest if segment.first_ms is None else min(segment.first_ms, largest)


def _place(time_ms: int, since_ms: int, until_ms: int) -> int:
    return min(max((time_ms - since_ms) * WIDTH // max(until_ms - since_ms, 1), 0), WIDTH)


def _pieces(listed: Sequence[Listed], since_ms: int, until_ms: int) -> tuple[StripPiece, ...]:
    """In the order of their starts: a segment that starts where the piece before is still too narrow joins it."""
    found: list[StripPiece] = []
    for one in sorted(listed, key=lambda each: _begin(each.segment)):
        kind = "active" if one.active else "due" if one.due else "held"
        x = _place(_begin(one.segment), since_ms, until_ms)
        end = _place((one.segment.largest_ms or 0) + 1, since_ms, until_ms)
        last = found[-1] if found else None
        if last is not None and x < last.x + NARROWEST and (end - last.x <= NARROWEST or last.kind == kind):
            found[-1] = last._replace(width=max(last.width, end - last.x), segments=last.segments + 1)
        else:
            x = min(x, WIDTH - NARROWEST)
            found.append(StripPiece(x, max(NARROWEST, end - x), kind))
    return tuple(found)


def _marks(times: Sequence[int], since_ms: int, until_ms: int, kind: str) -> tuple[StripPiece, ...]:
    places = sorted({_place(one, since_ms, until_ms) // NARROWEST * NARROWEST for one in times if one < until_ms})
    return tuple(StripPiece(min(one, WIDTH - NARROWEST), NARROWEST, kind) for one in places)
