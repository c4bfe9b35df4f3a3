"""An event loop and its worker threads on one thread and a virtual clock: everything that waits runs when the simulation says.

What a worker does is one step, except that the loop may go on while a sync waits for the disk, as it does in the real broker.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from heapq import heappop, heappush
from typing import Any

from horolog.base.clock import ManualClock


class Handle:
    """A callback that may be cancelled."""

    __slots__ = ("arguments", "callback", "cancelled")

    def __init__(self, callback: Callable[..., object], arguments: tuple[Any, ...]) -> None:
        self.callback = callback
        self.arguments = arguments
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class SimulatedLoop:
    """The part of an event loop, and of an executor, that the broker uses."""

    def __init__(self, clock: ManualClock, chance: random.Random) -> None:
        self._clock = clock
        self._chance = chance
        self._ready: deque[Handle] = deque()
        self._tasks: list[tuple[Callable[[], Any], Future[Any]]] = []
        self._timers: list[tuple[float, int, Handle]] = []
        self._sequence = 0
        self._in_worker = False
        self.is_beside_sync = False
        """A worker waits for the disk below. What would wait for the same lock has to come later, for there is one thread."""
        self.is_stopping = False
        """A broker that stops waits for its workers, and then closes what they have synced: nothing of that may happen inside of a sync."""
        self.overlaps = 0
        """How often the loop went on while a worker waited for the disk."""

    # what the broker calls

    def call_soon(self, callback: Callable[..., object], *arguments: Any) -> Handle:
        handle = Handle(callback, arguments)
        self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon

    def call_later(self, delay_s: float, callback: Callable[..., object], *arguments: Any) -> Handle:
        handle = Handle(callback, arguments)
        self._sequence += 1
        heappush(self._timers, (self._clock.monotonic() + delay_s, self._sequence, handle))
        return handle

    def time(self) -> float:
        return self._clock.monotonic()

    def submit(self, task: Callable[..., Any], *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._tasks.append((lambda: task(*arguments), future))
        return future

    def run_in_executor(self, _: object, task: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Callbacks of the future come on the loop, as asyncio's do."""
        outer: Future[Any] = Future()

        def done(inner: Future[Any]) -> None:
            error = inner.exception()
            if error is None:
                self.call_soon(outer.set_result, inner.result())
            else:
                self.call_soon(outer.set_exception, error)

        self.submit(task, *arguments).add_done_callback(done)
        return outer

    def shutdown(self, *, wait: bool) -> None:
        """Finish what workers have been given."""
        while wait and self._tasks:
            self._run_task(0)

    # what the simulation calls

    @property
    def idle(self) -> bool:
        return not self._ready and not self._tasks

    def step(self) -> bool:
        """Run one thing that waits, a worker's or the loop's; False if there is none."""
        if self._tasks and (not self._ready or self._chance.random() < 0.5):
            self._run_task(self._chance.randrange(len(self._tasks)))
            return True
        return self._run_ready()

    def settle(self, most_steps: int = 100_000) -> None:
        for _ in range(most_steps):
            if not self.step():
                return
        raise AssertionError("the loop does not come to rest")

    def advance(self, by_ms: int) -> None:
        """Let time pass; callbacks due in between run at their time."""
        end_s = self._clock.monotonic() + by_ms / 1000
        while self._timers and self._timers[0][0] <= end_s:
            due_s, _, handle = heappop(self._timers)
            missing_ms = round((due_s - self._clock.monotonic()) * 1000)
            if missing_ms > 0:
                self._clock.advance(missing_ms)
            self._run(handle)
            while self._ready:
                self._run_ready()
        rest_ms = round((end_s - self._clock.monotonic()) * 1000)
        if rest_ms > 0:
            self._clock.advance(rest_ms)

    def while_syncing(self) -> None:
        """What a storage calls while a worker waits in it: the loop's own callbacks go on meanwhile."""
        if not self._in_worker or self.is_stopping or not self._ready or self._chance.random() < 0.6:
            return
        self._in_worker, self.is_beside_sync = False, True
        self.overlaps += 1
        try:
            for _ in range(self._chance.randint(1, 3)):
                self._run_ready()
        finally:
            self._in_worker, self.is_beside_sync = True, False

    @property
    def has_callbacks(self) -> bool:
        return bool(self._ready)

    @property
    def next_due_s(self) -> float | None:
        """When the first timer is due."""
        return self._timers[0][0] if self._timers else None

    def run_next_timer(self) -> None:
        self._run(heappop(self._timers)[2])

    def _run_ready(self) -> bool:
        if not self._ready:
            return False
        self._run(self._ready.popleft())
        return True

    def _run(self, handle: Handle) -> None:
        if not handle.cancelled:
            handle.callback(*handle.arguments)

    def _run_task(self, number: int) -> None:
        task, future = self._tasks.pop(number)
        self._in_worker = True
        try:
            result = task()
        except Exception as error:  # noqa: BLE001 - what a worker raises is its future's
            self._in_worker = False
            future.set_exception(error)
        else:
            self._in_worker = False
            future.set_result(result)
