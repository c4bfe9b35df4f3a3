"""The simulation finds nothing wrong, does the same for the same seed everywhere, exercises everything, and finds planted bugs."""

from __future__ import annotations

import threading
from collections.abc import Iterable

import pytest

from tests.simulation import __main__
from tests.simulation.planted import OF_PRINCIPALS, PLANTED
from tests.simulation.runs import found_at, run_seed, shrink, trace_hashes
from tests.simulation.themes import (
    CLOSED_FOLDERS,
    DAMAGED_KINDS,
    DELETIONS,
    GROUPS,
    LOG_STARTS,
    LOST_PAGES,
    RETENTION,
    THEMES,
    seeds_of,
    seeds_with_principals,
)
from tests.simulation.world import SimulationFailure
from tools import compiled

SEEDS = 25
STEPS = 120
PARTS = 5
SEEDS_FOR_A_PLANTED_BUG = 400
RARE = {
    "believes any checksum": 120,
    "decides without sync": 55,
    "deletes only folders that say whose they are": 60,
    "marks before the decision": 130,
    "believes the page cache of the last process": 325,
}
"""How many histories to pass over first, of bugs that few of them show, so that the tests take seconds."""
THEMED = {
    "shows what the page cache has lost": LOST_PAGES,
    "expires before the snapshot": RETENTION,
    "leaves one file of log starts": LOG_STARTS,
    "deletes only folders that say whose they are": DELETIONS,
    "makes up ids of folders that cannot be read": CLOSED_FOLDERS,
    "takes what can be read of groups for all": GROUPS,
}
"""Bugs that only histories with a theme show within a few hundred."""
EXERCISED = (
    "produce v0", "produce v1", "produce v2", "produce idempotent", "idempotent retry", "produce transactional", "acks=-1", "acks=0",
    "acks=1", "produce refused", "produce unanswered", "commit", "abort", "fenced", "offset in transaction", "commit offset", "join",
    "sync", "leave", "looks at stopped", "create topic", "delete topic", "add partitions", "alter configs", "delete records", "retention deletes",
    "compaction shrinks", "lookup by time", "checked", "offset checked", "clean stop", "power cut", "process ended", "end is set",
    "hangs up", "clock jumps", "loop goes on during a sync", "fault: write", "fault: torn write", "fault: sync", "fault: lost pages",
    "fault: sync_dir", "fault: read", "fault: rename", "fault: create", "fault: full", "healed", "bit flip",
    "change access", "granted", "denied", "guarded fetch", "came in", "was not let in", "ends before the answer", "looks at access",
    "lost rules are accepted",
)  # fmt: skip


@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_goes_wrong(part: int) -> None:
    for seed in range(part, SEEDS, PARTS):
        result = run_seed(seed, STEPS)
        assert result.problem is None, "\n".join((*result.lines[-40:], result.summary))


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_kind_of_thing_happens() -> None:
    """What never happens is not tested: a check on the simulation itself."""
    missing = {*EXERCISED, *(f"bit flip: {kind}" for kind in DAMAGED_KINDS)}
    themed = [seed for theme in THEMES for seed in seeds_of(theme, 20)]  # things that are rare in the others
    for seed in (*range(1000, 1300), *themed):
        missing -= {kind for kind, count in run_seed(seed, STEPS).counts.items() if count}
        if not missing:
            break
    assert not missing, missing


@pytest.mark.parametrize("workers", [1, 2])
def test_a_seed_is_the_same_history_every_time(workers: int) -> None:
    hashes = trace_hashes(3, STEPS, workers)
    assert len(hashes) == 1
    assert run_seed(4, STEPS, workers).trace_hash not in hashes


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(
    bool(compiled.extensions()), reason="no bug can be planted into compiled modules; .ci/run does it before"
)
@pytest.mark.parametrize("name", PLANTED)
def test_planted_bugs_are_found(name: str) -> None:
    first = RARE.get(name, 0)
    seeds: Iterable[int] = range(first, first + SEEDS_FOR_A_PLANTED_BUG)
    if name in THEMED:
        seeds = seeds_of(THEMED[name], first + SEEDS_FOR_A_PLANTED_BUG)[first:]
    if name in OF_PRINCIPALS:
        seeds = seeds_with_principals(SEEDS_FOR_A_PLANTED_BUG)
    assert found_at(PLANTED[name], seeds, STEPS) is not None


def test_a_history_that_waits_for_itself_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    held = threading.Lock()
    held.acquire()
    monkeypatch.setattr(__main__, "run_seed", lambda *_: held.acquire())
    monkeypatch.setattr(__main__, "MOST_SECONDS", 1)
    with pytest.raises(SimulationFailure, match="not ended within 1 s"):
        __main__.run_in_time(0, 1, 1)


def test_a_failing_seed_names_the_line_that_replays_it() -> None:
    planting = PLANTED["finds only later times"]
    seed = found_at(planting, range(10), STEPS)
    assert seed is not None
    with planting():
        steps = shrink(seed, STEPS)
        result = run_seed(seed, steps)
        assert run_seed(seed, steps - 1).problem is None
    assert f"python -m tests.simulation --seed {seed} --steps {steps}" in result.summary
    assert result.lines


@pytest.mark.parametrize("name", PLANTED)
def test_planted_bugs_are_planted_where_something_is(name: str) -> None:
    """Also where nobody has the time to look for them: a name that has moved is noticed at once."""
    with PLANTED[name]():
        pass
