"""Rates, and how long to wait until a rate is back at its limit: Kafka's arithmetic, without a clock.

A `Rate` is what was counted in the last windows, per second; if fewer windows have passed, the missing ones count as empty. A
`TokenBucket` may be emptied at once, and below zero; it fills at the allowed rate.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple


class Windows(NamedTuple):
    """How many windows are measured, the last of which is unfinished, and how long each is."""

    number: int
    length_s: float

    @property
    def all_s(self) -> float:
        return self.number * self.length_s


class _Sample:
    """What was counted in one window."""

    __slots__ = ("began_s", "last_s", "total")

    def __init__(self, now_s: float) -> None:
        self.began_s = self.last_s = now_s
        self.total = 0.0


class Rate:
    """Counts by windows."""

    __slots__ = ("_samples", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._samples: deque[_Sample] = deque()

    def __repr__(self) -> str:
        return f"<Rate of {len(self._samples)} windows>"

    def record(self, amount: float, now_s: float) -> None:
        samples = self._samples
        self._forget_old(now_s)
        if not samples or now_s - samples[-1].began_s >= self._windows.length_s:
            samples.append(_Sample(now_s))
        samples[-1].total += amount
        samples[-1].last_s = now_s

    def per_second(self, now_s: float) -> float:
        self._forget_old(now_s)
        return sum(one.total for one in self._samples) / self._measured_s(now_s)

    def wait_s(self, limit: float, now_s: float) -> float:
        """Seconds until the rate is down to the limit if nothing more is counted; 0 if it is no higher."""
        rate = self.per_second(now_s)
        if rate <= limit:
            return 0.0
        return (rate - limit) / limit * self._measured_s(now_s)

    def says_nothing(self, now_s: float) -> bool:
        """Whether a new one would say the same."""
        self._forget_old(now_s)
        return not self._samples

    def _measured_s(self, now_s: float) -> float:
        """Since the oldest window began, and never less than all windows but the last."""
        number, length_s = self._windows
        passed_s = now_s - self._samples[0].began_s if self._samples else 0.0
        missing = number - 1 - int(passed_s / length_s)
        return max(passed_s + max(missing, 0) * length_s, length_s)

    def _forget_old(self, now_s: float) -> None:
        samples = self._samples
        while samples and now_s - samples[0].last_s >= self._windows.all_s:
            samples.popleft()


class TokenBucket:
    """Holds as many tokens as fill it in all windows; a client that takes more than there are waits until none are owed."""

    __slots__ = ("_at_s", "_limit", "_taken", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._limit = 0.0
        self._taken = 0.0  # of a full one
        self._at_s = 0.0

    def __repr__(self) -> str:
        return f"<TokenBucket, {self._taken:g} taken>"

    def record(self, amount: float, limit: float, now_s: float) -> None:
        self._fill(limit, now_s)
        self._taken += amount

    def wait_s(self, limit: float, now_s: float) -> float:
        """Seconds until no tokens are owed."""
        self._fill(limit, now_s)
        return max(0.0, self._taken / limit - self._windows.all_s)

    def says_nothing(self, now_s: float) -> bool:
        """Whether a new one would say the same."""
        self._fill(self._limit, now_s)
        return not self._taken

    def _fill(self, limit: float, now_s: float) -> None:
        self._taken = max(0.0, self._taken - limit * (now_s - self._at_s))
        self._at_s, self._limit = now_s, limit
