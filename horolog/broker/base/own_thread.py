"""Does work of one kind where the event loop does not wait for it: in a thread of its own, one piece after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol


class Beside(Protocol):
    """Where work is done."""

    def run(self, work: Callable[[], Any], done: Callable[[Any], None]) -> None:
        """Do this after what was given before; `done` gets the result, on the thread of the caller."""
        ...

    def close(self) -> None:
        """Wait until all given work is done. Results that arrive after that are dropped."""
        ...


class OwnThread:
    """A thread beside an event loop. What the work raises is logged by the loop, and `done` is not called."""

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str) -> None:
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
