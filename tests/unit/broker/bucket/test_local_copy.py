"""The local log that is made of runs: segments, epochs, producers, and nothing of what lay there before."""

import logging
import random

import pytest

from horolog.base.clock import ManualClock
from horolog.broker.bucket import segment_meta, wal_object
from horolog.broker.bucket.covered import Covered
from horolog.broker.bucket.local_copy import LocalCopy
from horolog.broker.bucket.names import Wal
from horolog.broker.bucket.remote_front import RemoteFront
from horolog.broker.bucket.seams import Opening, Stretch
from horolog.broker.bucket.shipped_partition import ShippedPartition
from horolog.broker.bucket.wal_index import FoundRun
from horolog.broker.bucket.wal_object import Identity
from horolog.broker.log.files import checkpoints
from horolog.broker.log.indexes import AbortedTransaction, transaction_index
from horolog.broker.log.manager import LogManager
from horolog.broker.log.partition import append_marker, lookups
from horolog.broker.log.producers import ProducerBatch, snapshot_file
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.control import Marker
from horolog.protocol.records.head import heads_in
from horolog.protocol.records.record import Record
from tests.support import transactional
from tests.support.bucket_segments import CountingStore, Reader, filled, upload
from tests.support.log_model import NEW, NOW_MS, new_storage, read_all, small_config
from tests.support.logs import broker_settings
from tests.support.shipping import TOPIC_ID, append, new_partition, run_at

WAL = Wal(1, 10)


@pytest.fixture
def logs():
    return LogManager(["/data"], new_storage(), ManualClock(NOW_MS), broker_settings(), kind=ShippedPartition)


def opening(epoch=9):
    return Opening("t", TOPIC_ID, 0, small_config(), (Stretch(epoch, Wal(3, 30)),))


def stored(*runs):
    """Runs as they are found in an object, with their bytes."""
    data = wal_object.encode(Identity(WAL, 0, 1000, b"n" * 16, is_merged=True), runs)
    return [(FoundRun("merged", one, None), data[one.position : one.end]) for one in wal_object.decode(data).runs]


def copied(logs, *runs, epoch=9, end_offset=None):
    copy = LocalCopy(logs, opening(epoch), NOW_MS)
    for found, data in stored(*runs):
        copy.add(found, data)
    return copy.open(copy.end_offset if end_offset is None else end_offset)


def test_no_runs_make_an_empty_partition(logs):
    partition = copied(logs)
    assert (partition.log_start_offset, partition.high_watermark, partition.leader_epoch) == (0, 0, 9)
    assert logs.partitions["t", 0] is partition
    append(partition, 5)
    assert partition.written_end == 1


def test_all_that_the_runs_have_counts_at_once(logs):
    partition = copied(logs, run_at(0, 0, count=2, epoch=1), run_at(2, 1, epoch=4))
    assert partition.high_watermark == partition.written_end == partition.shipping_end == 3
    assert [row[0] for row in read_all(partition)] == [0, 1, 2]
    assert partition.topic_id == checkpoints.load_topic_id(logs.resources.storage, partition.directory) == TOPIC_ID
    assert [lookups.epoch_at(partition, offset) for offset in range(4)] == [1, 1, 4, 9]
    assert lookups.end_offset_for_epoch(partition, 1) == (1, 2)


def test_runs_of_an_import_keep_the_epochs_of_their_leaders(logs):
    first = run_at(0, 0, count=2, epoch=1)._replace(leader_epoch=4)
    partition = copied(logs, first, run_at(2, 1, epoch=4))
    assert [lookups.epoch_at(partition, offset) for offset in range(4)] == [1, 1, 4, 9]


def test_segments_are_as_long_as_the_topic_allows(logs):
    partition = copied(logs, *(run_at(n, n, size=300) for n in range(8)))
    assert len(partition.segments) > 2
    assert all(one.size_bytes <= partition.config.segment_bytes for one in partition.segments)
    assert len(read_all(partition)) == 8
    assert lookups.first_at_or_after(partition, 5).offset == 0


def test_what_was_never_shipped_is_dropped(logs):
    stray = logs.create("t", 0, small_config(), TOPIC_ID)
    append(stray, 1, 2, 3)
    partition = copied(logs, run_at(0, 0))
    assert stray.condition.fault is not None
    assert [row[0] for row in read_all(partition)] == [0]
    append(partition, 8)
    partition.shipped(2)
    assert len(read_all(partition)) == 2


