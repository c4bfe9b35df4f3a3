"""Lookups in a partition: what has been written is found by time, and leader epochs by their offsets."""

from functools import partial

import pytest

from horolog.broker.log.partition import log_start, lookups
from horolog.broker.log.storage import StorageFault
from tests.support.log_model import DIRECTORY, Model, append_at, fill, place, read_all


@pytest.fixture
def model():
    return Model()


def test_what_is_queued_is_not_found_before_it_is_written(model):
    append_at(model, 5)
    assert lookups.first_at_or_after(model.partition, 0) is None
    assert lookups.largest_timestamp(model.partition) is None
    model.flush()
    assert place(lookups.first_at_or_after(model.partition, 0)) == (0, 5)
    assert place(lookups.largest_timestamp(model.partition)) == (0, 5)
    assert model.partition.folder.counters.lookups_by_time.value == 2


def test_nothing_is_found_at_or_behind_where_the_asker_may_look(model):
    fill(model, [5, 9])
    assert place(lookups.first_at_or_after(model.partition, 6, 2)) == (1, 9)
    assert lookups.first_at_or_after(model.partition, 6, 1) is None


def test_after_a_failed_sync_only_what_is_on_the_disk_answers(model):
    fill(model, [5])
    model.sync()
    fill(model, [9])
    model.partition.condition.stop("a sync has failed")
    assert place(lookups.first_at_or_after(model.partition, 5)) == (0, 5)
    assert lookups.first_at_or_after(model.partition, 6, 1) is None
    for look_up in (partial(lookups.first_at_or_after, timestamp=6), lookups.largest_timestamp):
        with pytest.raises(StorageFault, match="accepts no appends: a sync has failed"):
            look_up(model.partition)


def test_list_offsets_v0_goes_by_file_times(model):
    """Finding 17: newest first; the log's end counts as written now, unless the active segment is empty."""
    fill(model, [1, 2, 3])
    for base, mtime_ms in ((0, 100), (1, 200), (2, 300)):
        model.storage.set_mtime_ms(f"{DIRECTORY}/{base:020d}.log", mtime_ms)
    before = partial(lookups.offsets_before, model.partition)
    assert before(-1, 10, 1000) == [3, 2, 1, 0]
    assert before(-2, 10, 1000) == [0]
    assert before(1000, 10, 1000) == [3, 2, 1, 0]
    assert before(999, 10, 1000) == [2, 1, 0]
    assert before(200, 10, 1000) == [1, 0]
    assert before(99, 10, 1000) == []
    assert before(-1, 2, 1000) == [3, 2]
    assert lookups.offsets_before(Model().partition, -1, 10, 1000) == [0]


def test_the_first_of_equal_times_is_the_largest(model):
    fill(model, [5, 9, 9, 1])
    assert place(lookups.largest_timestamp(model.partition)) == (1, 9)
    log_start.delete_records_before(model.partition, 2)
    assert place(lookups.largest_timestamp(model.partition)) == (2, 9)
    log_start.delete_records_before(model.partition, 3)
    assert place(lookups.largest_timestamp(model.partition)) == (3, 1)


def test_the_epoch_goes_up_after_a_stop_that_was_not_clean(model):
    fill(model, [1, 2])
    model.sync()
    assert model.partition.leader_epoch == 0
    model.rows = read_all(model.partition)
    model.kill_and_open()
    assert model.partition.leader_epoch == 1
    assert lookups.end_offset_for_epoch(model.partition, 1) == (1, 2)
    append_at(model, 5)
    model.flush()
    assert lookups.end_offset_for_epoch(model.partition, 0) == (0, 2)
    assert lookups.end_offset_for_epoch(model.partition, 1) == (1, 3)
    assert [lookups.epoch_at(model.partition, offset) for offset in range(4)] == [0, 0, 1, 1]
    assert lookups.first_at_or_after(model.partition, 3).leader_epoch == 1
    model.close_and_open()
    assert model.partition.leader_epoch == 1
