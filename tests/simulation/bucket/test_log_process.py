"""The simulated company with real logs: what clients were told holds, and each planted bug of the log's half is found."""

import math

import pytest

from tests.simulation.bucket.company_world import FAULTS_END_S
from tests.simulation.bucket.planted_log import BUGS, SHORT_SEGMENTS, found, outcome_of

FOUND_FROM = {
    "safe out of order": 7,
    "strays count": 9,
    "a fence answers as if all were safe": 11,
    "records under way are refused": 275,
}
"""Where to begin with bugs that not every seed shows: a minute of three brokers takes a second."""


@pytest.mark.parametrize("first", range(0, 4, 2))
def test_every_promise_holds_over_real_logs(first):
    named = 0
    for seed in range(first, first + 2):
        broken, world = outcome_of(seed, SHORT_SEGMENTS)
        assert broken == "", seed
        named += sum(one.startswith("manifest/") for one in world.store.objects)
    assert named > 4


def test_every_promise_holds_over_a_store_that_refuses_to_delete_and_objects_go_later():
    refused = 0
    for seed in range(3):
        kept = []
        for keeps_until in (0.0, FAULTS_END_S, math.inf):
            broken, world = outcome_of(seed, SHORT_SEGMENTS, keeps_until=keeps_until)
            assert broken == "", (seed, keeps_until)
            refused += world.store.refused_deletes
            kept.append(len(world.store.objects))
        assert kept[1] < kept[0] + 20 < kept[2], "what has waited is deleted"
    assert refused > 20


@pytest.mark.parametrize("name", BUGS)
def test_planted_bugs_of_the_log_are_found(name):
    first = FOUND_FROM.get(name, 0)
    assert found(name, range(first, first + 60)) is not None
