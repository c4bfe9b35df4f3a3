"""Idempotent producers with five batches under way over the simulated company: none has to begin a new epoch, and each record is there once."""

from unittest.mock import patch

import pytest

from horolog.broker.bucket.new_lead import NewLead
from tests.simulation.bucket.pipelines import outcome_of

GAP_SEEDS = range(4)


@pytest.mark.parametrize("seed", GAP_SEEDS[:3])
def test_producers_go_on_over_failovers_with_every_record_once(seed):
    assert outcome_of(seed) == ""


def test_a_gap_behind_a_refused_batch_is_found():
    with patch.object(NewLead, "holds", lambda *_: False):
        assert any("is refused with" in outcome_of(seed) for seed in GAP_SEEDS)
