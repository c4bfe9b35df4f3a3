"""Simulates seeds, in several processes; a failing one prints its trace and the line that replays it.

python -m tests.simulation --seeds 2000 --first 0 --jobs 2      a bounded run
python -m tests.simulation --minutes 60                         a long one
python -m tests.simulation --seed 17 --steps 150 [--trace]      one history again
python -m tests.simulation --seed 17 --shrink                   the fewest steps that fail
python -m tests.simulation --workers 3 ...                      three workers on one folder, and fewer after some of the starts

With --keep a seed that fails goes to kept_seeds.txt; the default tests run all that are there.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import count
from typing import NoReturn

from tests.simulation.kept import keep
from tests.simulation.runs import STEPS, Result, run_seed, shrink
from tests.simulation.world import SimulationFailure

LINES_SHOWN = 40
SEEDS_PER_TASK = 10
MOST_FAILURES_SHOWN = 5
MOST_SECONDS = 300


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, help="run one seed only")
    parser.add_argument("--first", type=int, default=0, help="the first of many seeds")
    parser.add_argument("--seeds", type=int, default=1000, help="how many seeds")
    parser.add_argument("--minutes", type=float, help="run for so long instead, whatever the number of seeds")
    parser.add_argument("--steps", type=int, default=STEPS, help="steps of each history")
    parser.add_argument("--workers", type=int, default=1, help="brokers that share the folder")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--keep", action="store_true", help="write the seeds that fail to kept_seeds.txt")
    parser.add_argument("--trace", action="store_true", help="show the whole trace of --seed")
    parser.add_argument("--shrink", action="store_true", help="find the fewest steps with which --seed fails")
    arguments = parser.parse_args()
    if arguments.seed is None:
        return run_many(arguments)
    steps, workers = arguments.steps, arguments.workers
    if arguments.shrink:
        steps = shrink(arguments.seed, steps, workers)
    result = run_seed(arguments.seed, steps, workers)
    lines = result.lines if arguments.trace else result.lines[-LINES_SHOWN:]
    say("\n".join(lines))
    say(result.summary)
    return int(result.problem is not None)


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def run_many(arguments: argparse.Namespace) -> int:
    began = time.monotonic()
    until = began + arguments.minutes * 60 if arguments.minutes else None
    counts: Counter[str] = Counter()
    seeds = failures = 0
    with ProcessPoolExecutor(arguments.jobs) as pool:
        task = partial(run_task, steps=arguments.steps, workers=arguments.workers, until=until)
        for results in pool.map(task, tasks(arguments)):
            if not results:
                break
            for result in results:
                seeds += 1
                counts += result.counts
                failures += result.problem is not None
                if result.problem is not None and arguments.keep:
                    keep(result.seed, arguments.steps, arguments.workers)
                if result.problem is not None and failures <= MOST_FAILURES_SHOWN:
                    say("\n".join((*result.lines[-LINES_SHOWN:], result.summary)))
                elif result.problem is not None:
                    say(result.summary)
    seconds = time.monotonic() - began
    say("\n".join(f"{number:9} {kind}" for kind, number in sorted(counts.items())))
    say(
        f"{seeds} seeds of {arguments.steps} steps in {seconds:.0f} s: {seeds / seconds:.1f} seeds/s,"
        f" {seeds * arguments.steps / seconds:.0f} steps/s, {counts['started']} starts; {failures} failed"
    )
    return int(failures > 0)


def tasks(arguments: argparse.Namespace) -> Iterator[range]:
    """The seeds, in pieces; without an end when there is a time to stop at."""
    last = arguments.first + arguments.seeds
    if arguments.minutes is None:
        for start in range(arguments.first, last, SEEDS_PER_TASK):
            yield range(start, min(start + SEEDS_PER_TASK, last))
        return
    limit = int(arguments.minutes * 60 * 100)  # far more than any machine does
    for number in count():
        if number * SEEDS_PER_TASK > limit:
            return
        yield range(arguments.first + number * SEEDS_PER_TASK, arguments.first + (number + 1) * SEEDS_PER_TASK)


def run_task(seeds: range, steps: int, workers: int, until: float | None) -> list[Result]:
    return [run_in_time(seed, steps, workers) for seed in seeds if until is None or time.monotonic() < until]


def run_in_time(seed: int, steps: int, workers: int) -> Result:
    """A history that waits for itself would do so for ever: it fails instead."""

    def ring(_: int, __: object) -> NoReturn:
        raise SimulationFailure(f"it has not ended within {MOST_SECONDS} s")

    signal.signal(signal.SIGALRM, ring)
    signal.alarm(MOST_SECONDS)
    try:
        return run_seed(seed, steps, workers)
    finally:
        signal.alarm(0)


if __name__ == "__main__":
    sys.exit(main())
