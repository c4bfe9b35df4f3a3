"""Divides a dump into ranges of times that are sorted and sent one after the other: together they have all rows in the order of their times.

The first piece is small, so that the first record is sent soon, and the pieces after it stay small if the files of the dump lie in
the order of their times. If they do not, each piece is read from many files, and small pieces would read every file many times:
then pieces double in size until the whole dump is read no more than `MOST_READS` times, or once for each doubling.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

PIECE_BYTES = 64 << 20
"""About how much of keys and values a piece has, if reading allows."""
FIRST_SHARE = 1 / 8
"""The first piece has this share of it, and the next ones double: the first record should not wait long."""
MOST_READS = 6
GRAINS = 100
"""A file is divided into so many parts with equally many rows, of which the last time is known."""


class Unit(NamedTuple):
    """A file of a dump, or the whole of a dump that does not say which file a row is from (None)."""

    file: str | None
    rows: int
    first_us: int
    last_us: int
    grains: Sequence[int]
    """The last time of each part, in order."""


def evenly(first_us: int, last_us: int) -> list[int]:
    """The grains of a file of which nothing else is known."""
    return [first_us + (last_us - first_us) * (number + 1) // GRAINS for number in range(GRAINS)]


class RowsPiece(NamedTuple):
    """The rows of a range of times, from `since` up to but not including `until`; None is open."""

    since_us: int | None = None
    until_us: int | None = None
    files: Sequence[str] | None = None
    """Those that may have such rows; None: the dump cannot be read in parts."""

    def has(self, unit: Unit) -> bool:
        return (self.until_us is None or unit.first_us < self.until_us) and (
            self.since_us is None or unit.last_us >= self.since_us
        )


def is_one_piece(size_bytes: int) -> bool:
    return size_bytes <= PIECE_BYTES * FIRST_SHARE


def pieces_of(units: Sequence[Unit], row_bytes: float) -> list[RowsPiece]:
    """The pieces in the order of their times."""
    rows = sum(one.rows for one in units)
    largest = max(1.0, PIECE_BYTES / max(1.0, row_bytes))
    smallest = max(1.0, largest * FIRST_SHARE)
    while True:
        pieces = _cut(units, smallest, largest)
        if _rows_read(pieces, units) <= MOST_READS * rows or largest >= rows:
            return pieces
        largest *= 2


def _cut(units: Sequence[Unit], smallest: float, largest: float) -> list[RowsPiece]:
    """Pieces whose sizes in rows begin with the smallest one and double up to the largest; the last one is not much smaller."""
    last_us = max((one.last_us for one in units), default=0)
    grains = sorted((time_us, one.rows / len(one.grains)) for one in units for time_us in one.grains)
    borders: list[int] = []
    have, due, left = 0.0, smallest, float(sum(one.rows for one in units))
    for time_us, rows in grains:
        have += rows
        if have >= due and left - have > due / 4 and time_us < last_us and not (borders and time_us < borders[-1]):
            borders.append(time_us + 1)
            left -= have
            have, due = 0.0, min(due * 2, largest)
    return [_piece(units, since_us, until_us) for since_us, until_us in pairwise([None, *borders, None])]


def _piece(units: Sequence[Unit], since_us: int | None, until_us: int | None) -> RowsPiece:
    whole = RowsPiece(since_us, until_us)
    files = [one.file for one in units if whole.has(one)]
    named = [file for file in files if file is not None]
    return whole._replace(files=named) if len(named) == len(files) else whole


def _rows_read(pieces: Sequence[RowsPiece], units: Sequence[Unit]) -> int:
    return sum(one.rows for piece in pieces for one in units if piece.has(one))


def unsent(pieces: Sequence[RowsPiece], rows: Sequence[int], sent: int) -> tuple[list[RowsPiece], int]:
    """The pieces that an earlier run did not send, or not wholly, and how many rows lie before them."""
    before = 0
    for number, count in enumerate(rows):
        if before + count > sent:
            return list(pieces[number:]), before
        before += count
    return [], before
