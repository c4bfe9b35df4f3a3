"""Runs work that waits for other machines in a thread of its own, so that neither the disk's threads nor the process's end wait for it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def in_thread(loop: asyncio.AbstractEventLoop, work: Callable[[], T], done: Callable[[T | Exception], None]) -> None:
    """Run `work`, and pass its result or its exception to `done` in the event loop, unless that is closed."""

    def run() -> None:
        outcome: T | Exception
        try:
            outcome = work()
        except Exception as error:  # noqa: BLE001 - it is passed on
            outcome = error
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(done, outcome)

    threading.Thread(target=run, name="fetch", daemon=True).start()
