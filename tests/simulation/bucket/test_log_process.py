"""The simulated company with real logs: what clients were told holds, and each planted bug of the log's half is found."""

import pytest

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


@pytest.mark.parametrize("name", BUGS)
def test_planted_bugs_of_the_log_are_found(name):
    first = FOUND_FROM.get(name, 0)
    assert found(name, range(first, first + 60)) is not None
