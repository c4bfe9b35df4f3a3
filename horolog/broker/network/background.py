"""Runs what waits for other machines in a thread of its own, which nobody waits for: not the disk's threads, and not the end of the process."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def in_thread(loop: asyncio.AbstractEventLoop, work: Callable[[], T], done: Callable[[T | Exception], None]) -> None:
    """Give `done` in the event loop what came of `work`, be it the exception; a loop that has ended is told nothing."""

    def run() -> None:
        outcome: T | Exception
        try:
            outcome = work()
        except Exception as error:  # noqa: BLE001 - it is passed on
            outcome = error
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(done, outcome)

    threading.Thread(target=run, name="fetch", daemon=True).start()
