"""A broker in its own thread, for synchronous tests: `with broker_in_thread() as broker`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from horolog.testing.clock import BrokerClock, Moment, Span
from horolog.testing.embedded import EmbeddedBroker, horolog_broker
from horolog.testing.fault import Fault
from horolog.testing.faults import FaultKinds, Faults
from horolog.testing.in_thread import InThread, awaited, called, in_thread
from horolog.testing.runs import MEMORY


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


class ThreadedBroker(InThread[EmbeddedBroker]):
    """A broker in another thread: an `EmbeddedBroker` whose methods may be called from any other thread."""

    create_topic = called(EmbeddedBroker.create_topic)
    offsets = called(EmbeddedBroker.offsets)
    topics = called(EmbeddedBroker.topics)
    records = called(EmbeddedBroker.records)
    expect = awaited(EmbeddedBroker.expect)
    expect_none = awaited(EmbeddedBroker.expect_none)
    expect_committed = awaited(EmbeddedBroker.expect_committed)
    snapshot = called(EmbeddedBroker.snapshot)
    restore = awaited(EmbeddedBroker.restore)
    expect_snapshot = called(EmbeddedBroker.expect_snapshot)
    kill = awaited(EmbeddedBroker.kill)
    start = awaited(EmbeddedBroker.start)
    restart = awaited(EmbeddedBroker.restart)

    def __init__(self, embedded: EmbeddedBroker, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(embedded, loop)
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
    running = horolog_broker(clock=clock, storage=storage, settings=settings, security=security, **more)
    with in_thread(running, ThreadedBroker) as broker:
        yield broker
