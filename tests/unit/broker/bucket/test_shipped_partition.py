"""A partition whose records count once they are shipped: what readers see until then, and what a fault of the disk leaves."""

import random

import pytest

from horolog.broker.bucket.new_lead import IS_NEW_FOR_MS
from horolog.broker.bucket.producers_behind import known_at
from horolog.broker.bucket.shipped_partition import ShippedPartition
from horolog.broker.log.files import LeaderEpochs
from horolog.broker.log.partition import OffsetOutOfRange, Resources, append_marker, log_start, lookups
from horolog.broker.log.recovery import Circumstances, PartitionFolder, create_partition, open_log
from horolog.broker.log.storage import StorageFault
from horolog.broker.log.validation import RefusedSet
from horolog.protocol.errors import ErrorCode
from horolog.protocol.records.control import Marker
from tests.support import shipping
from tests.support.bucket_segments import CONFIG, CountingStore, Reader, filled, upload
from tests.support.log_model import DIRECTORY, NEW, NOW_MS, encode, new_storage, small_config
from tests.support.transactional import batch

NOT_LEADER, GAP = ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
PLACE = PartitionFolder("t", 0, DIRECTORY)


@pytest.fixture
def resources():
    return Resources(new_storage(), kind=ShippedPartition)


@pytest.fixture
def partition(resources):
    return create_partition(PLACE, None, small_config(), resources, NOW_MS)


def append(partition, *timestamps):
    for timestamp in timestamps:
        partition.append(encode(2, 0, [timestamp], [b"v" * 40]), NOW_MS, produce_version=NEW)
    partition.flush()


def test_readers_see_what_is_shipped(partition):
    append(partition, 5, 6, 7)
    assert isinstance(partition, ShippedPartition)
    assert (partition.written_end, partition.high_watermark) == (3, 0)
    assert partition.read(0, 1 << 20) == b""
    assert partition.bytes_ahead(0, 3) == 0
    assert lookups.largest_timestamp(partition) is None
    partition.shipped(2)
    whole = partition.read(0, 1 << 20)
    assert len(whole) == partition.bytes_ahead(0, 3)
    assert lookups.largest_timestamp(partition).offset == 1
    assert lookups.first_at_or_after(partition, 7) is None
    partition.shipped(3)
    assert len(partition.read(0, 1 << 20)) == 3 * len(whole) // 2
    with pytest.raises(OffsetOutOfRange):
        partition.read(4, 100)


def test_a_reader_at_the_end_of_what_is_shipped_goes_on_there(partition):
    append(partition, 5, 6)
    partition.shipped(1)
    assert partition.read(0, 1 << 20)
    assert partition.read(1, 1 << 20) == b""
    partition.shipped(2)
    assert partition.read(1, 1 << 20)[:8] == (1).to_bytes(8, "big")


def produce(partition, sequence, now_ms=NOW_MS, epoch=0, producer_id=7):
    """The error that the batch is refused with, or its offset."""
    data = batch([b"v"], producer_id, epoch, sequence, timestamp=NOW_MS)
    try:
        return partition.append(data, now_ms, produce_version=NEW)[0]
    except RefusedSet as refused:
        return refused.code


