"""Waits for a condition: a test waits for what it needs, never for a time that is usually enough.

The pauses between two looks are real ones. `asyncio.sleep(0)` in a loop keeps the interpreter's lock, and a thread that has to bring the
condition about gets it every five milliseconds only.
"""

import asyncio
import select
import time
from collections.abc import Callable

SOON_S = 60.0
"""More than a machine needs that is busy with other tests."""
PAUSE_S = 0.001


async def until(holds: Callable[[], object], within_s: float = SOON_S) -> None:
    """Let the loop run until a condition holds."""
    async with asyncio.timeout(within_s):
        while not holds():  # noqa: ASYNC110 - the condition has no event
            await asyncio.sleep(PAUSE_S)


def wait_until(holds: Callable[[], object], within_s: float = SOON_S, what: str = "", pause_s: float = 0.005) -> float:
    """Wait until a condition holds; returns how long that took."""
    began = time.monotonic()
    while not holds():
        assert time.monotonic() < began + within_s, what or f"not within {within_s} s"
        time.sleep(pause_s)
    return time.monotonic() - began


def readable(descriptor: int, seconds: float | None) -> bool:
    """Whether something can be read before the time is over; `select.select` takes no descriptor above 1,023."""
    looked = select.poll()
    looked.register(descriptor, select.POLLIN)
    return bool(looked.poll(None if seconds is None else max(0.0, seconds) * 1000))
