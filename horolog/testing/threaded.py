"""A broker in its own thread, for synchronous tests: `with broker_in_thread() as broker`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from horolog.broker.server.app import new_event_loop
from horolog.testing.clock import BrokerClock, Moment, Span, span_ms
from horolog.testing.embedded import EmbeddedBroker, horolog_broker
from horolog.testing.fault import Fault
from horolog.testing.faults import FaultKinds, Faults
from horolog.testing.runs import MEMORY

TIMEOUT_S = 30.0

P = ParamSpec("P")
T = TypeVar("T")


def _called(method: Callable[Concatenate[EmbeddedBroker, P], T]) -> Callable[Concatenate[ThreadedBroker, P], T]:
    """The method for another thread: the broker's thread runs it."""

    @wraps(method)
    def call(self: ThreadedBroker, /, *arguments: P.args, **named: P.kwargs) -> T:
        return self._call(lambda: method(self._embedded, *arguments, **named))

    return call


def _awaited(
    method: Callable[Concatenate[EmbeddedBroker, P], Awaitable[T]],
) -> Callable[Concatenate[ThreadedBroker, P], T]:
    """The coroutine for another thread, which waits for it; an expectation may take as long as its `within` says."""

    @wraps(method)
    def wait(self: ThreadedBroker, /, *arguments: P.args, **named: P.kwargs) -> T:
        longer_s = span_ms(cast("Span | float", named.get("within", 0))) / 1000
        return self._wait(lambda: method(self._embedded, *arguments, **named), longer_s)

    return wait


class ThreadedClock:
    """The broker's clock, moved from the test's thread; everything due has happened when a call returns."""

    def __init__(self, clock: BrokerClock, wait: Callable[[Callable[[], Awaitable[None]]], None]) -> None:
        self._clock = clock
        self._wait = wait

    def __repr__(self) -> str:
        return repr(self._clock)

    @property
    def start_ms(self) -> int:
        return self._clock.start_ms

    def wall_ms(self) -> int:
        return self._clock.wall_ms()

    def set(self, now: Moment) -> None:
        self._wait(lambda: self._clock.set(now))

    def run(self) -> None:
        self._clock.run()

    def advance(self, by: Span | None = None, **units: float) -> None:
        self._wait(lambda: self._clock.advance(by, **units))


class ThreadedFaults(FaultKinds):
    """Faults, armed and ended from the test's thread."""

    def __init__(self, faults: Faults, call: Callable[[Callable[[], Any]], Any]) -> None:
        self._faults = faults
        self._call = call

    def __repr__(self) -> str:
        return repr(self._faults)

    @property
    def armed(self) -> list[Fault]:
        return list(self._faults.armed)

    def arm(self, fault: Fault) -> Fault:
        self._call(lambda: self._faults.arm(fault))
        fault.on_end = lambda: self._call(lambda: self._faults.end(fault))
        return fault

    def clear(self) -> None:
        self._call(self._faults.clear)


class ThreadedBroker:
    """A broker in another thread: an `EmbeddedBroker` whose methods may be called from any other thread."""

    create_topic = _called(EmbeddedBroker.create_topic)
    offsets = _called(EmbeddedBroker.offsets)
    topics = _called(EmbeddedBroker.topics)
    records = _called(EmbeddedBroker.records)
    expect = _awaited(EmbeddedBroker.expect)
    expect_none = _awaited(EmbeddedBroker.expect_none)
    expect_committed = _awaited(EmbeddedBroker.expect_committed)
    snapshot = _called(EmbeddedBroker.snapshot)
    restore = _awaited(EmbeddedBroker.restore)
    expect_snapshot = _called(EmbeddedBroker.expect_snapshot)
    kill = _awaited(EmbeddedBroker.kill)
    start = _awaited(EmbeddedBroker.start)
    restart = _awaited(EmbeddedBroker.restart)

    def __init__(self, embedded: EmbeddedBroker, loop: asyncio.AbstractEventLoop) -> None:
        self._embedded = embedded
        self._loop = loop
        self.host = embedded.host
        self.port = embedded.port
        self.bootstrap = embedded.bootstrap
        self.addresses = embedded.addresses
        self.client_settings = embedded.client_settings
        self.http = embedded.http
        self.clock = ThreadedClock(embedded.clock, self._wait)
        self.faults = ThreadedFaults(embedded.faults, self._call)

    def __repr__(self) -> str:
        return f"<ThreadedBroker at {self.bootstrap}>"

    def _call(self, function: Callable[[], T]) -> T:
        async def run() -> T:
            return function()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(TIMEOUT_S)

    def _wait(self, function: Callable[[], Awaitable[T]], longer_s: float = 0) -> T:
        async def run() -> T:
            return await function()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(TIMEOUT_S + longer_s)


@contextmanager
def broker_in_thread(
    *,
    clock: BrokerClock | Moment | None = None,
    storage: str | Path = MEMORY,
    settings: Mapping[str, object] | None = None,
    security: str | None = None,
    **more: object,
) -> Iterator[ThreadedBroker]:
    """Like `horolog_broker`, with its own event loop and thread."""
    started: Future[ThreadedBroker] = Future()
    stop: Future[None] = Future()

    async def serve() -> None:
        running = horolog_broker(clock=clock, storage=storage, settings=settings, security=security, **more)
        async with running as embedded:
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
