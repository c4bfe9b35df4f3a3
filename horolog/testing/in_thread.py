"""Runs something asynchronous in a thread of its own, and calls its methods from other threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast

from horolog.broker.server.app import new_event_loop
from horolog.testing.clock import Span, span_ms

TIMEOUT_S = 30.0

E = TypeVar("E")
P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")


class InThread(Generic[E]):
    """An object that lives on the event loop of another thread."""

    def __init__(self, embedded: E, loop: asyncio.AbstractEventLoop) -> None:
        self._embedded = embedded
        self._loop = loop

    def _call(self, function: Callable[[], T]) -> T:
        async def run() -> T:
            return function()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(TIMEOUT_S)

    def _wait(self, function: Callable[[], Awaitable[T]], longer_s: float = 0) -> T:
        async def run() -> T:
            return await function()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(TIMEOUT_S + longer_s)


def called(method: Callable[Concatenate[E, P], T]) -> Callable[Concatenate[InThread[E], P], T]:
    """The method for another thread: the object's thread runs it."""

    @wraps(method)
    def call(self: InThread[E], /, *arguments: P.args, **named: P.kwargs) -> T:
        return self._call(lambda: method(self._embedded, *arguments, **named))

    return call


def awaited(method: Callable[Concatenate[E, P], Awaitable[T]]) -> Callable[Concatenate[InThread[E], P], T]:
    """The coroutine for another thread, which waits for it; an expectation may take as long as its `within` says."""

    @wraps(method)
    def wait(self: InThread[E], /, *arguments: P.args, **named: P.kwargs) -> T:
        longer_s = span_ms(cast("Span | float", named.get("within", 0))) / 1000
        return self._wait(lambda: method(self._embedded, *arguments, **named), longer_s)

    return wait


@contextmanager
def in_thread(
    running: AbstractAsyncContextManager[E], shown: Callable[[E, asyncio.AbstractEventLoop], R]
) -> Iterator[R]:
    """Enter the block in a thread of its own, for the duration of this one; `shown` makes what the other threads use."""
    started: Future[R] = Future()
    stop: Future[None] = Future()

    async def serve() -> None:
        async with running as embedded:
            started.set_result(shown(embedded, asyncio.get_running_loop()))
            await asyncio.wrap_future(stop)

    thread = threading.Thread(target=run_until_over, args=(serve(), started), name="horolog", daemon=True)
    thread.start()
    made = started.result(TIMEOUT_S)
    try:
        yield made
    finally:
        stop.set_result(None)
        thread.join(TIMEOUT_S)


def run_until_over(work: Coroutine[Any, Any, None], started: Future[Any]) -> None:
    """Run the coroutine on a loop of its own; an error before the start is the starter's."""
    loop = new_event_loop()
    try:
        loop.run_until_complete(work)
    except BaseException as error:
        if started.done():
            raise
        started.set_exception(error)
    finally:
        loop.close()
