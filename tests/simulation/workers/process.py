"""One simulated process: an event loop, a view of the disk, and whatever runs in it until it ends, hangs or is asked to stop.

Everything that runs in it goes through `run`. A `PowerCut` of its disk ends it and nothing else; what it has begun outside (files,
messages on their way) stays as it is.
"""

from __future__ import annotations

import asyncio
import inspect
import random
import traceback
from collections.abc import Callable, Coroutine
from typing import Any

from horolog.base.clock import ManualClock
from horolog.broker.log.storage import MemoryStorage
from horolog.broker.log.storage.memory_disk import PowerCut
from tests.simulation.loop import Handle, SimulatedLoop
from tests.simulation.workers.disk import ProcessStorage
from tests.simulation.workers.network import Network, Server

FRAMES_SHOWN = 4


class ProcessLoop(SimulatedLoop):
    """What asyncio's own futures and tasks ask of a loop, besides; nothing happens any more in one whose process has ended."""

    def __init__(self, process: Process, clock: ManualClock, chance: random.Random, network: Network) -> None:
        super().__init__(clock, chance)
        self._process = process
        self._network = network
        self.coroutines: list[asyncio.Task[Any]] = []
        """All that there were: none is collected, and so cleans up, at a moment that nobody has chosen."""

    def __repr__(self) -> str:
        return f"<ProcessLoop of {self._process!r}>"

    def call_soon(self, callback: Callable[..., object], *arguments: Any, context: Any = None) -> Handle:
        if self._process.has_ended:
            return Handle(callback, arguments)
        return super().call_soon(callback, *arguments)

    call_soon_threadsafe = call_soon

    def call_later(
        self,
        delay_s: float,
        callback: Callable[..., object],
        *arguments: Any,
        context: Any = None,
    ) -> Handle:
        if self._process.has_ended:
            return Handle(callback, arguments)
        return super().call_later(delay_s, callback, *arguments)

    def call_at(self, when_s: float, callback: Callable[..., object], *arguments: Any, context: Any = None) -> Handle:
        return self.call_later(when_s - self.time(), callback, *arguments)

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)  # type: ignore[arg-type]

    def create_task(self, work: Coroutine[Any, Any, Any], *, name: str | None = None, context: Any = None) -> Any:
        task = asyncio.Task(work, loop=self, name=name)  # type: ignore[arg-type]
        self.coroutines.append(task)
        task.add_done_callback(self._process.task_ended)
        return task

    async def create_unix_connection(self, factory: Callable[[], Any], path: str) -> tuple[Any, Any]:
        return await self._network.connect(self, factory, path)

    async def create_unix_server(self, factory: Callable[[], Any], path: str, **_: Any) -> Server:
        return self._network.listen(self, factory, path)

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """A task's failure is told by `task_ended`."""

    def end(self) -> None:
        self._ready.clear()
        self._tasks.clear()
        self._timers.clear()
        for task in self.coroutines:
            coroutine = task.get_coro()
            if inspect.iscoroutine(coroutine) and inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED:
                coroutine.close()  # else Python warns that nobody has awaited it

    def _run(self, handle: Handle) -> None:
        self._process.run(super()._run, handle)

    def _run_task(self, number: int) -> None:
        self._process.run(super()._run_task, number)


class Process:
    """See the module's docstring. `on_end` is told once."""

    def __init__(
        self, name: str, clock: ManualClock, chance: random.Random, disk: MemoryStorage, network: Network
    ) -> None:
        self.name = name
        self.clock = clock
        self.has_ended = False
        self.hangs = False
        self.failures: list[str] = []
        """Exceptions in its coroutines."""
        self.on_end: Callable[[Process], None] = lambda _: None
        self.others_go_on: Callable[[Process, str], None] = lambda _, __: None
        self._network = network
        self.storage = ProcessStorage(disk, self._pause)
        self.loop = ProcessLoop(self, clock, chance, network)
        self.storage.while_syncing = self.loop.while_syncing

    def __repr__(self) -> str:
        return f"<Process {self.name}{', ended' if self.has_ended else ', hangs' if self.hangs else ''}>"

    def _pause(self, operation: str) -> None:
        if not self.has_ended:
            self.others_go_on(self, operation)

    def run(self, action: Callable[..., object], *arguments: Any) -> None:
        """Do something inside of the process; nothing where it has ended."""
        if self.has_ended:
            return
        outside = asyncio._get_running_loop()
        asyncio._set_running_loop(self.loop)  # type: ignore[arg-type]
        try:
            action(*arguments)
        except PowerCut:
            self.storage.end()
        finally:
            asyncio._set_running_loop(outside)
        if self.storage.has_ended:
            self.end()

    def end(self) -> None:
        """Now, whatever it is doing: nothing of it goes on."""
        if self.has_ended:
            return
        self.has_ended = True
        self.storage.end()
        self.loop.end()
        self._network.has_ended(self.loop)
        self.on_end(self)

    def task_ended(self, task: asyncio.Task[Any]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, PowerCut):
            self.failures.append("".join(traceback.format_exception(error)[-FRAMES_SHOWN:]))

    @property
    def can_go_on(self) -> bool:
        """Whether it has something to do, and does it."""
        return not self.hangs and not self.loop.idle