class TestANewLead:
    """A batch that is behind one which was refused, because clients were not served of the partition yet, is refused alike."""

    def test_a_gap_is_refused_as_the_batch_before_was(self, partition):
        assert [produce(partition, one) for one in (0, 2, 3, 1, 2, 3)] == [0, NOT_LEADER, NOT_LEADER, 1, 2, 3]

    def test_so_is_the_second_batch_of_a_producer_that_is_not_known(self, partition):
        assert [produce(partition, one) for one in (1, 2, 0, 1)] == [NOT_LEADER, NOT_LEADER, 0, 1]

    def test_so_is_the_second_batch_of_a_new_epoch(self, partition):
        assert [produce(partition, 0), produce(partition, 1, epoch=1), produce(partition, 0, epoch=1)] == [
            0,
            NOT_LEADER,
            1,
        ]

    def test_a_gap_that_stays_is_real(self, partition):
        later = NOW_MS + IS_NEW_FOR_MS
        assert [produce(partition, 0), produce(partition, 2), produce(partition, 2, later)] == [0, NOT_LEADER, GAP]
        assert produce(partition, 5, later, producer_id=8) == 1

    def test_a_partition_that_is_served_again_has_a_new_lead(self, partition):
        later = NOW_MS + IS_NEW_FOR_MS
        assert [produce(partition, 0), produce(partition, 2, later)] == [0, GAP]
        partition.served_while(lambda: True)
        assert produce(partition, 2, later) == NOT_LEADER

    def test_a_broker_that_may_have_a_successor_does_not_call_a_gap_real(self, partition):
        """The successor may have acknowledged the batches that are missing here."""
        certain, later = [True], NOW_MS + IS_NEW_FOR_MS
        partition.served_while(lambda: certain[0])
        assert [produce(partition, 0), produce(partition, 2, later)] == [0, GAP]
        certain[0] = False
        assert [produce(partition, 2, later), produce(partition, 0, later), produce(partition, 1, later)] == [
            NOT_LEADER,
            0,
            1,
        ]

    def test_other_refusals_stay_what_they_are(self, partition):
        assert produce(partition, 0, epoch=3) == 0
        assert produce(partition, 0, epoch=2) == ErrorCode.INVALID_PRODUCER_EPOCH


def test_an_epoch_begins_without_a_wait_for_the_disk(partition, resources, monkeypatch):
    with monkeypatch.context() as refusing:
        refusing.setattr(resources.storage, "sync_dir", None)
        partition.lead(3)
        append(partition, 5)
        partition.lead(4)
        append(partition, 6)
    assert LeaderEpochs.load(resources.storage, DIRECTORY).entries == [(3, 0), (4, 1)]


def test_an_epoch_that_cannot_be_recorded_has_not_begun(partition, resources, monkeypatch):
    with monkeypatch.context() as refusing:
        refusing.setattr(resources.storage, "rename", lambda *_: (_ for _ in ()).throw(StorageFault("no room")))
        partition.lead(3)
        with pytest.raises(StorageFault):
            append(partition, 5)
    append(partition, 5)
    assert partition.epochs.entries == [(3, 0)]


def test_only_what_is_written_can_be_shipped(partition):
    append(partition, 5)
    with pytest.raises(AssertionError, match="shipped up to 2"):
        partition.shipped(2)


@pytest.mark.parametrize("committed", [True, False])
def test_a_marker_ends_a_transaction_when_it_is_shipped(partition, committed):
    partition.append(batch([b"v"], 7, 0, 0, timestamp=NOW_MS), NOW_MS, produce_version=NEW)
    partition.flush()
    partition.shipped(1)
    assert partition.last_stable_offset == 0
    append_marker(partition, 7, 0, Marker(committed, 3), NOW_MS)
    append(partition, 5)
    assert partition.written_end == 3
    assert partition.last_stable_offset == 0
    partition.shipped(1)
    assert partition.last_stable_offset == 0
    partition.shipped(2)
    assert partition.last_stable_offset == 2


def test_a_transaction_that_is_open_keeps_the_stable_offset_whatever_else_has_ended(partition):
    for producer in (7, 8):
        partition.append(batch([b"v"], producer, 0, 0, timestamp=NOW_MS), NOW_MS, produce_version=NEW)
    append_marker(partition, 8, 0, Marker(True, 0), NOW_MS)
    partition.flush()
    partition.shipped(3)
    assert partition.last_stable_offset == 0
    append_marker(partition, 7, 0, Marker(True, 0), NOW_MS)
    partition.flush()
    partition.shipped(4)
    assert partition.last_stable_offset == 4


