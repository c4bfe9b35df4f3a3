"""What retention takes tells of producers no longer: all that is known of them is on the disk before it goes."""

import errno
import random

import pytest

from horolog.broker.log.partition import closing, log_start
from horolog.broker.log.segments import LOG_SUFFIX
from horolog.broker.log.storage.memory_disk import ALL
from tests.support.log_model import DIRECTORY, NEW, NOW_MS, Model, encode, send, small_config

RETENTION_MS = 1000
LATER_MS = NOW_MS + RETENTION_MS + 1
BATCH_BYTES = 77


def filled(batches=1, **config):
    """Batches of two records, of one idempotent producer; the model and where each is."""
    model = Model(small_config(retention_ms=RETENTION_MS, **config))
    return model, [send(model, 2 * number) for number in range(batches)]


def logs_of(model):
    return [name for name in model.storage.list_dir(DIRECTORY) if name.endswith(LOG_SUFFIX)]


def retain(model):
    """As the broker does it: what waits for a sync goes after the next one."""
    gone = log_start.apply_retention(model.partition, LATER_MS)
    if model.partition.expiry.waiting_upto is not None:
        model.partition.sync()
        assert model.partition.expiry.is_due
        gone += log_start.finish_retention(model.partition, LATER_MS)
    return gone


def kill(model):
    model.storage.die()
    model.reopen(was_clean=False)


def cut_power(model):
    model.storage.crash(random.Random(1))
    model.reopen(was_clean=False)


def stop(model):
    closing.close(model.partition)
    model.reopen(was_clean=True)


@pytest.mark.parametrize("end", [kill, cut_power, stop])
def test_a_retry_is_known_after_retention_has_emptied_the_log(end):
    model, places = filled(3)
    assert len(retain(model)) == 1
    assert model.partition.log_start_offset == model.partition.log_end_offset == 6
    for _ in range(2):
        end(model)
        assert [send(model, 2 * number) for number in range(3)] == places, (
            "batches that are sent again are told where they were"
        )
        assert model.partition.log_end_offset == 6
    assert send(model, 6) == 6, "the next one is taken"


@pytest.mark.parametrize("end", [kill, cut_power])
def test_nothing_goes_before_the_snapshot_is_there(end):
    model, places = filled()
    model.partition.sync()
    assert log_start.apply_retention(model.partition, LATER_MS) == []
    assert model.partition.log_start_offset == 0
    assert not model.partition.expiry.is_due, "there was no sync"
    end(model)
    assert send(model, 0) == places[0]
    assert model.partition.log_end_offset == 2
    assert len(retain(model)) == 1


def test_segments_that_a_snapshot_speaks_of_go_at_once():
    model, _ = filled(8, segment_bytes=2 * BATCH_BYTES + 40)
    model.partition.sync()
    closed = len(model.partition.segments) - 1
    assert closed >= 3
    assert len(log_start.apply_retention(model.partition, LATER_MS)) == closed, "the rolls have left snapshots"
    assert model.partition.expiry.waiting_upto == model.partition.log_end_offset
    model.partition.sync()
    assert len(log_start.finish_retention(model.partition, LATER_MS)) == 1


@pytest.mark.parametrize("end", [kill, cut_power, stop])
def test_a_full_disk_is_freed_of_what_snapshots_of_the_last_process_speak_of(end):
    model, _ = filled(8, segment_bytes=2 * BATCH_BYTES + 40)
    model.partition.sync()
    closed = len(model.partition.segments) - 1
    end(model)
    model.storage.fail("write", ".snapshot", times=ALL, code=errno.ENOSPC)
    model.partition.condition.stop("no room")
    assert len(log_start.apply_retention(model.partition, LATER_MS)) == closed


def test_where_nobody_is_known_everything_goes_at_once():
    model = Model(small_config(retention_ms=RETENTION_MS))
    model.append(2, 0, [NOW_MS], [b"v"])
    model.flush()
    assert len(log_start.apply_retention(model.partition, LATER_MS)) == 1
    assert model.partition.log_start_offset == 1


