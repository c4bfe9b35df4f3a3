"""Counts how often a worker has ended lately, and how long its successor waits. Pure."""

from __future__ import annotations

from collections import deque

MOST_ENDS = 5
WITHIN_S = 60.0
"""A worker that ends `MOST_ENDS` times within this is down: another start at once does not help."""
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 60.0


class Ends:
    """The last ends of one worker, by any monotonic clock."""

    def __init__(self) -> None:
        self._at_s: deque[float] = deque(maxlen=MOST_ENDS)
        self._pause_s = 0.0

    def __repr__(self) -> str:
        return f"Ends({list(self._at_s)}, pause {self._pause_s:g} s)"

    def one_more(self, now_s: float, served_s: float) -> float:
        """Note the end of a worker that served for `served_s`; returns the pause before its successor starts.

        Pauses begin once there were too many ends, and double with every end until one has served for a while.
        """
        self._at_s.append(now_s)
        if served_s >= WITHIN_S:
            self._pause_s = 0.0
        elif self._pause_s:
            self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)
        elif len(self._at_s) == MOST_ENDS and now_s - self._at_s[0] <= WITHIN_S:
            self._pause_s = FIRST_PAUSE_S
        return self._pause_s
