"""Draws a timeline with characters: a line per bucket, a bar in eighths of a character; pure."""

from collections.abc import Callable, Sequence

EIGHTHS = " ▏▎▍▌▋▊▉"
FULL = "█"
FOLDED_FROM = 4
"""This many empty buckets in a row are folded into one line."""


def bar(value: float, largest: float, width: int) -> str:
    """A bar of at most `width` characters; every count except 0 shows at least a sliver."""
    if value <= 0 or largest <= 0:
        return ""
    eighths = max(1, round(value / largest * width * 8))
    return FULL * (eighths // 8) + EIGHTHS[eighths % 8].strip()


def draw(
    labels: Sequence[str], counts: Sequence[int], width: int, folded: Callable[[int, int], str], marks: Sequence[str]
) -> list[str]:
    """The lines; `folded(first, last)` is the text for a run of empty buckets, `marks` the text after a count."""
    largest = max(counts, default=0)
    label_width = max(map(len, labels), default=0)
    count_width = len(f"{largest:,}")
    mark_width = max(map(len, marks), default=0)
    room = max(4, width - label_width - count_width - mark_width - 3)
    lines = []
    number = 0
    while number < len(counts):
        run = _empty_run(counts, number)
        if run >= FOLDED_FROM:
            lines.append(" " * label_width + " ┆ " + folded(number, number + run - 1))
            number += run
            continue
        drawn = f"{labels[number]:<{label_width}} {counts[number]:>{count_width},} {bar(counts[number], largest, room)}"
        lines.append(f"{drawn} {marks[number]}".rstrip())
        number += 1
    return lines


def _empty_run(counts: Sequence[int], start: int) -> int:
    end = start
    while end < len(counts) and not counts[end]:
        end += 1
    return end - start
