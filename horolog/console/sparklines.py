"""Draws the last hour of a cluster as small lines: SVG paths, and the sentence that a screen reader reads; pure."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from horolog.console.pulse import HOUR_MS, HourSample, Point, points
from horolog.console.rendering import dollars, rate, size

WIDTH, HEIGHT = 1000, 100
TOP = 4
"""Above the largest value."""
BREAK_MS = 35_000
"""Points farther apart are not joined."""


class Figure(NamedTuple):
    """A line's field, its name, and the form of its values."""

    field: str
    name: str
    shown: Callable[[float], str]


class Line(NamedTuple):
    name: str
    now: str
    """Empty: not known."""
    most: str
    path: str
    """In a box of `WIDTH` and `HEIGHT`; empty until there are two points."""
    said: str


FIGURES = (
    Figure("records", "Records", rate),
    Figure("received_bytes", "Received", lambda value: f"{size(value)}/s"),
    Figure("sent_bytes", "Sent", lambda value: f"{size(value)}/s"),
    Figure("requests", "Requests", rate),
    Figure("size_bytes", "Size", size),
    Figure("cpu_seconds", "CPU", lambda value: f"{value:.2f} cores"),
)
STORE_FIGURES = (
    Figure("store_requests", "Requests to the store", rate),
    Figure("store_dollars", "Cost of a day", dollars),
)


def lines_of(samples: Sequence[HourSample], now_ms: int, figures: Sequence[Figure] = FIGURES) -> list[Line]:
    """One for each figure; none before there is a sample."""
    return [_line(figure, list(points(samples, figure.field)), now_ms) for figure in figures] if samples else []


def _line(figure: Figure, found: list[Point], now_ms: int) -> Line:
    values = [one.value for one in found if one.value is not None]
    last = found[-1].value if found else None
    now = "" if last is None else figure.shown(last)
    most = figure.shown(max(values)) if values else ""
    said = f"{figure.name} over the last hour: {now or 'not known'} now, at most {most or 'not known'}"
    return Line(figure.name, now, most, path_of(found, now_ms), said)


def path_of(found: Sequence[Point], now_ms: int) -> str:
    """The line, with gaps where values are not known."""
    most = max((one.value for one in found if one.value is not None), default=0.0) or 1.0
    words: list[str] = []
    before: Point | None = None
    for one in found:
        if one.value is None or one.at_ms < now_ms - HOUR_MS:
            before = None
            continue
        x = WIDTH * (1 - (now_ms - one.at_ms) / HOUR_MS)
        y = HEIGHT - (HEIGHT - TOP) * one.value / most
        is_joined = before is not None and one.at_ms - before.at_ms <= BREAK_MS
        words.append(f"{'L' if is_joined else 'M'}{min(x, WIDTH):.1f} {y:.1f}")
        before = one
    return " ".join(words) if any(word.startswith("L") for word in words) else ""
