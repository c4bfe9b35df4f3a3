"""Watches an event loop from inside: a timer of a millisecond, how late it is, and what the loop's thread did since the tick before.

A tick is late because a turn of the loop took long, because the thread waited for a processor, or because it waited for the interpreter's
lock or the disk. Linux says how long it ran, and how long it waited for a processor.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import NamedTuple

EVERY_S = 0.001
WRITES_EVERY = 500


class Tick(NamedTuple):
    """`ran_s` and `queued_s` are the thread's since the tick before: on a processor, and ready without one."""

    at_s: float
    late_s: float
    ran_s: float
    queued_s: float

    @property
    def else_s(self) -> float:
        """Of its lateness, what it neither ran nor was ready for a processor: the interpreter's lock, the disk."""
        return max(0.0, self.late_s - self.ran_s - self.queued_s)


class LoopProbe:
    """Writes the ticks of the loop that runs in this thread to a file."""

    def __init__(self, loop: asyncio.AbstractEventLoop, path: Path) -> None:
        self._loop = loop
        self._path = path
        self._times = open("/proc/thread-self/schedstat", "rb", buffering=0)  # noqa: SIM115, PTH123 - open until the end
        self._lines: list[str] = []
        self._before = self._ran_and_queued()
        self._due_s = 0.0

    def begin(self) -> None:
        self._due_s = time.monotonic() + EVERY_S
        self._loop.call_later(EVERY_S, self._tick)

    def end(self) -> None:
        self._times.close()

    def _ran_and_queued(self) -> tuple[int, int]:
        self._times.seek(0)
        ran, queued, _ = self._times.read().split()
        return int(ran), int(queued)

    def _tick(self) -> None:
        if self._times.closed:
            return
        now, (ran, queued) = time.monotonic(), self._ran_and_queued()
        before, self._before = self._before, (ran, queued)
        self._lines.append(f"{now} {now - self._due_s} {(ran - before[0]) / 1e9} {(queued - before[1]) / 1e9}\n")
        if len(self._lines) >= WRITES_EVERY:
            with self._path.open("a") as file:
                file.writelines(self._lines)
            self._lines.clear()
        self.begin()


def ticks_of(path: Path, begin_s: float, end_s: float) -> list[Tick]:
    """The ticks between two readings of the monotonic clock."""
    ticks = [Tick(*map(float, line.split())) for line in path.read_text().splitlines()]
    return [one for one in ticks if begin_s <= one.at_s < end_s]
