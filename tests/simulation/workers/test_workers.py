"""Several workers in the simulation: nothing goes wrong, a seed is one history, and planted bugs are found."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable

import pytest

from tests.simulation.runs import run_seed
from tests.simulation.workers.planted import PLANTED, RARE, plant
from tests.simulation.workers.themes import HAND_OVERS, seeds_of
from tools import compiled

RUN = ["-q", "-n", "0", "-p", "no:cacheprovider"]
SEEDS = 16
STEPS = 100
PARTS = 4
SEEDS_FOR_A_PLANTED_BUG = 300
OF_ONE_THEME = {"hands over without sync": HAND_OVERS}
"""Bugs that are looked for in histories of one theme: in others they are rare."""
EXERCISED = (
    "worker ended", "worker is killed", "end of worker is set", "end of worker at message", "supervisor ended", "worker stops", "worker hangs",
    "worker goes on", "worker is silent", "connection cut", "messages are slow", "hand over", "handed over", "hand-overs done", "elected",
    "nobody has answered", "known everywhere", "workers", "stopped", "commit", "abort", "offset committed", "idempotent retry",
)  # fmt: skip


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_goes_wrong(part: int, workers: int) -> None:
    for seed in range(part, SEEDS, PARTS):
        result = run_seed(seed, STEPS, workers)
        assert result.problem is None, "\n".join((*result.lines[-40:], result.summary))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_kind_of_thing_happens() -> None:
    counts: Counter[str] = Counter()
    for seed in range(1000, 1100):
        counts += run_seed(seed, STEPS, 2).counts
    missing = [kind for kind in EXERCISED if not counts[kind]]
    assert not missing, missing


def test_a_seed_is_the_same_history_every_time() -> None:
    """In this process twice, and in others whose strings hash differently."""
    hashes = {run_seed(3, STEPS, 2).trace_hash for _ in range(2)}
    code = f"from tests.simulation.runs import run_seed; print(run_seed(3, {STEPS}, 2).trace_hash)"
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=100
        )
        hashes.add(done.stdout.strip())
    assert len(hashes) == 1
    assert run_seed(4, STEPS, 2).trace_hash not in hashes


def found_at(name: str, seeds: Iterable[int], workers: int) -> int | None:
    """The first seed that fails because of a planted bug, and passes without it."""
    for seed in seeds:
        with plant(name):
            problem = run_seed(seed, STEPS, workers).problem
        if problem is not None and run_seed(seed, STEPS, workers).problem is None:
            return seed
    return None


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(
    bool(compiled.extensions()), reason="no bug can be planted into compiled modules; .ci/run does it before"
)
@pytest.mark.parametrize("name", PLANTED)
def test_planted_bugs_are_found(name: str) -> None:
    seeds = (
        seeds_of(OF_ONE_THEME[name], SEEDS_FOR_A_PLANTED_BUG)
        if name in OF_ONE_THEME
        else range(SEEDS_FOR_A_PLANTED_BUG)
    )
    assert found_at(name, seeds, 2) is not None


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(bool(compiled.extensions()), reason="no bug can be planted into compiled modules")
@pytest.mark.parametrize("name", RARE)
def test_planted_bugs_that_are_rare_are_found_by_the_tests_of_their_modules(name: str) -> None:
    code = f"import pytest; from tests.simulation.workers.planted import plant; plant({name!r}).__enter__(); pytest.main({[*RUN, RARE[name][1]]})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=200)
    assert " failed" in done.stdout.splitlines()[-1], done.stdout[-3000:]


@pytest.mark.parametrize("name", PLANTED)
def test_planted_bugs_are_planted_where_something_is(name: str) -> None:
    """Also where nobody has the time to look for them: a name that has moved is noticed at once."""
    with PLANTED[name]():
        pass
