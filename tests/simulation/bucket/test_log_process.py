"""The simulated company with real logs: what clients were told holds, and each planted bug of the log's half is found."""

import pytest

from tests.simulation.bucket.planted_log import BUGS, found, outcome_of


@pytest.mark.parametrize("first", range(0, 6, 3))
def test_every_promise_holds_over_real_logs(first):
    merged = 0
    for seed in range(first, first + 3):
        broken, world = outcome_of(seed)
        assert broken == "", seed
        merged += sum(one.startswith("merged/") for one in world.store.objects)
    assert merged > 20


@pytest.mark.parametrize("name", BUGS)
def test_planted_bugs_of_the_log_are_found(name):
    assert found(name, range(60)) is not None