def test_a_failed_write_takes_back_what_is_not_written_and_no_more(partition, resources):
    append(partition, 5, 6)
    partition.shipped(1)
    partition.append(encode(2, 0, [7], [b"lost"]), NOW_MS, produce_version=NEW)
    resources.storage.fail("write")
    with pytest.raises(StorageFault):
        partition.flush()
    assert (partition.log_end_offset, partition.written_end, partition.high_watermark) == (2, 2, 1)
    append(partition, 8)
    partition.shipped(3)
    assert len(partition.read(2, 1 << 20)) > 0


def test_nothing_is_deleted_by_time(partition):
    partition.configure(small_config(retention_ms=1, delete=True))
    append(partition, 5, 6)
    partition.shipped(2)
    partition.roll(NOW_MS)
    assert log_start.apply_retention(partition, NOW_MS) == []
    assert partition.log_start_offset == 0


def opened_again(partition, resources):
    known = Circumstances(was_clean=False, log_start_offset=0, now_ms=NOW_MS)
    partition.replace_log(open_log(PLACE, partition.config, resources, known))


def test_a_log_that_is_opened_again_shows_what_was_shipped(partition, resources):
    append(partition, 5, 6)
    partition.shipped(1)
    opened_again(partition, resources)
    assert (partition.written_end, partition.high_watermark) == (2, 1)
    assert partition.condition.fault is None


def test_a_log_that_has_lost_its_end_stays_offline(partition, resources):
    append(partition, 5, 6)
    partition.shipped(2)
    path = partition.segments[0].log.path
    file = resources.storage.open(path)
    file.truncate(file.size() // 2)
    opened_again(partition, resources)
    assert "ended at 2 and ends at 1" in partition.condition.fault
    assert partition.high_watermark == 1


def in_front():
    """A partition whose first segments lie in a bucket, and its reader."""
    store = CountingStore()
    local = filled(random.Random(3), 20)
    reader = Reader(store)
    return local, reader, reader.open(upload(local, store), CONFIG)


def test_a_reader_of_the_bucket_gets_no_more_than_a_block_at_a_time(monkeypatch):
    monkeypatch.setattr("horolog.broker.bucket.shipped_partition.BLOCK_BYTES", 500)
    local, reader, partition = in_front()
    end = partition.written_end
    append(partition, *range(20))
    partition.shipped(end + 20)
    assert len(reader.served(lambda: partition.read(0, 1 << 20))) == 500 < len(local.read(0, 1 << 20))
    assert len(partition.read(end, 1 << 20)) > 500
    assert partition.aborted.elsewhere.keys() == {one.base_offset for one in local.segments[:-1]}


def test_a_log_that_is_opened_again_keeps_what_lies_in_the_bucket():
    local, reader, partition = in_front()
    partition.log_start_offset = 2
    place = PartitionFolder("t", 0, partition.directory)
    known = Circumstances(was_clean=True, log_start_offset=0, now_ms=NOW_MS, recovery_point=partition.written_end)
    partition.replace_log(open_log(place, CONFIG, reader.resources, known))
    assert (partition.log_start_offset, len(partition.segments)) == (2, len(local.segments))
    assert partition.condition.fault is None
    assert partition.aborted.elsewhere
    assert reader.served(lambda: partition.read(2, 1 << 20))


def test_segments_are_no_larger_than_one_upload(monkeypatch):
    monkeypatch.setattr("horolog.broker.bucket.shipped_partition.MOST_BYTES", 400)
    partition = shipping.new_partition()
    partition.configure(small_config(segment_bytes=1 << 20))
    assert partition.config.segment_bytes == 400, "compaction makes none that is larger"
    append(partition, *range(20))
    assert len(partition.segments) > 3
    assert all(one.size_bytes <= 400 for one in partition.segments)
    partition.configure(small_config(segment_bytes=300))
    before = len(partition.segments)
    append(partition, *range(4))
    assert all(one.size_bytes <= 300 for one in partition.segments[before:])


def test_the_producers_behind_a_closed_segment_are_remembered():
    partition = shipping.new_partition()
    append(partition, 1)
    partition.roll(NOW_MS)
    assert partition.ends == {1: known_at(partition.producers, 1)}
