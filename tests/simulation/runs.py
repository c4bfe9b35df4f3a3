"""Runs of the simulation: one seed from its start to its verdict, and the search for the shortest history that fails."""

from __future__ import annotations

import traceback
from collections import Counter
from dataclasses import dataclass

from tests.simulation.simulation import Simulation

STEPS = 120


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a seed."""

    seed: int
    steps: int
    workers: int
    problem: str | None
    trace_hash: str
    counts: Counter[str]
    lines: list[str]

    @property
    def summary(self) -> str:
        replay = f"python -m tests.simulation --seed {self.seed} --steps {self.steps}"
        if self.workers > 1:
            replay += f" --workers {self.workers}"
        if self.problem is None:
            return f"ok: {replay}: trace {self.trace_hash}"
        return f"FAILED: {replay}\n    {self.problem}"


def simulation_of(seed: int, steps: int, workers: int) -> Simulation:
    if workers == 1:
        return Simulation(seed, steps)
    from tests.simulation.workers.simulation import WorkersSimulation

    return WorkersSimulation(seed, steps, workers)


def run_seed(seed: int, steps: int = STEPS, workers: int = 1) -> Result:
    """Simulate one history. Whatever goes wrong in it, in the broker or in a check, is its problem."""
    simulation = simulation_of(seed, steps, workers)
    problem = None
    try:
        simulation.run()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told with the seed
        place = traceback.extract_tb(error.__traceback__)[-1]
        problem = f"step {simulation.step_number}: {type(error).__name__}: {error} ({place.filename}:{place.lineno})"
    world = simulation.world
    return Result(seed, steps, workers, problem, world.trace_hash, world.counts, list(world.lines))


def shrink(seed: int, steps: int, workers: int = 1) -> int:
    """The fewest steps with which a seed fails: a history of fewer steps is the beginning of the longer one."""
    if run_seed(seed, steps, workers).problem is None:
        return steps
    return next(fewer for fewer in range(1, steps + 1) if run_seed(seed, fewer, workers).problem is not None)
