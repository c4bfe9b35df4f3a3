"""The lag of the event loop: a timer notes how late it is called."""

from __future__ import annotations

import asyncio

from horolog.broker.base.metrics import Described, Kind, Metrics

INTERVAL_S = 0.5
LOOP_LAG = Described("loop_lag_seconds", Kind.HISTOGRAM, "Delay of a timer in the event loop.")
FAMILIES = (LOOP_LAG,)


class LoopLag:
    """Looks twice a second."""

    def __init__(self, loop: asyncio.AbstractEventLoop, metrics: Metrics, interval_s: float = INTERVAL_S) -> None:
        self._loop = loop
        self._histogram = metrics.histogram(LOOP_LAG)
        self._interval_s = interval_s
        self._due_s = loop.time() + interval_s
        self._timer = loop.call_at(self._due_s, self._look)

    def _look(self) -> None:
        now_s = self._loop.time()
        self._histogram.observe(max(0.0, now_s - self._due_s))
        self._due_s = now_s + self._interval_s
        self._timer = self._loop.call_at(self._due_s, self._look)

    def stop(self) -> None:
        self._timer.cancel()
