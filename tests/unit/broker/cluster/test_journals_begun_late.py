"""A journal that workers could not begin on a full disk, and begin once there is room: what a start makes of it."""

import pytest

from horolog.broker.cluster import worker_checkpoints
from tests.support.crew import Crew
from tests.support.crew_records import Alone


@pytest.fixture
def crew():
    return Crew((1, 2))


@pytest.fixture
def without(crew):
    """Workers that had no room for a journal; now there is."""
    alone = Alone(crew)
    alone.cluster.create_topic("a", 3, {"retention.ms": "77"})
    alone.close()
    crew.storage.capacity_bytes = crew.storage.used_bytes()
    crew.start()
    crew.storage.capacity_bytes = None
    for logs in crew.logs.values():
        logs.write_log_starts()
    assert worker_checkpoints.nodes_in(crew.storage, "/data") == [1, 2]
    return crew


def test_a_journal_that_was_never_begun_is_not_lost(without):
    without.kill()
    without.merge()
    state = Alone(without).cluster.state
    assert (state.topics["a"].overrides, state.rules_in_doubt) == ({"retention.ms": "77"}, False)


def test_one_that_was_begun_late_is_missed(without):
    without.clusters[1].changes.check_record()
    without.clusters[2].changes.check_record()
    without.clusters[2].create_topic("late", 1, {})
    without.kill()
    without.storage.remove("/data/horolog-journal")
    without.merge()
    assert Alone(without).cluster.state.rules_in_doubt


def test_workers_go_on_where_the_record_cannot_be_written_behind_a_journal_that_is_begun_late(without, caplog):
    without.storage.fail("create", "horolog-cluster", times=1)
    without.clusters[1].changes.check_record()
    assert "the record does not say that there is a journal" in caplog.text
    without.clusters[2].changes.check_record()
    without.clusters[2].create_topic("late", 1, {})
    without.kill()
    without.merge()
    assert set(Alone(without).cluster.topics) == {"a", "late"}
