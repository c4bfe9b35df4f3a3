"""Runs a job again and again on the loop, on monotonic time; a job that fails is logged and tried again next time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

log = logging.getLogger(__name__)


class Periodic:
    """One job and its interval; the first run may come after another time."""

    __slots__ = ("_handle", "_interval_s", "_job", "_loop")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, job: Callable[[], None], interval_ms: int, first_ms: int | None = None
    ) -> None:
        self._loop = loop
        self._job = job
        self._interval_s = interval_ms / 1000
        first_s = self._interval_s if first_ms is None else first_ms / 1000
        self._handle = loop.call_later(first_s, self._run)

    def __repr__(self) -> str:
        return f"<Periodic {self._job!r} every {self._interval_s} s>"

    def run_once(self) -> None:
        """Run the job now; its schedule does not change."""
        try:
            self._job()
        except Exception:
            log.exception("%r failed; next attempt in %s s", self._job, self._interval_s)

    def _run(self) -> None:
        self.run_once()
        self._handle = self._loop.call_later(self._interval_s, self._run)

    def set_interval(self, interval_ms: int) -> None:
        """Another interval, from now on."""
        interval_s = interval_ms / 1000
        if interval_s != self._interval_s:
            self._interval_s = interval_s
            self._handle.cancel()
            self._handle = self._loop.call_later(interval_s, self._run)

    def stop(self) -> None:
        self._handle.cancel()
