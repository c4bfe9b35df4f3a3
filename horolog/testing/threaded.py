"""A broker in a thread of its own, for tests that are not asynchronous: `with broker_in_thread() as broker`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from horolog.broker.app import new_event_loop
from horolog.testing.clock import BrokerClock, Moment
from horolog.testing.embedded import MEMORY, EmbeddedBroker, Offsets, horolog_broker

TIMEOUT_S = 30.0

T = TypeVar("T")


class ThreadedClock:
    """The broker's clock, moved from the test's thread; what was due has happened when a call returns."""

    def __init__(self, clock: BrokerClock, call: Callable[[Callable[[], None]], None]) -> None:
        self._clock = clock
        self._call = call

    def __repr__(self) -> str:
        return repr(self._clock)

    def wall_ms(self) -> int:
        return self._clock.wall_ms()

    def set(self, now: Moment) -> None:
        self._call(lambda: self._clock.set(now))

    def run(self) -> None:
        self._call(self._clock.run)

    def advance(self, by: timedelta | None = None, **units: float) -> None:
        self._call(lambda: self._clock.advance(by, **units))


class ThreadedBroker:
    """A broker that runs beside the test; its `clock`, `create_topic` and `offsets` may be called from any thread."""

    def __init__(self, embedded: EmbeddedBroker, loop: asyncio.AbstractEventLoop) -> None:
        self._embedded = embedded
        self._loop = loop
        self.host = embedded.host
        self.port = embedded.port
        self.bootstrap = embedded.bootstrap
        self.addresses = embedded.addresses
        self.http = embedded.http
        self.clock = ThreadedClock(embedded.clock, self._call)

    def __repr__(self) -> str:
        return f"<ThreadedBroker at {self.bootstrap}>"

    def create_topic(self, name: str, partitions: int = 1, **configs: object) -> None:
        self._call(lambda: self._embedded.create_topic(name, partitions, **configs))

    def offsets(self, topic: str, partition: int = 0) -> Offsets:
        return self._call(lambda: self._embedded.offsets(topic, partition))

    def _call(self, function: Callable[[], T]) -> T:
        async def run() -> T:
            return function()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(TIMEOUT_S)


@contextmanager
def broker_in_thread(
    *,
    clock: BrokerClock | Moment | None = None,
    storage: str | Path = MEMORY,
    settings: Mapping[str, object] | None = None,
    **more: object,
) -> Iterator[ThreadedBroker]:
    """As `horolog_broker`, with an event loop and a thread of its own."""
    started: Future[ThreadedBroker] = Future()
    stop: Future[None] = Future()

    async def serve() -> None:
        async with horolog_broker(clock=clock, storage=storage, settings=settings, **more) as embedded:
            loop = asyncio.get_running_loop()
            started.set_result(ThreadedBroker(embedded, loop))
            await asyncio.wrap_future(stop)

    thread = threading.Thread(target=_run, args=(serve(), started), name="horolog", daemon=True)
    thread.start()
    broker = started.result(TIMEOUT_S)
    try:
        yield broker
    finally:
        stop.set_result(None)
        thread.join(TIMEOUT_S)


def _run(work: Coroutine[Any, Any, None], started: Future[ThreadedBroker]) -> None:
    loop = new_event_loop()
    try:
        loop.run_until_complete(work)
    except BaseException as error:
        if started.done():
            raise
        started.set_exception(error)
    finally:
        loop.close()
