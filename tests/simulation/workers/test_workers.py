"""Several workers in the simulation: nothing goes wrong, and planted bugs are found."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterable

import pytest

from tests.simulation.planted import Planting
from tests.simulation.runs import found_at, run_seed
from tests.simulation.themes import seeds_with_principals
from tests.simulation.workers.planted import FOUND_BY_UNIT_TESTS, OF_PRINCIPALS, PLANTED
from tests.simulation.workers.themes import (
    CLEAN_STOPS,
    HAND_OVERS,
    LOST_DECISIONS,
    LOST_ENTRIES,
    ONE_IN,
    PLACE_OF_HURT_RECORDS,
    RARE_THEMES,
    WRITES_AT_HAND_OVERS,
    seeds_of,
)
from tools import compiled

RUN = ["-q", "-n", "0", "-p", "no:cacheprovider"]
SEEDS = 4
STEPS = 100
PARTS = 4
SEEDS_FOR_A_PLANTED_BUG = 300
NUMBERS_OF_HURT_RECORDS = 12, 13, 15
"""Of 14 with three workers no bit flips: its workers start again and again, which takes as long as all the others."""
TESTS = {
    "takes markers of old coordinators": "tests/unit/broker/log/producers/test_producer_state.py",
    "appends without the lock": "tests/unit/broker/cluster/test_file_journal.py",
    "trusts the name of a shorter journal": "tests/unit/broker/cluster/test_file_journal.py",
    "lets later work begin at once": "tests/unit/broker/coordination/test_keyed_queue.py",
}
"""The tests of their modules, which find what histories do not."""
THEMED = {
    "hands over without sync": HAND_OVERS,
    "serves on while it hands over": WRITES_AT_HAND_OVERS,
    "believes entries of the page cache": LOST_ENTRIES,
    "believes decisions of the page cache": LOST_DECISIONS,
    "forgets batches of producers at a clean stop": CLEAN_STOPS,
}
"""Bugs that are looked for in histories of one theme: in others they are rare."""
EXERCISED = (
    "worker ended", "worker is killed", "end of worker is set", "end of worker at message", "supervisor ended", "worker stops", "worker hangs",
    "worker goes on", "worker is silent", "connection cut", "messages are slow", "hand over", "handed over", "hand-overs done", "elected",
    "nobody has answered", "known everywhere", "workers", "stopped", "commit", "abort", "offset committed", "idempotent retry",
    "journal was shortened", "change access", "granted", "denied",
)  # fmt: skip


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_goes_wrong(part: int, workers: int) -> None:
    for seed in range(part, SEEDS, PARTS):
        result = run_seed(seed, STEPS, workers)
        assert result.problem is None, "\n".join((*result.lines[-40:], result.summary))


@pytest.mark.timeout(120)
@pytest.mark.parametrize("theme", range(len(RARE_THEMES)))
def test_nothing_goes_wrong_where_coincidences_are_made(theme: int) -> None:
    for seed in seeds_of(RARE_THEMES[theme], 2):
        result = run_seed(seed, STEPS, 2)
        assert result.problem is None, "\n".join((*result.lines[-40:], result.summary))


@pytest.mark.timeout(180)
@pytest.mark.parametrize("workers", [2, 3])
def test_bits_of_the_record_flip_while_workers_run(workers: int) -> None:
    counts: Counter[str] = Counter()
    for number in NUMBERS_OF_HURT_RECORDS:
        result = run_seed(number * ONE_IN + PLACE_OF_HURT_RECORDS, STEPS, workers)
        assert result.problem is None, "\n".join((*result.lines[-40:], result.summary))
        counts += result.counts
    assert counts["bit flip: record of workers"]


@pytest.mark.timeout(60)
def test_a_stop_begins_while_a_worker_waits_for_the_disk() -> None:
    assert run_seed(12728337, 120, 2).problem is None


@pytest.mark.timeout(60)
def test_a_broker_alone_begins_to_coordinate_between_two_batches_of_a_producer() -> None:
    assert run_seed(409, 100, 2).problem is None


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_kind_of_thing_happens() -> None:
    counts: Counter[str] = Counter()
    for seed in range(1000, 1100):
        counts += run_seed(seed, STEPS, 2).counts
    missing = [kind for kind in EXERCISED if not counts[kind]]
    assert not missing, missing


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(
    bool(compiled.extensions()), reason="no bug can be planted into compiled modules; .ci/run does it before"
)
@pytest.mark.parametrize("name", PLANTED)
def test_planted_bugs_are_found(name: str) -> None:
    seeds: Iterable[int] = range(SEEDS_FOR_A_PLANTED_BUG)
    if name in THEMED:
        seeds = seeds_of(THEMED[name], SEEDS_FOR_A_PLANTED_BUG)
    if name in OF_PRINCIPALS:
        seeds = seeds_with_principals(SEEDS_FOR_A_PLANTED_BUG)
    assert found_at(PLANTED[name], seeds, STEPS, 2) is not None


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.skipif(bool(compiled.extensions()), reason="no bug can be planted into compiled modules")
@pytest.mark.parametrize("name", FOUND_BY_UNIT_TESTS)
def test_planted_bugs_that_histories_do_not_show_are_found_by_the_tests_of_their_modules(name: str) -> None:
    code = (
        "import pytest; from tests.simulation.workers.planted import FOUND_BY_UNIT_TESTS;"
        f" FOUND_BY_UNIT_TESTS[{name!r}]().__enter__(); pytest.main({[*RUN, TESTS[name]]})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=200)
    assert " failed" in done.stdout.splitlines()[-1], done.stdout[-3000:]


@pytest.mark.parametrize(
    "planting", [*PLANTED.values(), *FOUND_BY_UNIT_TESTS.values()], ids=[*PLANTED, *FOUND_BY_UNIT_TESTS]
)
def test_planted_bugs_are_planted_where_something_is(planting: Planting) -> None:
    """Also where nobody has the time to look for them: a name that has moved is noticed at once."""
    with planting():
        pass
