"""The runs of what a partition has written and not shipped: whole batches, in order, over the ends of segments."""

import pytest

from horolog.broker.bucket import unshipped_runs
from horolog.broker.log.partition import append_marker
from horolog.broker.log.storage import StorageFault
from horolog.protocol.records.control import Marker
from horolog.protocol.records.head import heads_in
from tests.support.shipping import TOPIC_ID, append, new_partition


@pytest.fixture
def partition():
    return new_partition()


def test_nothing_is_taken_where_all_is_under_way(partition):
    append(partition, 5)
    partition.shipping_end = 1
    assert unshipped_runs.take(partition, 7, 1000) == ([], 1, 0)


def test_a_run_has_the_bytes_of_the_log_and_says_what_they_are(partition):
    partition.lead(4)
    append(partition, 9, 5, 7)
    taken = unshipped_runs.take(partition, 7, 1 << 20)
    (run,) = taken.runs
    assert run[:8] == (TOPIC_ID, 0, 4, 7, 0, 3, 9, 9)
    assert (taken.end_offset, taken.size_bytes) == (3, partition.size_bytes)
    data = b"".join(run.pieces)
    assert [(one.base_offset, one.leader_epoch) for one in heads_in(data)] == [(0, 4), (1, 4), (2, 4)]


def test_what_is_queued_and_not_written_is_left(partition):
    append(partition, 5)
    append(partition, 6, is_written=False)
    assert unshipped_runs.take(partition, 0, 1 << 20).end_offset == 1


def test_a_bound_leaves_whole_batches_and_one_at_least(partition):
    append(partition, 5, 6, 7)
    one = partition.size_bytes // 3
    assert unshipped_runs.take(partition, 0, 2 * one).end_offset == 2
    assert unshipped_runs.take(partition, 0, 1).end_offset == 1


def test_runs_go_on_in_the_next_segment(partition):
    append(partition, 5, 6)
    partition.roll(0)
    append(partition, 7)
    taken = unshipped_runs.take(partition, 0, 1 << 20)
    assert [(run.base_offset, run.next_offset) for run in taken.runs] == [(0, 2), (2, 3)]


def test_markers_are_shipped_and_have_no_time(partition):
    append_marker(partition, 7, 0, Marker(True, 3), 5)
    partition.flush()
    (run,) = unshipped_runs.take(partition, 0, 1 << 20).runs
    assert (run.base_offset, run.next_offset, run.max_timestamp) == (0, 1, -1)


def test_a_log_that_has_lost_its_records_is_a_fault(partition):
    append(partition, 5)
    del partition.segments[:-1]
    partition.written_end = 4
    partition.shipping_end = 1
    with pytest.raises(StorageFault, match="written at offset 1 is no longer there"):
        unshipped_runs.take(partition, 0, 1000)
