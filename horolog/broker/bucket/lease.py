"""The lease of a broker over a store: it answers as a leader or coordinator only if it was not fenced a short while ago.

A *proof* is a request to the store that would have shown a fence: a create in the WAL that was made, or a reading of the journal that
does not name this broker. It counts from the moment at which it was sent first, not from its answer. The lease is asked at each request,
and by no timer: a process that stood still finds itself late before it answers.

A new leader serves once the lease of its predecessor has ended for certain. Safety of records never rests on it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

MARGIN = 1.1
"""Clocks run at the same rate, nearly."""


def boot_seconds() -> float:
    """Seconds since the machine was started, those in which it slept included, where the system counts them."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


class Lease:
    """`seconds` long from the newest proof on."""

    def __init__(self, seconds: float, now: Callable[[], float] = boot_seconds) -> None:
        self.seconds = seconds
        self._now = now
        self._proved_s = float("-inf")
        self._is_over = False

    def __repr__(self) -> str:
        return f"<Lease of {self.seconds} s, {self.left_s():.1f} s left>"

    def now(self) -> float:
        """The moment at which a request is sent that may become a proof."""
        return self._now()

    def proved(self, sent_s: float) -> None:
        """A request that was sent at that moment has shown that this broker is not fenced."""
        self._proved_s = max(self._proved_s, sent_s)

    def end(self) -> None:
        """The broker is fenced, or has left: there is no lease any more."""
        self._is_over = True

    def left_s(self) -> float:
        """The seconds that are left; not above 0 if this broker may not answer."""
        return float("-inf") if self._is_over else self._proved_s + self.seconds - self._now()

    def holds(self) -> bool:
        return self.left_s() > 0

    def serves_after_s(self) -> float:
        """How long after it has learned of a fence the successor of a fenced broker waits before it answers."""
        return self.seconds * MARGIN