def test_a_folder_that_is_not_open_is_dropped_too_and_its_files_are_removed(logs):
    logs.open(lambda _: small_config())
    storage = logs.resources.storage
    append(logs.create("t", 0, small_config(), TOPIC_ID), 1)
    logs.partitions.clear()
    partition = copied(logs)
    assert partition.written_end == 0
    names = storage.list_dir("/data")
    assert any(one.endswith("-delete") for one in names)
    for job in logs.removal_jobs(NOW_MS):
        job()
    assert not [one for one in storage.list_dir("/data") if one.endswith("-delete")]


def test_offsets_that_are_lost_are_not_given_out_again(logs):
    partition = copied(logs, run_at(0, 0), end_offset=5)
    append(partition, 7)
    assert partition.written_end == 6


def test_a_gap_inside_is_passed_over_by_readers(logs):
    partition = copied(logs, run_at(0, 0), run_at(4, 1))
    assert [row[0] for row in read_all(partition)] == [0, 4]


def test_a_run_that_is_there_twice_counts_once(logs):
    copy = LocalCopy(logs, opening(), NOW_MS)
    ((found, data),) = stored(run_at(0, 0))
    copy.add(found, data)
    copy.add(found, data)
    assert "up to 1" in repr(copy)
    assert copy.open(1).size_bytes == len(data)


def test_a_batch_that_was_shipped_and_not_answered_is_a_duplicate(logs):
    records = [Record(0, 5, 0, b"k", b"v")]
    data = bytes(encode_batch(records, producer_id=7, producer_epoch=0, base_sequence=0))
    run = run_at(0, 0)._replace(pieces=[data])
    partition = copied(logs, run)
    again = partition.append(data, NOW_MS, produce_version=NEW)
    assert (again.base_offset, again.last_offset, partition.log_end_offset) == (0, 0, 1)


def test_a_copy_that_is_left_closes_its_file(logs):
    copy = LocalCopy(logs, opening(), NOW_MS)
    ((found, data),) = stored(run_at(0, 0))
    copy.add(found, data)
    copy.close()
    copy.close()
    assert copied(logs).written_end == 0


def behind_segments(logs, store, *runs, log_start_offset=0):
    """A partition with segments in the bucket and runs behind them; also those segments' source."""
    local = filled(random.Random(8), 20)
    segments = upload(local, store)
    end = segments[-1].contents.next_offset
    state = [snapshot_file.SnapshotEntry(7, 0, 0, end - 1, 0, NOW_MS, -1, -1)]
    covered = Covered(log_start_offset, tuple(segments), snapshot_file.encode(state), ((1, 0), (3, 5)))
    copy = LocalCopy(logs, opening(), NOW_MS, covered)
    for found, data in stored(*(run_at(end + offset, offset + 5, epoch=4) for offset in runs)):
        copy.add(found, data)
    reader = Reader(store)
    return local, reader, copy.open(0, RemoteFront(reader.metas, segments))


def test_behind_segments_in_the_bucket_only_runs_are_copied(logs):
    store = CountingStore()
    local, reader, partition = behind_segments(logs, store, -1, 0, 1)
    end = local.written_end
    assert (partition.log_start_offset, partition.high_watermark) == (0, end + 2)
    assert [lookups.epoch_at(partition, offset) for offset in (0, 5, end, end + 2)] == [1, 3, 4, 9]
    assert store.gets == 0
    first = reader.served(lambda: partition.read(0, 1 << 20))
    assert first == local.read(0, 1 << 20)
    assert partition.producers.check(batch_of(7, 0, end - 1)) is not None, "its last batch is known"


def batch_of(producer_id, sequence, offset):
    return ProducerBatch(producer_id, 0, sequence, sequence, offset, offset, NOW_MS, False)


def test_a_transaction_may_begin_with_a_sequence_of_the_aborted_one_in_the_last_segment(logs):
    local, store = new_partition(), CountingStore()
    for sequence, is_committed in enumerate((True, False)):
        local.append(transactional.batch([b"v"], 7, 0, sequence), NOW_MS, produce_version=NEW)
        append_marker(local, 7, 0, Marker(is_committed, 0), NOW_MS)
        local.flush()
    local.roll(NOW_MS)
    local.shipped(local.written_end)
    segments = upload(local, store)
    meta = segment_meta.decode(store.objects[segments[-1].meta_key])
    covered = Covered(0, tuple(segments), meta.producers, ((1, 0),), meta.batches, meta.transaction_index)
    reader = Reader(store)
    partition = LocalCopy(logs, opening(), NOW_MS, covered).open(0, RemoteFront(reader.metas, segments))
    partition.append(transactional.batch([b"again"], 7, 0, 1), NOW_MS, produce_version=NEW)
    partition.flush()
    assert partition.written_end == local.written_end + 1


