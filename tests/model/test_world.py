"""WAL writer, fencer, merger and take-over in a simulated store keep the model's promises, and planted bugs break them."""

import pytest

from tests.model.planted import BUGS, planted
from tests.model.world import World
from tests.support.simulated_store import CALM

KEPT = (3958,)
"""Seeds that found something: a fence that arrived for the second time, under a number that had been removed meanwhile."""

QUICK = (
    "taken_is_mine",
    "ack_out_of_order",
    "no_trim_check",
    "fences_overlooked",
    "trim_without_mark",
    "conflict_is_taken",
)


def broken_in(seeds):
    """Broken promises by seed; and that enough has happened for it to mean something."""
    broken, told, changes, marks = {}, 0, 0, 0
    for seed in seeds:
        world = World(seed)
        if fault := world.run():
            broken[seed] = fault
        told += len(world.observer.told)
        changes += len(world.observer.journal())
        marks += sum(key.startswith("mark/") for key in world.store.objects)
    assert told > 20 * len(seeds)
    assert changes > len(seeds)
    assert marks > len(seeds)
    return broken


def test_no_seed_breaks_a_promise():
    assert broken_in(range(100)) == {}


@pytest.mark.parametrize("seed", KEPT)
def test_seeds_that_broke_one_do_so_no_more(seed):
    assert World(seed).run() == ""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_no_seed_of_many_breaks_a_promise():
    assert broken_in(range(100, 1_100)) == {}


def first_found(bug, seeds):
    """The first seed whose world breaks a promise, or does what its machines refuse."""
    with planted(bug) as make:
        return next((seed for seed in seeds if make(seed).run()), None)


@pytest.mark.parametrize("bug", [bug if bug in QUICK else pytest.param(bug, marks=pytest.mark.slow) for bug in BUGS])
@pytest.mark.timeout(600)
def test_each_planted_bug_is_found(bug):
    assert first_found(bug, range(1_000)) is not None


def test_in_a_calm_store_everything_ships():
    """With no accidents of brokers either, every record is acknowledged to a client."""
    world = World(1, weather=CALM)
    world.chance = type("NoAccidents", (type(world.chance),), {"random": lambda self: 0.5})(1)
    assert world.run() == ""
    assert len(world.observer.told) == world.records > 50
    assert world.observer.journal() == []
