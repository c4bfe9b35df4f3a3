"""The time: wall time for records and retention, monotonic time for waiting, and a clock that tests set by hand."""

import time
from typing import Protocol


class Clock(Protocol):
    """Wall time may jump when someone sets the machine's clock; monotonic time never does."""

    def wall_ms(self) -> int:
        """Milliseconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds since some fixed moment."""
        ...


class SystemClock:
    """The machine's own clocks."""

    __slots__ = ()

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    monotonic = staticmethod(time.monotonic)  # itself, for it is read twice in every request


class ManualClock:
    """Stands still until a test moves it."""

    __slots__ = ("_monotonic", "_wall_ms")

    def __init__(self, wall_ms: int = 1_700_000_000_000, monotonic: float = 0.0) -> None:
        self._wall_ms = wall_ms
        self._monotonic = monotonic

    def __repr__(self) -> str:
        return f"ManualClock(wall_ms={self._wall_ms}, monotonic={self._monotonic})"

    def wall_ms(self) -> int:
        return self._wall_ms

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, by_ms: int) -> None:
        """Let time pass: both clocks go forward."""
        if by_ms < 0:
            raise ValueError(f"time passes forwards only, not by {by_ms} ms: set_wall_ms sets the wall clock back")
        self._wall_ms += by_ms
        self._monotonic += by_ms / 1000

    def set_wall_ms(self, wall_ms: int) -> None:
        """Set the wall clock as an operator would: monotonic time does not notice."""
        self._wall_ms = wall_ms
