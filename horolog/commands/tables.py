"""Lays out tables: columns that align, in a width that fits; pure."""

from collections.abc import Sequence
from unicodedata import combining, east_asian_width

GAP = "  "
ELLIPSIS = "…"
NARROWEST = 8
"""A column is never cut below this many characters, whatever the width."""

Cell = str | int | None
"""None is shown as a dash: there is no value."""


def layout(headings: Sequence[str], rows: Sequence[Sequence[Cell]], width: int | None) -> list[str]:
    """The lines of a table, headings first. Integers are right-aligned; texts that do not fit are cut."""
    texts = [[show(cell) for cell in row] for row in rows]
    right = [_is_numeric([row[n] for row in rows]) for n in range(len(headings))]
    widths = [max(display_width(row[n]) for row in [list(headings), *texts]) for n in range(len(headings))]
    if width is not None:
        widths = _fit(widths, right, width)
    return [_line(row, widths, right) for row in [list(headings), *texts]]


def show(cell: Cell) -> str:
    return "-" if cell is None else printable(str(cell))


def printable(text: str) -> str:
    """The text with everything escaped that could control a terminal or break a line."""
    return text if text.isprintable() else "".join(one if one.isprintable() else _escaped(one) for one in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()


def display_width(text: str) -> int:
    """How many terminal columns a printable text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(one) else 2 if east_asian_width(one) in "WF" else 1 for one in text)


def cut(text: str, width: int) -> str:
    """The text in at most `width` columns, an ellipsis for the rest."""
    if display_width(text) <= width:
        return text
    kept, used = [], 0
    for one in text:
        used += display_width(one)
        if used > width - 1:
            break
        kept.append(one)
    return "".join(kept) + ELLIPSIS


def _is_numeric(cells: Sequence[Cell]) -> bool:
    return any(isinstance(cell, int) for cell in cells) and all(cell is None or isinstance(cell, int) for cell in cells)


def _fit(widths: list[int], right: list[bool], width: int) -> list[int]:
    """Shrink the widest text column repeatedly, until the line fits or no column can shrink."""
    widths = list(widths)
    excess = sum(widths) + len(GAP) * (len(widths) - 1) - width
    while excess > 0:
        candidates = [n for n, size in enumerate(widths) if not right[n] and size > NARROWEST]
        if not candidates:
            break
        widest = max(candidates, key=lambda n: widths[n])
        widths[widest] -= 1
        excess -= 1
    return widths


def _line(texts: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    cells = []
    for text, width, to_the_right in zip(texts, widths, right, strict=True):
        shown = text if to_the_right else cut(text, width)
        padding = " " * (width - display_width(shown))
        cells.append(padding + shown if to_the_right else shown + padding)
    return GAP.join(cells).rstrip()
