"""Work on thousands of partitions, some in each turn of the loop: others get their turns in between."""

from __future__ import annotations

from collections.abc import Callable

from horolog.broker.bucket.block_fetcher import Soon

TURN_S = 0.003
MOST_IN_TURN = 100
"""Where the clock stands still."""


class ShortTurns:
    """Repeats a step as long as there is more to do."""

    def __init__(self, step: Callable[[], bool], soon: Soon, now: Callable[[], float]) -> None:
        """`step` is short, and returns whether there may be more to do."""
        self._step = step
        self._soon = soon
        self._now = now
        self._is_due = False

    def __repr__(self) -> str:
        return f"<ShortTurns of {self._step}{', due' if self._is_due else ''}>"

    def go_on(self) -> None:
        """There may be more to do than before."""
        if not self._is_due:
            self._is_due = True
            self._soon(self._turn)

    def _turn(self) -> None:
        self._is_due = False
        ends_s = self._now() + TURN_S
        for _ in range(MOST_IN_TURN):
            if not self._step():
                return
            if self._now() > ends_s:
                break
        self.go_on()
