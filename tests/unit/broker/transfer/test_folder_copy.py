"""The folder of a partition as recovery and Kafka find it."""

import pytest

from horolog.broker.bucket.covered import NOTHING
from horolog.broker.bucket.producers_behind import ProducersAt
from horolog.broker.bucket.wal_index import FoundRun
from horolog.broker.log.files import checkpoints, leader_epochs
from horolog.broker.log.producers import producers_file, snapshot_file
from horolog.broker.log.recovery import PartitionFolder
from horolog.broker.transfer.folder_copy import FolderCopy
from tests.support.log_model import NOW_MS, new_storage, small_config
from tests.support.shipping import TOPIC_ID, batch_at, run_at
from tests.unit.broker.bucket.test_local_copy import stored

PLACE = PartitionFolder("t", 0, "/data/t-0")


@pytest.fixture
def storage():
    return new_storage()


def copy_of(storage, covered=NOTHING, **changes):
    return FolderCopy(storage, PLACE, TOPIC_ID, small_config(**changes), covered)


def add(copy, *runs):
    for found, data in stored(*runs):
        assert isinstance(found, FoundRun)
        copy.add(found, data)


def names(storage, suffix):
    return sorted(one for one in storage.list_dir(PLACE.directory) if one.endswith(suffix))


def test_runs_become_segments_with_all_that_belongs_to_them(storage):
    copy = copy_of(storage, segment_bytes=300)
    add(copy, *(run_at(offset, offset, epoch=offset // 3) for offset in range(6)))
    copied = copy.finish(6, NOW_MS)
    assert (copied.start_offset, copied.end_offset, copied.damaged_bytes, copy.gaps) == (0, 6, 0, [])
    logs, indexes = names(storage, ".log"), names(storage, ".index")
    assert len(logs) == len(indexes) == len(names(storage, ".timeindex")) > 1
    assert copied.size_bytes == sum(len(storage.read_all(f"{PLACE.directory}/{one}")) for one in logs)
    assert checkpoints.load_topic_id(storage, PLACE.directory) == TOPIC_ID
    written = storage.read_all(f"{PLACE.directory}/{checkpoints.LEADER_EPOCHS}")
    assert leader_epochs.decode(written) == [(0, 0), (1, 3)]


def test_what_an_earlier_attempt_has_left_goes(storage):
    add(copy_of(storage), run_at(7, 0))
    again = copy_of(storage)
    add(again, run_at(0, 0))
    assert again.finish(1, NOW_MS).end_offset == 1
    assert names(storage, ".log") == [f"{0:020}.log"]


def test_runs_that_are_there_already_are_left_out_and_missing_ones_reported(storage):
    copy = copy_of(storage)
    for run in (run_at(0, 0, count=2), run_at(1, 1), run_at(4, 2)):
        add(copy, run)
    assert copy.finish(7, NOW_MS).end_offset == 7
    assert copy.gaps == [range(2, 4), range(5, 7)]
    assert "up to 5" in repr(copy)


def test_segments_come_before_runs_with_the_producers_behind_them(storage):
    producers = ProducersAt(2)
    covered = NOTHING._replace(
        log_start_offset=2, epochs=((3, 0),), producers=producers.snapshot(), batches=producers.batches()
    )
    copy = copy_of(storage, covered)
    copy.begin_segment(0)
    copy.write(batch_at(0, 3))
    copy.write(batch_at(1, 3) + batch_at(2, 3))
    copy.end_segments()
    copy.end_offset = 3
    add(copy, run_at(3, 0, epoch=4))
    copied = copy.finish(4, NOW_MS)
    assert (copied.start_offset, copied.end_offset) == (2, 4)
    assert names(storage, ".log") == [f"{0:020}.log", f"{3:020}.log"]
    assert storage.exists(f"{PLACE.directory}/{snapshot_file.file_name(0)}")
    assert storage.exists(f"{PLACE.directory}/{producers_file.FILE_NAME}")


def test_damage_is_counted(storage):
    copy = copy_of(storage)
    copy.begin_segment(0)
    copy.write(batch_at(0) + bytes(100) + batch_at(1))
    copy.end_offset = 2
    assert copy.finish(2, NOW_MS).damaged_bytes == 100


def test_a_partition_without_records(storage):
    copied = copy_of(storage, NOTHING._replace(log_start_offset=5)).finish(0, NOW_MS)
    assert (copied.start_offset, copied.end_offset, copied.size_bytes) == (5, 5, 0)
