"""A broker in its own thread, for synchronous tests: `with broker_in_thread() as broker`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from horolog.broker.server.app import new_event_loop
from horolog.testing import expecting
from horolog.testing import snapshot as snapshots
from horolog.testing.clock import BrokerClock, Moment, Span, span_ms
from horolog.testing.embedded import DEFAULT_WITHIN, MEMORY, EmbeddedBroker, Offsets, horolog_broker
from horolog.testing.fault import Fault
from horolog.testing.faults import FaultKinds, Faults
from horolog.testing.matching import ANY, Wanted
from horolog.testing.reading import Seen
from horolog.testing.snapshot_files import compare

TIMEOUT_S = 30.0

T = TypeVar("T")


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

    def __init__(self, embedded: EmbeddedBroker, loop: asyncio.AbstractEventLoop) -> None:
        self._embedded = embedded
        self._loop = loop
        self.host = embedded.host
        self.port = embedded.port
        self.bootstrap = embedded.bootstrap
        self.addresses = embedded.addresses
        self.http = embedded.http
        self.clock = ThreadedClock(embedded.clock, self._wait)
        self.faults = ThreadedFaults(embedded.faults, self._call)

    def __repr__(self) -> str:
        return f"<ThreadedBroker at {self.bootstrap}>"

    def create_topic(self, name: str, partitions: int = 1, **configs: object) -> None:
        self._call(lambda: self._embedded.create_topic(name, partitions, **configs))

    def offsets(self, topic: str, partition: int = 0) -> Offsets:
        return self._call(lambda: self._embedded.offsets(topic, partition))

    def topics(self) -> dict[str, int]:
        """All topics except internal ones, each with its number of partitions."""
        return self._call(self._embedded.topics)

    def records(self, topic: str) -> list[Seen]:
        """All records of a topic in log order."""
        return self._call(lambda: self._embedded.records(topic))

    def expect(
        self,
        topic: str,
        count: int | None = None,
        *,
        key: Any = ANY,
        value: Any = ANY,
        headers: Mapping[str, str | bytes | None] | None = None,
        partition: int | None = None,
        where: Callable[[Seen], bool] | None = None,
        committed: bool = False,
        within: Span | float = DEFAULT_WITHIN,
    ) -> list[Seen]:
        """See `EmbeddedBroker.expect`; `where` is called in the broker's thread."""
        wanted = Wanted(key, value, headers, partition, where, committed)
        return self._wait(
            lambda: expecting.expect(self._embedded.broker, topic, wanted, count, within), span_ms(within) / 1000
        )

    def expect_none(
        self,
        topic: str,
        *,
        key: Any = ANY,
        value: Any = ANY,
        headers: Mapping[str, str | bytes | None] | None = None,
        partition: int | None = None,
        where: Callable[[Seen], bool] | None = None,
        committed: bool = False,
        within: Span | float = 0,
    ) -> None:
        """No record matches, now and until the time is over."""
        wanted = Wanted(key, value, headers, partition, where, committed)
        self._wait(lambda: expecting.expect_none(self._embedded.broker, topic, wanted, within), span_ms(within) / 1000)

    def expect_committed(
        self, group: str, topic: str, offset: int, *, partition: int = 0, within: Span | float = DEFAULT_WITHIN
    ) -> None:
        """Wait until a group has committed this offset."""
        broker = self._embedded.broker
        self._wait(
            lambda: expecting.expect_committed(broker, group, topic, offset, partition, within), span_ms(within) / 1000
        )

    def snapshot(self, topic: str, *, times: str = snapshots.RELATIVE, marks: bool = False) -> str:
        """A topic as readable text: see `horolog.testing.snapshot`."""
        return self._call(lambda: self._embedded.snapshot(topic, times=times, marks=marks))

    def restore(self, snapshot: str | Path, topic: str | None = None) -> int:
        """Append a snapshot's records, from a file or its text, to its topic or another one; returns their number."""
        return self._wait(lambda: self._embedded.restore(snapshot, topic))

    def expect_snapshot(
        self,
        topic: str,
        file: str | Path,
        *,
        times: str = snapshots.RELATIVE,
        marks: bool = False,
        update: bool | None = None,
    ) -> None:
        """Compare the topic with the file: see `EmbeddedBroker.expect_snapshot`."""
        compare(self.snapshot(topic, times=times, marks=marks), Path(file), update=update)

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
    **more: object,
) -> Iterator[ThreadedBroker]:
    """Like `horolog_broker`, with its own event loop and thread."""
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
