"""The processes of one machine and the messages between them, on one virtual clock: chance says who goes on next.

It takes the place of the one loop that a simulation of one broker has: `step`, `settle` and `advance` mean the same.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from math import ceil

from horolog.base.clock import ManualClock
from tests.simulation.loop import SimulatedLoop
from tests.simulation.workers.network import Network
from tests.simulation.workers.process import Process

MOST_STEPS = 200_000
PAUSE_CHANCE, PAUSE_AT_SYNC_CHANCE = 0.02, 0.4
LATE_CHANCE = 0.2
"""That a worker thread is not through yet when the next timer is due."""


class Machine:
    """See the module's docstring."""

    def __init__(self, clock: ManualClock, chance: random.Random, network: Network) -> None:
        self._clock = clock
        self.chance = chance
        self._network = network
        self.processes: list[Process] = []
        """Those that have not ended, in the order of their starts."""
        self.overlaps = 0
        """How often others went on inside of a step of one process."""
        self._is_inside = False

    def __repr__(self) -> str:
        return f"<Machine with {self.processes}>"

    def add(self, process: Process) -> None:
        process.others_go_on = self._others_go_on
        self.processes.append(process)

    def remove(self, process: Process) -> None:
        if process in self.processes:
            self.processes.remove(process)

    @property
    def idle(self) -> bool:
        return not any(True for _ in self._loops_with_work())

    def _loops(self) -> Iterable[SimulatedLoop]:
        yield self._network.loop
        yield from (process.loop for process in self.processes if not process.hangs)

    def _loops_with_work(self) -> Iterable[SimulatedLoop]:
        return (loop for loop in self._loops() if not loop.idle)

    def step(self) -> bool:
        """One thing that waits, of any process or on its way between two; False if there is none."""
        waiting = list(self._loops_with_work())
        if not waiting:
            return False
        return self.chance.choice(waiting).step()

    def settle(self, most_steps: int = MOST_STEPS) -> None:
        """Until nothing is left to do without time passing."""
        for _ in range(most_steps):
            if not self.step():
                return
        raise AssertionError("the machine does not come to rest")

    def advance(self, by_ms: int) -> None:
        """Let time pass; timers that are due in between run at their time."""
        end_s = self._clock.monotonic() + by_ms / 1000
        self._drain()
        while self._run_next_timer(end_s):
            self._drain()
        self._wait_until(end_s)

    def run_until(self, condition: Callable[[], bool], within_ms: int) -> bool:
        """Go on until something is so; False if it is not in time."""
        end_s = self._clock.monotonic() + within_ms / 1000
        steps = 0
        while not condition():
            if self.step():
                steps += 1
                if steps > MOST_STEPS:
                    raise AssertionError("the machine does not come to rest")
                continue
            steps = 0
            if self._run_next_timer(end_s):
                continue
            if self._clock.monotonic() >= end_s:
                return False
            self._wait_until(end_s)  # nothing is due until then: look once more
        return True

    def _run_next_timer(self, end_s: float) -> bool:
        """The first that is due until then; False if none is."""
        first: SimulatedLoop | None = None
        for loop in self._loops():
            due_s = loop.next_due_s
            if due_s is not None and due_s <= end_s and (first is None or due_s < (first.next_due_s or 0.0)):
                first = loop
        if first is None:
            return False
        self._wait_until(first.next_due_s or 0.0)
        first.run_next_timer()
        return True

    def _wait_until(self, due_s: float) -> None:
        missing_ms = ceil((due_s - self._clock.monotonic()) * 1000 - 1e-6)
        if missing_ms > 0:
            self._clock.advance(missing_ms)
        if self._clock.monotonic() < due_s:
            self._clock._monotonic = due_s  # by less than floats can tell apart when milliseconds are added up

    def _drain(self) -> None:
        """Nearly everything that waits, so that syncs may still be under way when the next timer is due."""
        for _ in range(MOST_STEPS):
            if (self.chance.random() < LATE_CHANCE and not self._has_callbacks()) or not self.step():
                return
        raise AssertionError("the machine does not come to rest")

    def _has_callbacks(self) -> bool:
        return any(loop.has_callbacks for loop in self._loops())

    def _others_go_on(self, process: Process, operation: str) -> None:
        """What other processes do while this one is in the middle of a step; they are not interrupted in turn."""
        if self._is_inside or len(self.processes) < 2:
            return
        if self.chance.random() >= (PAUSE_AT_SYNC_CHANCE if operation == "sync" else PAUSE_CHANCE):
            return
        self._is_inside = True
        try:
            for _ in range(self.chance.randint(1, 4)):
                others = [one for one in self.processes if one is not process and one.can_go_on]
                if not others:
                    break
                self.overlaps += 1
                self.chance.choice(others).loop.step()
        finally:
            self._is_inside = False
