"""Asks a store for a caller that waits: commands use what brokers are made of, without an event loop.

Requests are sent from threads, and their answers are taken up in the caller's thread. A store that does not answer for about a minute ends
the work.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine
from queue import SimpleQueue
from typing import Any, TypeVar

from horolog.broker.base.answers import Answer, run
from horolog.broker.bucket.store_access import LONGEST_PAUSE_S, StoreAccess
from horolog.stores.faults import StoreError
from horolog.stores.object_store import ObjectStore
from horolog.stores.requests import ThreadedRequests

Result = TypeVar("Result")

AT_ONCE = 8
MOST_PAUSES = 30
"""So many pauses of full length may follow one another."""


class WaitingStore:
    """`access` is for the coroutines that are given to `result`."""

    def __init__(self, store: ObjectStore, at_once: int = AT_ONCE, most_pauses: int = MOST_PAUSES) -> None:
        self._calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._requests = ThreadedRequests(store, self._calls.put, at_once)
        self._most_pauses = most_pauses
        self._pauses = 0
        self.access = StoreAccess(self._requests, self._pause)

    def __repr__(self) -> str:
        return f"<WaitingStore of {self.access!r}>"

    def close(self) -> None:
        self._requests.close()

    def result(self, steps: Coroutine[Answer[Any], Any, Result]) -> Result:
        """The result of a coroutine. Raises what it raises, and StoreError if the store does not answer."""
        results: list[Result] = []
        self._pauses = 0

        async def all_steps() -> None:
            results.append(await steps)

        work = all_steps()
        try:
            run(work)
            while not results:
                self._calls.get()()
        finally:
            work.close()
        return results[0]

    def _pause(self, seconds: float, done: Callable[[None], None]) -> None:
        self._pauses = self._pauses + 1 if seconds >= LONGEST_PAUSE_S else 0
        if self._pauses > self._most_pauses:
            raise StoreError(self.access.fault)
        timer = threading.Timer(seconds, self._calls.put, (lambda: done(None),))
        timer.daemon = True
        timer.start()
