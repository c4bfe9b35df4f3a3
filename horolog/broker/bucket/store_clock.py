"""The time by which a broker over a store deletes things for their age: the store's clock counts where this machine's is ahead of it.

The offset between the two was measured at the start. After that it follows from the seconds since the machine was started, which run at
the right rate however the wall clock is set, so no request is needed. A difference of up to a minute counts as none. If this machine's
clock is behind, it counts itself: everything is kept longer then. So a clock that is wrong by years, at the start or later, deletes
nothing too early.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from horolog.base.clock import Clock
from horolog.base.readable import format_duration
from horolog.broker.bucket.lease import boot_seconds

log = logging.getLogger(__name__)

TOLERANCE_MS = 60_000


class StoreClock:
    """A clock for ages; `offset_ms` is how far the store's clock was ahead of `clock` when this one was made."""

    def __init__(self, clock: Clock, offset_ms: int, boot: Callable[[], float] = boot_seconds) -> None:
        self._clock = clock
        self._boot = boot
        self._began_s = boot()
        self._store_began_ms = clock.wall_ms() + offset_ms
        self.is_off = False

    def __repr__(self) -> str:
        return f"<StoreClock, the store's is {self.offset_ms} ms ahead>"

    @property
    def offset_ms(self) -> int:
        """How far the store's clock is ahead of this machine's."""
        return self._store_ms() - self._clock.wall_ms()

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def wall_ms(self) -> int:
        wall_ms, store_ms = self._clock.wall_ms(), self._store_ms()
        self._note(store_ms - wall_ms)
        return min(wall_ms, store_ms) if self.is_off else wall_ms

    def _store_ms(self) -> int:
        return self._store_began_ms + round((self._boot() - self._began_s) * 1000)

    def _note(self, offset_ms: int) -> None:
        was_off, self.is_off = self.is_off, abs(offset_ms) > TOLERANCE_MS
        if self.is_off and not was_off:
            side = "behind" if offset_ms > 0 else "ahead of"
            log.warning(
                "this machine's clock is %s %s the store's: ages count by the earlier of the two until it is set right",
                format_duration(abs(offset_ms)),
                side,
            )
        elif was_off and not self.is_off:
            log.warning("this machine's clock agrees with the store's again")