def test_who_has_been_idle_for_too_long_keeps_nothing():
    model, _ = filled()
    model.partition.producers.expiration_ms = RETENTION_MS
    assert len(log_start.apply_retention(model.partition, LATER_MS)) == 1
    assert not len(model.partition.producers)


def test_a_snapshot_that_cannot_be_written_keeps_the_last_segment_only(caplog):
    model, places = filled(8, segment_bytes=2 * BATCH_BYTES + 40)
    model.partition.sync()
    closed = len(model.partition.segments) - 1
    model.storage.fail("write", ".snapshot", times=ALL, code=errno.ENOSPC)
    assert len(log_start.apply_retention(model.partition, LATER_MS)) == closed, (
        "the room that this gives is all that is needed"
    )
    model.partition.sync()
    assert "could not be written" in caplog.text
    assert not model.partition.expiry.is_due
    kill(model)
    assert send(model, 14) == places[7]
    assert len(retain(model)) == 1
    kill(model)
    assert send(model, 14) == places[7]


def test_records_that_come_meanwhile_stay():
    model, _ = filled()
    log_start.apply_retention(model.partition, LATER_MS)
    assert send(model, 2) == 2
    model.partition.sync()
    log_start.finish_retention(model.partition, LATER_MS)
    assert (model.partition.log_start_offset, model.partition.log_end_offset) == (2, 4)


def test_a_setting_that_changes_meanwhile_counts():
    model, _ = filled()
    log_start.apply_retention(model.partition, LATER_MS)
    model.partition.configure(small_config(retention_ms=-1))
    model.partition.sync()
    assert log_start.finish_retention(model.partition, LATER_MS) == []
    assert (model.partition.log_start_offset, model.partition.expiry.waiting_upto) == (0, None)


def test_a_snapshot_asked_for_during_a_sync_waits_for_the_next():
    """It may tell of what this one has not put on the disk."""
    model, _ = filled()
    storage = model.storage
    sync_dir = storage.sync_dir

    def sync_dir_and_roll(path):
        sync_dir(path)
        storage.sync_dir = sync_dir
        send(model, 2)
        model.partition.roll(NOW_MS)

    model.partition.sync()
    model.partition.sync_state.names_changed()
    storage.sync_dir = sync_dir_and_roll
    model.partition.sync()
    assert not [name for name in storage.list_dir(DIRECTORY) if name.endswith(".snapshot")]
    model.partition.sync()
    assert [name for name in storage.list_dir(DIRECTORY) if name.endswith(".snapshot")]


def test_who_is_known_from_a_snapshot_only_is_known_when_aborted_transactions_are_found_again():
    """They are found by reading the whole log, which says nothing of producers whose records have expired."""
    model, places = filled()
    retain(model)
    send(model, 0, producer_id=8)
    model.partition.sync()
    model.storage.write_atomically(f"{DIRECTORY}/{2:020d}.txnindex", b"damaged")
    kill(model)
    assert send(model, 0) == places[0]
    assert send(model, 0, producer_id=8) == 2
    assert {producer_id for producer_id, _ in model.partition.producers} == {7, 8}


def test_nothing_waits_that_was_not_found():
    model, _ = filled()
    assert repr(model.partition.expiry) == "<SegmentExpiry: waiting up to None>"
    assert not model.partition.expiry.is_due


def test_what_the_clock_of_a_producer_keeps_is_counted_once():
    """A record from a year ahead keeps its segment."""
    model, _ = filled()
    partition = model.partition
    partition.append(encode(2, 0, [NOW_MS + 366 * 86_400_000], [b"v"]), NOW_MS, produce_version=NEW)
    counters = partition.folder.counters
    for _ in range(2):
        partition.expiry.find(partition, LATER_MS)
    assert counters.segments_kept_by_future.value == 1
