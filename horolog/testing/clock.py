"""The clock of a broker inside a test: runs with the machine's until it is set, then moves only on request.

The wall clock is the time of appends and of retention. The monotonic clock, used by sessions and waits, always runs, and
`advance` moves it as well. What falls due happens before `advance` returns; what also takes turns of the event loop
(an aborted transaction, a compacted segment) has happened once `await clock.advance(...)` returns. A broker in a thread
waits for both.
"""

import time
from collections.abc import Awaitable, Callable, Generator
from datetime import UTC, datetime, timedelta
from typing import Any

from horolog.client.values.times import parse_duration, parse_time

Moment = int | float | datetime | str
"""Milliseconds since the epoch, a date with its time zone, or a text as for `horolog consume --since`, in UTC."""

Span = timedelta | str
"""A text is one of `horolog.client.values.times`: "3 days", "1h30m", "250ms"."""


class Watcher:
    """Something that has to act when the clock has moved."""

    def moved(self, seconds: float) -> None:
        """Do everything that is due; every wait is shorter by this much."""
        raise NotImplementedError

    async def settle(self) -> None:
        """Wait until everything that was due is done."""
        raise NotImplementedError


class Passing:
    """The result of `advance` and `set`: awaiting it waits until everything that fell due is done."""

    def __init__(self, settling: Callable[[], Awaitable[None]]) -> None:
        self._settling = settling

    def __await__(self) -> Generator[Any, Any, None]:
        return self._settling().__await__()


class BrokerClock:
    """A `horolog.base.clock.Clock` for tests; several brokers may share one."""

    def __init__(self, now: Moment | None = None) -> None:
        self.watchers: list[Watcher] = []
        self._ahead_ms = 0
        self._ahead_s = 0.0
        self._frozen_ms: int | None = None
        if now is not None:
            self._frozen_ms = milliseconds(now, self.wall_ms())
        self.start_ms = self.wall_ms()
        """When it was made, by itself."""

    def __repr__(self) -> str:
        return f"<BrokerClock at {self.wall_ms()} ms, {'running' if self._frozen_ms is None else 'standing'}>"

    @property
    def is_standing(self) -> bool:
        """Whether the clock stands still until it is moved."""
        return self._frozen_ms is not None

    def wall_ms(self) -> int:
        if self._frozen_ms is not None:
            return self._frozen_ms
        return time.time_ns() // 1_000_000 + self._ahead_ms

    def monotonic(self) -> float:
        return time.monotonic() + self._ahead_s

    def set(self, now: Moment) -> Passing:
        """Set the time; it stays there until the clock is set again, advanced or run."""
        self._frozen_ms = milliseconds(now, self.wall_ms())
        return self._moved(0.0)

    def run(self) -> None:
        """Run from here at the speed of the machine's clock."""
        if self._frozen_ms is not None:
            self._ahead_ms = self._frozen_ms - time.time_ns() // 1_000_000
            self._frozen_ms = None

    def advance(self, by: Span | None = None, **units: float) -> Passing:
        """Let time pass: `advance("3 days")`, `advance(timedelta(days=3))`, or its words: `advance(days=3)`."""
        span = timedelta(**units) if by is None else _span(by)
        if span < timedelta(0):
            raise ValueError("advance() moves time forward only; set() can set the wall clock back")
        if self._frozen_ms is None:
            self._ahead_ms += round(span / timedelta(milliseconds=1))
        else:
            self._frozen_ms += round(span / timedelta(milliseconds=1))
        self._ahead_s += span.total_seconds()
        return self._moved(span.total_seconds())

    def _moved(self, seconds: float) -> Passing:
        for watcher in list(self.watchers):
            watcher.moved(seconds)
        return Passing(self._settle)

    async def _settle(self) -> None:
        for watcher in list(self.watchers):
            await watcher.settle()


def milliseconds(moment: Moment, now_ms: int) -> int:
    """A moment in milliseconds since the epoch; a text such as `now-1h` is relative to `now_ms`."""
    if isinstance(moment, str):
        return parse_time(moment, now_ms=now_ms, zone=UTC).ms
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise ValueError(f"{moment} has no time zone: give it one, such as tzinfo=UTC")
        return round(moment.timestamp() * 1000)
    return round(moment)


def span_ms(span: Span | float) -> int:
    """A duration: a text, a timedelta, or a number of seconds."""
    if isinstance(span, int | float):
        return round(span * 1000)
    return round(_span(span) / timedelta(milliseconds=1))


def _span(span: Span) -> timedelta:
    return timedelta(milliseconds=parse_duration(span)) if isinstance(span, str) else span
