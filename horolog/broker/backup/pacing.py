"""Holds a backup to so many bytes a second, so that it leaves the disk and the line to the broker."""

from __future__ import annotations

from collections.abc import Callable


class BytePace:
    """After each amount it waits as long as that amount may take; 0 bytes a second means no bound."""

    def __init__(self, bytes_per_second: int, now: Callable[[], float], sleep: Callable[[float], None]) -> None:
        self._rate = bytes_per_second
        self._now = now
        self._sleep = sleep
        self._free_at = now()

    def __repr__(self) -> str:
        return f"<BytePace of {self._rate} bytes a second>"

    def spent(self, size_bytes: int) -> None:
        """Wait until that many more bytes fit into the rate. Time without any counts for nothing."""
        if self._rate:
            self._free_at = max(self._free_at, self._now()) + size_bytes / self._rate
            if (left := self._free_at - self._now()) > 0:
                self._sleep(left)
