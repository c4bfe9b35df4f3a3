"""A bounded soak, and proof that its checks of times, memory, descriptors and starts can fail. `HOROLOG_SOAK_SECONDS` makes it longer, `HOROLOG_SOAK_SEED` chooses other moments."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.soak import vitals as judge
from tests.soak import workers
from tests.soak.soak import LEAST_KILLS, missing, run, wrong_times
from tests.soak.vitals import Sample, Start, Vitals
from tests.soak.workload import PLAIN, STAMPED

SECONDS = float(os.environ.get("HOROLOG_SOAK_SECONDS", "60"))
WORKER_KILLS = int(os.environ.get("HOROLOG_KILLS", "30"))


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(int(SECONDS) + 900)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_nothing_is_lost_doubled_changed_or_seen_too_early(tmp_path: Path) -> None:
    seed = int(os.environ.get("HOROLOG_SOAK_SEED", "1"))
    print(f"seed {seed}")
    soak, _, problems = run(tmp_path, SECONDS, seed)
    assert not problems, f"seed {seed}: {problems[0]} (1 of {len(problems)})"
    assert not missing(soak), soak.counts
    assert soak.counts["kills"] >= min(LEAST_KILLS, SECONDS // 10)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_nothing_is_lost_or_doubled_while_workers_are_killed(tmp_path: Path) -> None:
    """Transactions over four partitions on two workers are carried through exactly once."""
    seed = int(os.environ.get("HOROLOG_SOAK_SEED", "1"))
    print(f"seed {seed}")
    soak, problems = workers.run(tmp_path, WORKER_KILLS, seed)
    assert not problems, f"seed {seed}: {problems[0]} (1 of {len(problems)})"
    assert not missing(soak), soak.counts
    assert soak.counts["kills"] == WORKER_KILLS


def test_a_changed_time_and_one_that_goes_back_are_found() -> None:
    times = {
        (PLAIN, 0): [(0, 10, b"a"), (1, 9, b"b"), (2, 12, b"c")],
        (STAMPED, 0): [(0, 100, b"d"), (1, 100, b"e"), (2, 99, b"f")],
    }
    problems = wrong_times(times, {b"a": 10, b"b": 9, b"c": 11})
    assert [problem.split(":")[0] for problem in problems] == ["changed time", "time went back"]


MIB = 1 << 20


def life(
    number: int, seconds: int, *, leak_bytes: int = 0, leak_descriptors: int = 0, base: int = 40 * MIB
) -> list[Sample]:
    """A process that takes a while to warm up, has a peak now and then, and may leak by the second."""
    return [
        Sample(
            number,
            float(age),
            base + min(age, 30) * MIB // 4 + (5 * MIB if age % 17 == 0 else 0) + age * leak_bytes,
            60 + (20 if age % 13 == 0 else 0) + age * leak_descriptors // 10,
        )
        for age in range(1, seconds)
    ]


def test_a_process_that_is_warm_and_has_peaks_is_well() -> None:
    assert list(Vitals(samples=[*life(1, 300), *life(2, 2), *life(3, 300)]).problems()) == []


@pytest.mark.parametrize(
    ("leak", "found"), [({"leak_bytes": MIB // 10}, "memory grows"), ({"leak_descriptors": 3}, "descriptors grow")]
)
def test_a_leak_of_one_life_is_found(leak: dict[str, int], found: str) -> None:
    problems = list(Vitals(samples=[*life(1, 300), *life(2, 300, **leak)]).problems())
    assert [problem.split(",")[0] for problem in problems] == [f"{found}: life 2"]


def test_what_every_life_loads_more_of_is_found() -> None:
    samples = [sample for number in range(40) for sample in life(number, 4, base=(40 + number) * MIB)]
    (problem,) = Vitals(samples=samples).problems()
    assert problem.startswith("memory grows: from one life to the next")


def test_a_start_is_judged_by_its_processor_time_and_what_is_on_the_disk() -> None:
    fine = [Start(250.0, 2.9, 0, 40.0), Start(20.0, 12.0, 200_000_000, 1.0)]
    assert list(Vitals(starts=fine).problems()) == []
    (problem,) = Vitals(starts=[*fine, Start(4.0, 3.5, 5_000_000, 1.0)]).problems()
    assert problem.startswith("slow start")


LEAKING = """
import os
held = []
print("ready", flush=True)
while True:
    input()
    held.append(bytearray(1 << 20))
    held.append(open(os.devnull))
"""


def _wait_for(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not done():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_a_leak_planted_in_a_process_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "MOST_DESCRIPTOR_GROWTH", 8)
    watched = Vitals()
    leaking = subprocess.Popen([sys.executable, "-c", LEAKING], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert leaking.stdin is not None
        assert leaking.stdout is not None
        assert leaking.stdout.readline()
        watched.started(leaking.pid, 0.1, tmp_path)
        for number in range(30):
            leaking.stdin.write(b"more\n")
            leaking.stdin.flush()
            _wait_for(lambda: psutil.Process(leaking.pid).num_fds() > 3 + number)  # noqa: B023 - called at once
            watched.look()
    finally:
        leaking.kill()
        leaking.communicate()
    watched.look()  # of a process that is gone: nothing
    watched.samples = [
        Sample(1, age + 1.0, one.memory_bytes, one.descriptors) for age, one in enumerate(watched.samples)
    ]
    assert {problem.split(":")[0] for problem in watched.problems()} == {"memory grows", "descriptors grow"}
