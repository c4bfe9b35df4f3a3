"""Looks for faults that no fixed test finds: `make search MINUTES=60`, or without an end. Run it before a release.

A round runs fresh seeds of the simulation with one, two and three workers and of brokers over a simulated store, kills brokers over a real
store, feeds damaged bytes to everything that reads bytes, tries new examples of property tests, kills jobs of the pipeline and workers of the
broker, and runs another share of everything that `.ci/run` takes shares of. Failing seeds go to tests/simulation/kept_seeds.txt, failing bytes to tests/fuzz/corpus, and the names of
failing tests to tests/found_tests.txt: commit them with the fix, and every later `.ci/run` replays them.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import NamedTuple

from tests.fuzz.targets import TARGETS
from tests.support.style import PROJECT

SIMULATED_MINUTES = {1: 6.0, 2: 2.0, 3: 2.0}
"""Of a round, by the number of workers."""
CHAOS_MINUTES = 5.0
OF_STORE = {"": 100, "--log": 30, "--pipelines": 10, "--crashes": 150}
"""How many seeds of brokers over a simulated store a round runs, by the option of that simulation."""
FUZZ_SECONDS = 15
SEEDS = ("HOROLOG_LARGEST_SEED", "HOROLOG_SEED", "HOROLOG_SOAK_SEED")
"""Variables that tests take their seeds from."""
NO_TESTS = 5
"""What pytest says where a mark is on no test."""


class Step(NamedTuple):
    """One part of a round, as a command of this Python."""

    name: str
    command: tuple[str, ...]
    profile: str = "steady"
    """How hard property tests look."""


def round_of(seed: int, missing: frozenset[str] = frozenset()) -> Iterator[Step]:
    """The steps of a round; another seed looks elsewhere. Tests that need missing tools are left out."""
    for workers, minutes in SIMULATED_MINUTES.items():
        where = ("--first", str(seed), "--minutes", str(minutes), "--workers", str(workers))
        yield Step(f"simulation, {workers} workers", ("-m", "tests.simulation", "--keep", *where))
    for kind, count in OF_STORE.items():
        some = (str(seed), str(seed + count), *kind.split())
        yield Step(f"simulated store {kind}", ("-m", "tests.simulation.bucket", *some))
    minutes = ("--minutes", str(CHAOS_MINUTES))
    yield Step("brokers over a store", ("-m", "tests.chaos", *minutes, "--seed", str(seed)))
    for target in TARGETS:
        how = ("--seconds", str(FUZZ_SECONDS), "--seed", str(seed % 2**31))
        yield Step(f"fuzzing, {target}", ("-m", "tests.fuzz", target, *how))
    yield from shares_of(seed, missing)


def shares_of(seed: int, missing: frozenset[str]) -> Iterator[Step]:
    """A third of the tests that `.ci/run` takes smaller shares of, lane by lane."""
    pytest = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--keep-found")
    thirds = (*pytest, "--part-of", str(seed), "--cases-of", "all")
    together = ("-n", "2", "--dist", "loadfile")
    without = "".join(f" and not {mark}" for mark in sorted(missing))
    elsewhere = "java or kafka_jars or node or go or slow"
    new = ("--hypothesis-seed", str(seed), "--timeout", "1200")
    yield Step("property tests", (*pytest, *new, *together, "-m", "not slow", "tests/property"), "searching")
    default = f"not ({elsewhere} or spark or faults or browser)"
    yield Step("other cases", (*pytest, "--cases-of", str(seed), "-n", "2", "-m", f"one_in and {default}"))
    yield Step("planted faults", (*thirds, *together, "-m", "slow", "-k", "planted", "tests/simulation"))
    yield Step("kills", (*thirds, "-m", "kills", "tests/pipeline"))
    yield Step("pipeline", (*thirds, *together, "--timeout", "600", "-m", f"not kills{without}", "tests/pipeline"))
    marked = f"({elsewhere}) and not (faults or spark or browser or kills){without}"
    yield Step("marked tests", (*thirds, *together, "--ignore", "tests/pipeline", "-m", marked))
    yield Step("real faults", (*thirds, "-m", "faults"))
    yield Step("browser", (*thirds, "-m", "browser", "tests/console"))
    clients = ("--workers", "2", *together, "tests/wire", "tests/golden", "tests/interop")
    yield Step("two workers", (*thirds, "-m", f"not ({elsewhere} or faults or spark or browser)", *clients))


def missing_marks() -> frozenset[str]:
    """The marks of tests that this machine has no tools for."""
    tools = {"java": "mvn", "kafka_jars": "mvn", "node": "npm", "go": "go"}
    return frozenset(mark for mark, tool in tools.items() if shutil.which(tool) is None)


def search(seconds: float, random_seed: random.Random) -> list[str]:
    """Runs rounds for so long; the steps that failed, each with its command."""
    until = time.monotonic() + seconds
    failed: list[str] = []
    while True:
        seed = random_seed.randrange(2**32)
        for name, command, profile in round_of(seed, missing_marks()):
            if time.monotonic() >= until:
                return failed
            print(f"== {name}", flush=True)
            environment = os.environ | dict.fromkeys(SEEDS, str(seed)) | {"HYPOTHESIS_PROFILE": profile}
            code = subprocess.run([sys.executable, *command], cwd=PROJECT, env=environment, check=False).returncode
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
