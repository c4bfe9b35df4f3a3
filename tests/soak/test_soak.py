"""A bounded soak, and proof that its checks of times and commits can fail. `HOROLOG_SOAK_SECONDS` makes it longer, `HOROLOG_SOAK_SEED` repeats it."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.soak.soak import run, wrong_times
from tests.soak.workload import PLAIN, STAMPED

SECONDS = float(os.environ.get("HOROLOG_SOAK_SECONDS", "60"))
LEAST_KILLS = 5


@pytest.mark.slow
@pytest.mark.timeout(int(SECONDS) + 400)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_nothing_is_lost_doubled_changed_or_seen_too_early(tmp_path: Path) -> None:
    seed = int(os.environ.get("HOROLOG_SOAK_SEED", random.randrange(2**32)))
    print(f"seed {seed}")
    soak, problems = run(tmp_path, SECONDS, seed)
    assert not problems, f"seed {seed}"
    for what in ("acknowledged", "transactions", "commits", "polled", "aiokafka: acknowledged", "aiokafka: polled"):
        assert soak.counts.get(what), f"nothing was {what}: {soak.counts}"
    assert soak.counts["kills"] >= min(LEAST_KILLS, SECONDS // 10)


def test_a_changed_time_and_one_that_goes_back_are_found() -> None:
    times = {
        (PLAIN, 0): [(0, 10, b"a"), (1, 9, b"b"), (2, 12, b"c")],
        (STAMPED, 0): [(0, 100, b"d"), (1, 100, b"e"), (2, 99, b"f")],
    }
    problems = wrong_times(times, {b"a": 10, b"b": 9, b"c": 11})
    assert [problem.split(":")[0] for problem in problems] == ["changed time", "time went back"]
