"""The clock of a broker inside a test: runs with the machine's until it is set, moves when it is told to.

The wall clock gives records their append time and retention its now. The other one, which sessions and waits go by,
always runs, and `advance` moves it as well. Whatever was due by then has happened when `advance` returns.
"""

import time
from collections.abc import Callable
from datetime import datetime, timedelta

Moment = int | float | datetime
"""Milliseconds since the epoch, or a date with its time zone."""


class BrokerClock:
    """A `broker.clock.Clock` for tests."""

    def __init__(self, now: Moment | None = None) -> None:
        self.on_moved: Callable[[], None] = lambda: None
        self._frozen_ms: int | None = None if now is None else milliseconds(now)
        self._ahead_ms = 0
        self._ahead_s = 0.0

    def __repr__(self) -> str:
        return f"<BrokerClock at {self.wall_ms()} ms, {'running' if self._frozen_ms is None else 'standing'}>"

    def wall_ms(self) -> int:
        if self._frozen_ms is not None:
            return self._frozen_ms
        return time.time_ns() // 1_000_000 + self._ahead_ms

    def monotonic(self) -> float:
        return time.monotonic() + self._ahead_s

    def set(self, now: Moment) -> None:
        """From now on it is this time, and stays so until the clock is set again, moved on or let run."""
        self._frozen_ms = milliseconds(now)
        self.on_moved()

    def run(self) -> None:
        """Go on from here at the speed of the machine's clock."""
        if self._frozen_ms is not None:
            self._ahead_ms = self._frozen_ms - time.time_ns() // 1_000_000
            self._frozen_ms = None

    def advance(self, by: timedelta | None = None, **units: float) -> None:
        """Let time pass: `advance(timedelta(days=8))`, or its words: `advance(days=8)`, `advance(milliseconds=5)`."""
        span = timedelta(**units) if by is None else by
        if span < timedelta(0):
            raise ValueError("time passes forwards only; set() sets the wall clock back")
        if self._frozen_ms is None:
            self._ahead_ms += round(span / timedelta(milliseconds=1))
        else:
            self._frozen_ms += round(span / timedelta(milliseconds=1))
        self._ahead_s += span.total_seconds()
        self.on_moved()


def milliseconds(moment: Moment) -> int:
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise ValueError(f"{moment} has no time zone: give it one, such as tzinfo=UTC")
        return round(moment.timestamp() * 1000)
    return round(moment)
