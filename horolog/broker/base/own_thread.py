"""Does work of one kind where the event loop does not wait for it: in a thread of its own, one piece after the other."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

PAUSE_S = 0.00005
"""Long enough for a thread that waits to take over; a pause of no length may be over before it wakes."""


class RunningTimer(Protocol):
    """What has not called back yet."""

    def cancel(self) -> None: ...


Later = Callable[[float, Callable[[], None]], RunningTimer]
"""Calls back after so many seconds."""
OffLoop = Callable[[Callable[[], Any], Callable[[Any], None]], object]
"""Does work in another thread, and calls back with its result in this one; see `Beside.run`."""


class Beside(Protocol):
    """Where work is done."""

    @property
    def later(self) -> Later:
        """The timer of those that wait for it."""
        ...

    def run(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        """Do this after what was given before; `done` gets the result, on the thread of the caller."""
        ...

    def close(self) -> None:
        """Wait until all given work is done. Results that arrive after that are dropped."""
        ...


def in_pieces(items: Iterable[T], size: int) -> Iterator[T]:
    """The same items; other threads, and the event loop among them, may go on after every `size` of them.

    Without it the interpreter lets them go on every 5 ms.
    """
    for number, item in enumerate(items):
        if number and number % size == 0:
            time.sleep(PAUSE_S)
        yield item


class NoTimer:
    """Of work that is done at once."""

    def cancel(self) -> None:
        """There is nothing to cancel."""


class AtOnce:
    """Does the work before `run` returns: for storage without waits, as in tests."""

    @staticmethod
    def later(_seconds: float, _callback: Callable[[], None]) -> NoTimer:
        """Everything is done by then."""
        return NoTimer()

    def run(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        done(work())

    def close(self) -> None:
        """Everything is done."""


class OwnThread:
    """A thread beside an event loop. What the work raises is logged by the loop, and `done` is not called."""

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str) -> None:
        self.later: Later = loop.call_later
        self._loop = loop
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=name)

    def __repr__(self) -> str:
        return f"<OwnThread beside {self._loop!r}>"

    def run(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        def finished(future: asyncio.Future[Any]) -> None:
            if not future.cancelled():
                done(future.result())

        self._loop.run_in_executor(self._executor, work).add_done_callback(finished)

    def close(self) -> None:
        self._executor.shutdown(wait=True)
