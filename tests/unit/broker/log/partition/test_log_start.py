"""The start of a log moves: by retention, however much of it works, and where records are deleted."""

import logging
from contextlib import suppress
from itertools import count

import pytest

from horolog.broker.log.partition import OffsetOutOfRange, log_start
from horolog.broker.log.producers import snapshot_file
from horolog.broker.log.storage import StorageFault
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.record import Record
from tests.support.log_model import DIRECTORY, NEW, NOW_MS, Model, append_at, fill, read_all, small_config

DAY_MS = 86_400_000


@pytest.fixture
def model():
    return Model()


def bases(model):
    return [segment.base_offset for segment in model.partition.segments]


def test_old_segments_go_from_the_front():
    model = Model(small_config(retention_ms=DAY_MS, segment_ms=1 << 60))
    fill(model, [NOW_MS - 3 * DAY_MS, NOW_MS - 2 * DAY_MS, NOW_MS, NOW_MS - 5 * DAY_MS, NOW_MS])
    log_start.apply_retention(model.partition, NOW_MS)
    assert bases(model) == [2, 3, 4]
    assert model.partition.log_start_offset == 2
    with pytest.raises(OffsetOutOfRange):
        model.partition.read(1, 100)
    assert [row[0] for row in read_all(model.partition)] == [2, 3, 4]


@pytest.mark.parametrize("renames", range(6))
def test_segments_that_cannot_be_renamed_stay_and_nothing_is_missing_behind_the_start(renames):
    model = Model(small_config(retention_ms=DAY_MS, segment_ms=1 << 60))
    fill(model, [1, 2, NOW_MS])
    rename, calls = model.storage.rename, count()

    def failing(old, new):
        if next(calls) >= renames:
            raise StorageFault("no")
        rename(old, new)

    model.storage.rename = failing
    with suppress(StorageFault):
        log_start.apply_retention(model.partition, NOW_MS)
    model.storage.rename = rename
    start = model.partition.log_start_offset
    assert start == (0 if renames == 0 else 1 if renames < 4 else 2)
    assert [row[0] for row in read_all(model.partition)] == list(range(start, 3))
    log_start.apply_retention(model.partition, NOW_MS)
    assert [row[0] for row in read_all(model.partition)] == [2]
    model.partition.sync()
    model.kill_and_open()
    assert model.partition.log_start_offset == 2


def test_when_everything_is_too_old_an_empty_segment_remains():
    """Finding 23."""
    model = Model(small_config(retention_ms=DAY_MS, segment_ms=1 << 60))
    fill(model, [1, 2, 3])
    log_start.apply_retention(model.partition, NOW_MS)
    assert bases(model) == [3]
    assert (model.partition.log_start_offset, model.partition.log_end_offset) == (3, 3)
    model.close_and_open()
    assert append_at(model, 4).base_offset == 3


def test_one_record_from_the_future_blocks_with_one_word_of_warning(caplog):
    model = Model(small_config(retention_ms=DAY_MS, segment_ms=1 << 60))
    fill(model, [NOW_MS + 400 * DAY_MS, 1, 2])
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            log_start.apply_retention(model.partition, NOW_MS)
    assert bases(model) == [0, 1, 2]
    assert len([one for one in caplog.records if "in the future" in one.message]) == 1
    assert model.partition.folder.counters.segments_kept_by_future.value == 1


def test_records_before_an_offset_are_deleted(model):
    fill(model, [1, 2, 3])
    log_start.delete_records_before(model.partition, 1)
    assert [row[0] for row in read_all(model.partition)] == [1, 2]
    log_start.apply_retention(model.partition, NOW_MS)
    assert bases(model) == [1, 2]
    for offset in (-1, 4):
        with pytest.raises(OffsetOutOfRange):
            log_start.delete_records_before(model.partition, offset)
    log_start.delete_records_before(model.partition, 0)
    assert model.partition.log_start_offset == 1


def test_records_are_not_deleted_where_nothing_can_be_written(model):
    fill(model, [1, 2, 3])
    model.partition.condition.stop("no room")
    with pytest.raises(StorageFault):
        log_start.delete_records_before(model.partition, 1)
    assert model.partition.log_start_offset == 0


def test_the_active_segment_stays_where_no_other_can_be_begun():
    model = Model(small_config(retention_ms=DAY_MS, segment_ms=1 << 60))
    fill(model, [1, 2, 3])
    model.partition.condition.stop("no room")
    assert [one.base_offset for one in log_start.apply_retention(model.partition, NOW_MS)] == [0, 1]
    assert bases(model) == [2]


def test_what_waits_for_a_snapshot_goes_with_the_second_call():
    model = Model(small_config(retention_ms=DAY_MS, segment_ms=1 << 60))
    data = bytes(encode_batch([Record(0, 1, 0, b"k", b"v")], producer_id=7, producer_epoch=0, base_sequence=0))
    model.partition.append(data, NOW_MS, produce_version=NEW)
    model.flush()
    assert log_start.apply_retention(model.partition, NOW_MS) == []
    assert model.partition.expiry.waiting_upto is not None
    model.sync()
    assert model.storage.exists(f"{DIRECTORY}/{snapshot_file.file_name(1)}")
    assert [one.base_offset for one in log_start.finish_retention(model.partition, NOW_MS)] == [0]
    assert bases(model) == [1]


def test_a_start_inside_a_segment_has_to_be_on_record(model):
    fill(model, [1, 2, 3])
    model.sync()
    partition = model.partition
    assert not log_start.is_inside_segment(partition)
    log_start.delete_records_before(partition, 1)
    assert log_start.is_inside_segment(partition)
    log_start.apply_retention(partition, NOW_MS)
    assert bases(model)[0] == 1
    assert log_start.is_inside_segment(partition), "a power cut may bring the first segment back"
    partition.sync()
    assert not log_start.is_inside_segment(partition)


def test_where_nobody_has_saved_the_producers_retention_asks_for_it():
    """As after a kill: the snapshots that were to be written are gone with the process."""
    model = Model(small_config(retention_ms=DAY_MS, segment_ms=1 << 60))
    for sequence, timestamp in enumerate([1, 2, NOW_MS]):
        records = [Record(0, timestamp, 0, b"k", b"v" * 900)]
        data = bytes(encode_batch(records, producer_id=7, producer_epoch=0, base_sequence=sequence))
        model.partition.append(data, NOW_MS, produce_version=NEW)
    model.flush()
    model.reopen(was_clean=False)
    assert not model.partition.sync_state.has_snapshots
    assert log_start.apply_retention(model.partition, NOW_MS) == []
    assert model.partition.sync_state.has_snapshots
    model.sync()
    assert [one.base_offset for one in log_start.finish_retention(model.partition, NOW_MS)] == [0, 1]
