"""Leaders that are killed at any request: nothing is missing, and the store has nothing else; each planted bug is found."""

import pytest

from tests.simulation.bucket.crashes import BUGS, outcome_of


@pytest.mark.parametrize("seed", range(6))
def test_nothing_is_missing_and_nothing_is_left_over_after_ten_crashes(seed):
    assert outcome_of(seed, 10) == ""


@pytest.mark.parametrize("name", BUGS)
def test_planted_bugs_of_removals_are_found(name):
    assert any(outcome_of(seed, 6, *BUGS[name]()) for seed in range(20))
