"""Many timers on one heap: one that is postponed again and again, as a session is by heartbeats, costs one comparison.

A timer that is started later than it was queued for stays where it is in the heap and is queued again when its old time comes. Stopped
timers leave the heap at their time, or earlier when they are most of the heap.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from math import inf

from horolog.base.clock import Clock

COMPACT_ABOVE = 64
"""A heap of up to this many entries is not worth compacting."""


class Timer:
    """Something to do at a time; the time may be changed until then."""

    __slots__ = ("action", "deadline", "queued_for")

    def __init__(self, action: Callable[[], None]) -> None:
        self.action = action
        self.deadline = inf
        self.queued_for = inf

    def __repr__(self) -> str:
        return f"<Timer {self.action!r} {'off' if self.deadline == inf else f'at {self.deadline:.3f}'}>"

    @property
    def running(self) -> bool:
        return self.deadline != inf


class Timers:
    """`wake_after(seconds)` is called when `run_due` has to come earlier than was last asked for."""

    def __init__(self, clock: Clock, wake_after: Callable[[float], None] = lambda _: None) -> None:
        self._clock = clock
        self._wake_after = wake_after
        self._heap: list[tuple[float, int, Timer]] = []
        self._sequence = 0
        self._running = 0
        self._wakes_at = inf

    def __repr__(self) -> str:
        return f"<Timers: {self._running} running, {len(self._heap)} queued>"

    def start(self, timer: Timer, after_ms: int) -> None:
        """Run the timer's action after this time, whatever it was set to before."""
        deadline = self._clock.monotonic() + after_ms / 1000
        if timer.deadline == inf:
            self._running += 1
        timer.deadline = deadline
        if deadline < timer.queued_for:
            self._queue(timer)
            self._wake_for_first()

    def stop(self, timer: Timer) -> None:
        if timer.deadline != inf:
            timer.deadline = inf
            self._running -= 1
            if len(self._heap) > COMPACT_ABOVE and len(self._heap) > 2 * self._running:
                self._compact()

    def run_due(self) -> None:
        """Run the actions that are due; timers that they start themselves wait for the next call."""
        now = self._clock.monotonic()
        self._wakes_at = inf
        for timer in self._take_due(now):
            if timer.deadline <= now:
                timer.deadline = inf
                self._running -= 1
                timer.action()
        self._wake_for_first()

    def next_due(self) -> float | None:
        """When, on the monotonic clock, `run_due` should be called next."""
        return self._heap[0][0] if self._heap else None

    def _take_due(self, now: float) -> list[Timer]:
        due: list[Timer] = []
        heap = self._heap
        while heap and heap[0][0] <= now:
            queued_for, _, timer = heappop(heap)
            if queued_for != timer.queued_for:
                continue  # it was started again for an earlier time, which has passed
            timer.queued_for = inf
            if timer.deadline <= now:
                due.append(timer)
            elif timer.deadline != inf:
                self._queue(timer)
        return due

    def _queue(self, timer: Timer) -> None:
        timer.queued_for = timer.deadline
        self._sequence += 1
        heappush(self._heap, (timer.deadline, self._sequence, timer))

    def _compact(self) -> None:
        kept = [entry for entry in self._heap if entry[0] == entry[2].queued_for and entry[2].running]
        for entry in self._heap:
            if not entry[2].running:
                entry[2].queued_for = inf
        heapify(kept)
        self._heap = kept

    def _wake_for_first(self) -> None:
        if self._heap and self._heap[0][0] < self._wakes_at:
            self._wakes_at = self._heap[0][0]
            self._wake_after(max(0.0, self._wakes_at - self._clock.monotonic()))


class LoopTimers(Timers):
    """Timers that an event loop runs."""

    def __init__(self, clock: Clock, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(clock, self._arm)
        self._loop = loop
        self._handle: asyncio.TimerHandle | None = None

    def _arm(self, seconds: float) -> None:
        self.close()
        self._handle = self._loop.call_later(seconds, self.run_due)

    def close(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
