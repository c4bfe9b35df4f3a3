"""Looks for faults that no fixed test finds: `make search MINUTES=60`, or without an end. Run it before a release.

A round runs fresh seeds of the simulation with one, two and three workers, feeds damaged bytes to everything that reads bytes, kills
jobs of the pipeline, and runs another third of what clients see on two workers. Failing seeds go to tests/simulation/kept_seeds.txt,
failing bytes to tests/fuzz/corpus: commit them with the fix, and every later run of the tests replays them.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import NamedTuple

from tests.fuzz.targets import TARGETS
from tests.support.style import PROJECT

SIMULATED_MINUTES = {1: 6.0, 2: 2.0, 3: 2.0}
"""Of a round, by the number of workers."""
FUZZ_SECONDS = 15
NO_TESTS = 5
"""What pytest says where a mark is on no test."""


class Step(NamedTuple):
    """One part of a round, as a command of this Python."""

    name: str
    command: tuple[str, ...]


def round_of(seed: int) -> Iterator[Step]:
    """The steps of a round; another seed looks elsewhere."""
    for workers, minutes in SIMULATED_MINUTES.items():
        where = ("--first", str(seed), "--minutes", str(minutes), "--workers", str(workers))
        yield Step(f"simulation, {workers} workers", ("-m", "tests.simulation", "--keep", *where))
    for target in TARGETS:
        how = ("--seconds", str(FUZZ_SECONDS), "--seed", str(seed % 2**31))
        yield Step(f"fuzzing, {target}", ("-m", "tests.fuzz", target, *how))
    pytest = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--part-of", str(seed))
    yield Step("kills", (*pytest, "-m", "kills", "tests/pipeline"))
    yield Step("long tests", (*pytest, "-m", "long and not kills"))
    marks = "not (kafka_jars or java or node or go or slow or faults or spark or browser)"
    clients = ("--workers", "2", "-n", "2", "--dist", "loadfile", "tests/wire", "tests/golden", "tests/interop")
    yield Step("two workers", (*pytest, "-m", marks, *clients))


def search(seconds: float, random_seed: random.Random) -> list[str]:
    """Runs rounds for so long; the steps that failed, each with its command."""
    until = time.monotonic() + seconds
    failed: list[str] = []
    while True:
        for name, command in round_of(random_seed.randrange(2**32)):
            if time.monotonic() >= until:
                return failed
            print(f"== {name}", flush=True)
            code = subprocess.run([sys.executable, *command], cwd=PROJECT, check=False).returncode
            if code not in {0, NO_TESTS}:
                failed.append(f"{name}: python {' '.join(command)}")
                print(f"FAILED {failed[-1]}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.search", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no step later than that")
    parser.add_argument("--seed", type=int, default=None, help="the same rounds again")
    arguments = parser.parse_args()
    seed = random.randrange(2**32) if arguments.seed is None else arguments.seed
    print(f"--seed {seed}", flush=True)
    failed = search(arguments.minutes * 60, random.Random(seed))
    print(*(f"FAILED {one}" for one in failed), f"{len(failed)} steps failed", sep="\n")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
