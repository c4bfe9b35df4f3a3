"""Runs of the simulation: one seed from its start to its verdict, and searches for seeds and for the shortest history that fails."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from tests.simulation.planted import Planting
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


def found_at(planting: Planting, seeds: Iterable[int], steps: int = STEPS, workers: int = 1) -> int | None:
    """The first seed that fails because of a planted bug, and passes without it."""
    for seed in seeds:
        with planting():
            problem = run_seed(seed, steps, workers).problem
        if problem is not None and run_seed(seed, steps, workers).problem is None:
            return seed
    return None


def trace_hashes(seed: int, steps: int = STEPS, workers: int = 1) -> set[str]:
    """Of one seed, which has one history: in this process twice, and in others whose strings hash differently."""
    hashes = {run_seed(seed, steps, workers).trace_hash for _ in range(2)}
    code = f"from tests.simulation.runs import run_seed; print(run_seed({seed}, {steps}, {workers}).trace_hash)"
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=100
        )
        hashes.add(done.stdout.strip())
    return hashes
