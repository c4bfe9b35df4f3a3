"""The time by which things are deleted for their age: the wall clock's, but a leap forwards is not believed at once.

A clock that is set ahead by a year, by mistake or by a machine that has lost its own, would make everything expire that is kept by
time: segments, committed offsets, transactional ids, producers. So wall time is compared with monotonic time. When it has got
ahead by more than `TOLERANCE_MS`, this clock goes on from where it was, at its old pace, and logs that once. The wall clock is
believed again when it comes back, or has stayed ahead for `horolog.clock.jump.wait.ms`. A machine that slept, whose
monotonic clock stood still meanwhile, looks the same. A clock that is set back is believed at once: nothing expires early by it.
"""

import logging
from collections.abc import Callable

from horolog.base.clock import Clock
from horolog.base.readable import format_duration, format_time

log = logging.getLogger(__name__)

TOLERANCE_MS = 300_000
"""Less than this is no leap: clocks are corrected by as much, and this one may not be read for that long."""


class ExpiryClock:
    """See the module's docstring. It has to be read now and then; what happens between two reads is one leap."""

    def __init__(self, clock: Clock, wait_ms: Callable[[], int]) -> None:
        self._clock = clock
        self._wait_ms = wait_ms
        self._believe(clock.wall_ms(), clock.monotonic())

    def __repr__(self) -> str:
        state = "" if self._ahead_since is None else ", the wall clock is ahead and not believed"
        return f"<ExpiryClock at {self._wall_ms}{state}>"

    def _believe(self, wall_ms: int, monotonic: float) -> None:
        self._wall_ms = wall_ms
        self._at = monotonic
        self._ahead_since: float | None = None

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def wall_ms(self) -> int:
        wall_ms, monotonic = self._clock.wall_ms(), self._clock.monotonic()
        expected_ms = self._wall_ms + round((monotonic - self._at) * 1000)
        ahead_ms = wall_ms - expected_ms
        if ahead_ms <= TOLERANCE_MS:
            self._say_if_set_back(ahead_ms)
            self._believe(wall_ms, monotonic)
            return wall_ms
        if self._ahead_since is None:
            self._ahead_since = monotonic
            log.warning(
                "the wall clock has jumped ahead by %s to %s: retention deletes nothing for %s (horolog.clock.jump.wait.ms); correct the clock if it is wrong",
                format_duration(ahead_ms),
                format_time(wall_ms),
                format_duration(self._wait_ms()),
            )
        if (monotonic - self._ahead_since) * 1000 < self._wait_ms():
            return expected_ms
        log.warning("the wall clock has stayed %s ahead: retention uses it from now on", format_duration(ahead_ms))
        self._believe(wall_ms, monotonic)
        return wall_ms

    def _say_if_set_back(self, ahead_ms: int) -> None:
        if self._ahead_since is not None:
            log.warning("the wall clock is right again: retention deletes as before")
        elif ahead_ms < -TOLERANCE_MS:
            by = format_duration(-ahead_ms)
            log.warning("the wall clock was set back by %s: retention keeps everything longer by that time", by)
