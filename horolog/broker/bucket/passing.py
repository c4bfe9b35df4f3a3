"""Partitions that pass from one leader to the next, as both know them: for a moment neither serves them.

Producers that are refused pause longer after each refusal: 100 ms, then 200, then 400. So their requests are held back here
(`handlers.held_produce`): by the leader that gives a partition away until the others know the next one, and by that one until it serves the
partition. A partition that takes longer than `HOLDS_S` passes no more: other partitions of the same connections wait behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from horolog.broker.base.own_thread import Later
from horolog.broker.on_record.cluster_file import Place

HOLDS_S = 1.0


class Passing:
    """`changed` is called when partitions pass no more."""

    def __init__(self, later: Later, now: Callable[[], float]) -> None:
        self.changed: Callable[[], None] = _nothing
        self.places: dict[Place, float] = {}
        """Each with the moment until which it may pass."""
        self._later = later
        self._now = now
        self._is_timed = False

    def __repr__(self) -> str:
        return f"<Passing of {len(self.places)} partitions>"

    def begin(self, places: Iterable[Place]) -> None:
        """No broker serves these from now on, for a moment. One that passes already takes no longer than it would have."""
        until_s = self._now() + HOLDS_S
        for place in places:
            self.places.setdefault(place, until_s)
        self._time()

    def end_all(self) -> None:
        """Nothing passes from this broker or to it any more: it leaves."""
        self.end(list(self.places))

    def end(self, places: Iterable[Place]) -> None:
        """These are served here, or others know their leaders."""
        ended = [one for one in places if self.places.pop(one, None) is not None]
        if ended:
            self.changed()

    def _time(self) -> None:
        if self.places and not self._is_timed:
            self._is_timed = True
            self._later(max(0.0, min(self.places.values()) - self._now()), self._expire)

    def _expire(self) -> None:
        self._is_timed = False
        now = self._now()
        self.end([place for place, until_s in self.places.items() if until_s <= now])
        self._time()


def _nothing() -> None:
    """Nothing is held back."""
