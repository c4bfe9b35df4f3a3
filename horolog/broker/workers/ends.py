"""How often a worker has ended of late: whether a successor is worth a try. Pure."""

from __future__ import annotations

from collections import deque

MOST_ENDS = 5
WITHIN_S = 60.0
"""A worker that ends so often in so short a time stays down: whatever ends it, another start does not help."""


class Ends:
    """The last ends of one worker, by any clock that only goes ahead."""

    def __init__(self) -> None:
        self._at_s: deque[float] = deque(maxlen=MOST_ENDS)

    def __repr__(self) -> str:
        return f"Ends({list(self._at_s)})"

    def one_more(self, now_s: float) -> bool:
        """Note one; whether the worker is to be started again."""
        self._at_s.append(now_s)
        return len(self._at_s) < MOST_ENDS or now_s - self._at_s[0] > WITHIN_S