def test_without_runs_it_goes_on_where_the_segments_end(logs, caplog):
    local, _, partition = behind_segments(logs, CountingStore(), log_start_offset=4)
    assert (partition.log_start_offset, partition.log_end_offset) == (4, local.written_end)
    append(partition, 5)
    assert partition.written_end == local.written_end + 1
    assert "gone" not in caplog.text


def whole_copy(logs, transactions=b""):
    """A copy of a compacted topic that has brought its segments here, and what they are."""
    store = CountingStore()
    local = filled(random.Random(8))
    segments = upload(local, store)
    covered = Covered(0, tuple(segments), epochs=((0, 0),))
    config = small_config(delete=False, compact=True)
    compacted = Opening("t", TOPIC_ID, 0, config, (Stretch(9, Wal(3, 30)),))
    copy = LocalCopy(logs, compacted, NOW_MS, covered)
    for one in segments:
        copy.begin_whole(one.base_offset, transactions)
        data = store.objects[one.log_key]
        for at in range(0, len(data), 1000):
            copy.write_whole(data[at : at + 1000], at)
    return local, segments, copy


@pytest.mark.parametrize("has_runs", [True, False])
def test_a_log_that_has_to_be_whole_has_the_segments_of_the_bucket(logs, has_runs):
    local, segments, copy = whole_copy(logs, transaction_index.encode([]))
    assert copy.is_whole
    end = segments[-1].next_offset
    for found, data in stored(*([run_at(end, 7)] if has_runs else [])):
        copy.add(found, data)
    partition = copy.open(0)
    assert partition.log_start_offset == 0
    assert read_all(partition)[: len(read_all(local))] == read_all(local)
    assert [one.base_offset for one in partition.segments[:-1]] == [one.base_offset for one in segments]
    append(partition, 5)
    assert partition.written_end == end + has_runs + 1
    assert partition.unread_bases == ()


@pytest.mark.parametrize(
    "transactions", [b"", transaction_index.encode([AbortedTransaction(7, 0, 3, 4)])], ids=["none", "one"]
)
def test_a_segment_that_is_left_out_leaves_no_files(logs, transactions):
    _, segments, copy = whole_copy(logs, transactions)
    lost = segments[1].base_offset
    copy.leave_out(lost)
    partition = copy.open(0)
    assert partition.unread_bases == (lost,)
    assert lost not in [one.base_offset for one in partition.segments]
    assert not any(str(lost).zfill(20) in name for name in logs.resources.storage.list_dir(partition.directory))


def test_a_start_without_segments_is_that_of_the_log(logs):
    copy = LocalCopy(logs, opening(), NOW_MS, Covered(2))
    for found, data in stored(run_at(0, 0, count=2, epoch=1), run_at(2, 1, epoch=4)):
        copy.add(found, data)
    partition = copy.open(3)
    assert (partition.log_start_offset, partition.high_watermark) == (2, 3)


@pytest.mark.parametrize("value_bytes", [40, 500], ids=["one segment", "several"])
def test_aborted_transactions_are_found_in_the_runs_without_a_warning(logs, caplog, value_bytes):
    local = new_partition()
    runs = []
    for number in range(6):
        data = transactional.batch([b"v" * value_bytes], 7, 0, number)
        offset = local.append(data, NOW_MS, produce_version=NEW).base_offset
        append_marker(local, 7, 0, Marker(number % 2 == 0, 0), NOW_MS)
        local.flush()
        local.shipped(local.written_end)
        pieces = [first_batch(local.read(each, 1 << 20)) for each in (offset, offset + 1)]
        runs.append(run_at(offset, number)._replace(next_offset=offset + 2, pieces=pieces))
    partition = copied(logs, *runs)
    assert partition.aborted.overlapping(0, 99) == local.aborted.overlapping(0, 99)
    assert len(partition.aborted.overlapping(0, 99)) == 3
    assert [one for one in caplog.records if one.levelno >= logging.WARNING] == []


def first_batch(data):
    return data[: next(heads_in(data)).end]
