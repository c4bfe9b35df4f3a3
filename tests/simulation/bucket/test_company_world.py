"""Brokers over a store whose machines die, stand still and lose each other, while the store answers badly: what clients were told holds.

`python -m tests.simulation.bucket FIRST LAST` runs more seeds.
"""

from collections import Counter

import pytest

from tests.simulation.bucket.company_world import CompanyWorld
from tests.simulation.bucket.failing_starts import FailingStart
from tests.simulation.bucket.planted import BUGS, found
from tests.support.simulated_store import CALM

FOUND_FROM = {
    "a new leader does not wait": 50,
    "the lease is never late": 24,
    "a start that fails ends no WAL": 10,
    "a broker withdraws before it has stopped": 20,
    "all that a broker leads is opened while it leaves": 10,
}
"""Where to begin with bugs that few seeds show."""


@pytest.mark.parametrize("first", range(0, 24, 8))
def test_every_promise_holds_whatever_happens(first):
    met = Counter()
    for seed in range(first, first + 8):
        world = CompanyWorld(seed)
        assert world.run() == "", seed
        met.update(world.met)
    assert min(met[kind] for kind in ("kill", "pause", "cut", "stop", "told")) > 3, met


def test_every_promise_holds_also_if_brokers_fail_to_start():
    met = Counter()
    for seed in range(8):
        world = CompanyWorld(seed, process_class=FailingStart)
        assert world.run() == "", seed
        met.update(world.met)
    assert met["withdrawn"] > 3
    assert met["unregistered"] > 3


FOUND = {4279: "a broker chased the WAL of another for a minute, although that answered again"}


@pytest.mark.parametrize("seed", FOUND)
def test_what_a_search_has_found_holds(seed):
    assert CompanyWorld(seed).run() == ""


def test_in_calm_weather_no_broker_is_suspected():
    world = CompanyWorld(1, CALM, faults=False)
    assert world.run() == ""
    assert world.journal().number == 4  # three brokers and a topic


@pytest.mark.parametrize("name", BUGS)
def test_planted_bugs_are_found(name):
    first = FOUND_FROM.get(name, 0)
    assert found(name, range(first, first + 30)) is not None
