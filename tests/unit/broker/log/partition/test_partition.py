"""One partition: appends and their failures, idempotence, rolls, and an opening that replaces its log."""

import errno
import random
import threading
from dataclasses import replace

import pytest

from horolog.broker.log.integrity import seals
from horolog.broker.log.partition import (
    OffsetOutOfRange,
    Partition,
    Resources,
    append_marker,
    closing,
    lookups,
    rewrite,
)
from horolog.broker.log.partition.partition import WRITE_AT_BYTES
from horolog.broker.log.recovery import Circumstances, PartitionFolder, open_log
from horolog.broker.log.segments import Allowance
from horolog.broker.log.storage import StorageFault
from horolog.broker.log.storage.memory_disk import ALL
from horolog.broker.log.validation import RefusedSet
from horolog.protocol.errors import ErrorCode
from horolog.protocol.records.batch import encode_batch, read_header
from horolog.protocol.records.control import Marker
from horolog.protocol.records.entries import iter_records
from horolog.protocol.records.head import heads_in
from horolog.protocol.records.record import Record
from tests.support import transactional
from tests.support.attributes import attribute_names
from tests.support.log_model import DIRECTORY, NEW, NOW_MS, Model, encode, place, read_all, small_config
from tests.support.transactional import aborted_in

DAY_MS = 86_400_000


def append(model, timestamp=5, size=40, now_ms=NOW_MS):
    return model.partition.append(encode(2, 0, [timestamp], [b"v" * size]), now_ms, produce_version=NEW)


def produce(model, producer_id, epoch, sequence, count=1):
    records = [Record(n, 100 + n, 0, b"k", b"v") for n in range(count)]
    data = bytes(encode_batch(records, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence))
    return model.partition.append(data, NOW_MS, produce_version=NEW)


def bases(model):
    return [segment.base_offset for segment in model.partition.segments]


@pytest.fixture
def model():
    return Model()


# Appending and reading


def test_appends_are_seen_once_they_are_written(model):
    result = append(model)
    partition = model.partition
    assert (result.base_offset, result.last_offset, result.append_time, result.count) == (0, 0, -1, 1)
    assert (partition.log_end_offset, partition.high_watermark) == (1, 0)
    assert partition.read(0, 1000) == b""
    assert lookups.first_at_or_after(partition, 0) is None
    assert lookups.largest_timestamp(partition) is None
    partition.flush()
    assert partition.high_watermark == 1
    assert partition.read(0, 1000)
    assert place(lookups.largest_timestamp(partition)) == (0, 5)


def test_all_that_is_queued_is_one_write(model):
    model.flush()
    before = model.storage.operations.get("write", 0)
    for _ in range(5):
        append(model)
    model.flush()
    after = model.storage.operations["write"]
    assert after == before + 3, "the log and both its indexes"
    model.flush()
    assert model.storage.operations["write"] == after


def test_an_empty_set_is_nothing(model):
    result = model.partition.append(b"", NOW_MS, produce_version=2)
    assert (result.base_offset, result.count) == (-1, 0)
    assert model.partition.log_end_offset == 0


def test_a_refused_set_leaves_no_trace(model):
    append(model)
    data = bytearray(encode(2, 0, [5], [b"v"]))
    data[-1] ^= 1
    with pytest.raises(RefusedSet) as caught:
        model.partition.append(bytes(data), NOW_MS, produce_version=NEW)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
    assert model.partition.log_end_offset == 1


def test_a_set_larger_than_a_segment_is_refused(model):
    for _ in range(2):
        with pytest.raises(RefusedSet) as caught:
            append(model, size=2000)
        assert caught.value.code == ErrorCode.RECORD_LIST_TOO_LARGE
        append(model)


def test_reading_gives_the_first_batch_whole_or_what_fits(model):
    for size in (300, 10, 10):
        append(model, size=size)
    model.flush()
    partition = model.partition
    whole = partition.read(0, 1 << 20)
    assert len(partition.read(0, 1)) > 300
    assert partition.read(0, 1) == whole[: len(partition.read(0, 1))]
    assert len(partition.read(0, 1, at_least_one=False)) <= 1
    assert partition.read(1, 1 << 20) == whole[len(partition.read(0, 1)) :]


def test_reading_stops_at_the_offset_it_is_given(model):
    for _ in range(6):
        append(model)
    model.flush()
    partition = model.partition
    whole = partition.read(0, 1 << 20)
    for upto in range(7):
        assert partition.read(0, 1 << 20, upto=upto) == whole[: len(whole) * upto // 6]
    assert partition.read(4, 1 << 20, upto=2) == b""


def test_a_reader_that_follows_the_end_walks_over_nothing(model):
    append(model)
    model.flush()
    model.partition.read(0, 1000)
    for offset in range(1, 5):
        append(model)
        model.flush()
        before = model.storage.operations["read"]
        assert model.partition.read(offset, 1000)
        assert model.storage.operations["read"] == before + 1


# Failing disks


@pytest.mark.parametrize("part", [".log", ".index", ".timeindex"])
def test_a_failed_write_is_taken_back_and_the_next_one_works(model, part):
    for timestamp in (1, 2, 3, 4):
        append(model, timestamp)
    model.flush()
    before = read_all(model.partition)
    for timestamp in (5, 6, 7, 8):
        append(model, timestamp)
    model.storage.fail("write", part, torn_bytes=50)
    with pytest.raises(StorageFault):
        model.flush()
    partition = model.partition
    assert (partition.log_end_offset, partition.high_watermark, partition.condition.fault) == (4, 4, None)
    assert append(model, 9).base_offset == 4
    model.flush()
    assert read_all(partition)[:4] == before
    assert [row[1] for row in read_all(partition)] == [1, 2, 3, 4, 9]
    model.written = partition.high_watermark
    model.rows = read_all(partition)
    model.close_and_open()
    model.check()


@pytest.mark.parametrize("seed", range(20))
def test_what_was_taken_back_of_an_empty_log_stays_away_after_a_clean_stop(seed):
    model = Model()
    model.sync()
    append(model)
    model.storage.fail("write", ".log", code=errno.ENOSPC, torn_bytes=10_000)
    with pytest.raises(StorageFault):
        model.flush()
    model.close_and_open()
    model.cut_power_and_open(random.Random(seed))
    assert read_all(model.partition) == []


def test_a_full_disk_refuses_appends_until_there_is_room(model):
    append(model)
    model.flush()
    model.storage.capacity_bytes = model.storage.used_bytes() + 10
    for _ in range(3):
        append(model)
        with pytest.raises(StorageFault) as caught:
            model.flush()
        assert caught.value.code == errno.ENOSPC
        assert read_all(model.partition)
    model.storage.heal()
    append(model)
    model.flush()
    assert model.partition.high_watermark == 2


def test_a_partition_that_cannot_be_rolled_back_takes_no_more_and_is_read(model):
    append(model)
    model.flush()
    append(model)
    model.storage.fail("write")
    model.storage.fail("truncate")
    with pytest.raises(StorageFault):
        model.flush()
    assert model.partition.condition.fault is None
    with pytest.raises(StorageFault, match="accepts no appends"):
        append(model)
    assert read_all(model.partition), "reading goes on"


def test_after_a_failed_sync_nothing_is_taken(model):
    append(model)
    model.flush()
    model.storage.fail("sync")
    with pytest.raises(StorageFault):
        model.partition.sync()
    assert "may not be on the disk" in model.partition.condition.stopped
    with pytest.raises(StorageFault):
        append(model)
    with pytest.raises(StorageFault):
        model.partition.sync()
    assert model.partition.sync_state.recovery_point == 0


@pytest.mark.parametrize("operation", ["create", "truncate", "stat"])
def test_a_roll_that_fails_leaves_the_log_as_it_was(model, operation):
    while bases(model) == [0] and model.partition.segments[0].end_bytes < 1100:
        append(model)
    model.flush()
    before, count = read_all(model.partition), model.partition.log_end_offset
    model.storage.fail(operation, times=2)
    with pytest.raises(StorageFault):
        append(model, size=300)
    assert (bases(model), model.partition.condition.fault) == ([0], None)
    model.storage.heal()
    append(model, size=300)
    model.flush()
    assert bases(model) == [0, count]
    assert read_all(model.partition)[:count] == before


def test_much_that_is_queued_is_written_before_the_flush():
    model = Model(small_config(segment_bytes=1 << 20))
    append(model)
    assert model.partition.written_end == 0
    append(model, size=WRITE_AT_BYTES)
    assert model.partition.written_end == 2
    append(model)
    model.flush()
    assert model.partition.written_end == model.partition.high_watermark == 3


def test_an_early_write_that_fails_fails_the_flush():
    model = Model(small_config(segment_bytes=1 << 20))
    append(model)
    model.storage.fail("write", ".log")
    append(model, size=WRITE_AT_BYTES)
    with pytest.raises(StorageFault):
        append(model)
    with pytest.raises(StorageFault):
        model.flush()
    assert model.partition.log_end_offset == 0
    assert append(model, size=100).base_offset == 0
    model.flush()
    assert model.partition.high_watermark == 1


def test_a_write_that_fails_inside_an_append_is_told_by_the_flush_too(model):
    """A roll writes the queue; the appends that were taken back with it must not be acknowledged."""
    while model.partition.segments[0].end_bytes < 1100:
        append(model)
    model.storage.fail("write", ".log")
    with pytest.raises(StorageFault):
        append(model, size=300)
    with pytest.raises(StorageFault):
        append(model)
    with pytest.raises(StorageFault):
        model.flush()
    assert model.partition.log_end_offset == 0
    append(model)
    model.flush()
    assert model.partition.high_watermark == 1


def stopped(model, *, damaged):
    """Three old messages and one batch, of which the last two are in doubt: no sync has gone well."""
    for magic in (1, 1, 1, 2):
        model.append(magic, 0, [5], [b"v"])
    model.flush()
    partition = model.partition
    if damaged:
        third = len(partition.read(0, 1 << 20, upto=2))
        model.storage.corrupt(partition.segments[0].log.path, third + 20, 1)
    partition.condition.stop("a sync has failed")
    return partition


class TestInDoubt:
    """What a failed sync has left in the page cache is shown as far as it is whole, and an error behind that."""

    def test_whole_batches_are_read(self, model):
        partition = stopped(model, damaged=False)
        assert [row[0] for row in read_all(partition)] == [0, 1, 2, 3]

    def test_where_nothing_is_whole_the_reader_is_to_come_again(self, model):
        partition = stopped(model, damaged=True)
        assert partition.read(0, 1 << 20) == partition.read(0, 1 << 20, upto=2)
        with pytest.raises(StorageFault, match="a sync has failed"):
            partition.read(2, 1 << 20)
        assert partition.read(2, 10, at_least_one=False) == b""

    @pytest.mark.parametrize("damaged", [False, True])
    def test_old_messages_are_converted_all_the_same(self, model, damaged):
        partition = stopped(model, damaged=damaged)
        data = partition.read(0, 1 << 20, upconvert=Allowance())
        assert {entry.magic for entry in heads_in(data)} == {2}
        assert [record.offset for record in iter_records(data)] == ([0, 1] if damaged else [0, 1, 2, 3])


def test_old_messages_are_converted_with_the_epoch_they_were_written_in(model):
    model.append(1, 0, [5], [b"v"])
    model.partition.lead(4)
    model.append(1, 0, [5], [b"v"])
    model.flush()
    found = [read_header(model.partition.read(offset, 1 << 20, upconvert=Allowance())) for offset in (0, 1)]
    assert [(one.magic, one.leader_epoch) for one in found] == [(2, 0), (2, 4)]


# Durability


def test_a_sync_that_fails_for_want_of_a_descriptor_stops_nothing(model):
    append(model)
    model.flush()
    model.partition.segments[0].log.close()
    model.storage.fail("open", code=errno.EMFILE)
    with pytest.raises(StorageFault):
        model.partition.sync()
    assert model.partition.condition.takes_appends
    model.partition.sync()
    assert model.partition.sync_state.recovery_point == 1


def test_a_sync_that_finds_its_partition_deleted_tells_of_no_fault(model):
    """It began before; nobody has lost anything."""
    append(model)
    model.flush()
    partition, file = model.partition, model.partition.segments[0].log

    class Deleted:
        def __getattr__(self, name):
            return getattr(file, name)

        def datasync(self):
            partition.condition.delete()
            raise StorageFault("gone", path=file.path)

    partition.segments[0].log = Deleted()
    partition.sync()
    assert partition.resources.counters.sync_failures.value == 0
    assert partition.condition.stopped is None


@pytest.mark.parametrize("is_deleted", [True, False])
def test_a_sync_warns_of_no_small_files_of_a_deleted_partition(model, caplog, is_deleted):
    append(model)
    model.flush()
    model.partition.sync_state.segments_changed()
    model.storage.fail("rename")
    if is_deleted:
        model.partition.condition.delete()
    model.partition.sync()
    assert ("snapshots or seals could not be written" in caplog.text) is not is_deleted


def test_a_sync_moves_the_recovery_point_to_what_was_written(model):
    for _ in range(3):
        append(model)
    assert model.partition.sync_state.recovery_point == 0
    model.flush()
    append(model)
    model.partition.sync()
    assert model.partition.sync_state.recovery_point == 3


def test_flush_messages_and_flush_ms_ask_for_syncs():
    model = Model(small_config(flush_messages=3, flush_ms=100))
    durability = model.partition.durability
    for n in range(3):
        assert not durability.is_due_at(model.partition.log_end_offset, 3)
        append(model, n)
    assert durability.is_due_at(model.partition.log_end_offset, 3)
    model.flush()
    assert not durability.is_due(NOW_MS + 99, model.partition.config.flush_ms)
    assert durability.is_due(NOW_MS + 100, model.partition.config.flush_ms)
    model.partition.sync()
    assert not durability.is_due_at(model.partition.log_end_offset, 3)
    assert not durability.is_due(NOW_MS + 10_000, model.partition.config.flush_ms)


def test_segments_are_sealed_once_they_are_on_the_disk(model):
    while len(model.partition.segments) < 3:
        append(model)
    model.flush()
    assert not model.storage.exists(f"{DIRECTORY}/{seals.SEALS}")
    assert model.partition.durability.is_due(NOW_MS, model.partition.config.flush_ms)
    model.partition.sync()
    assert sorted(seals.load(model.storage, DIRECTORY)) == bases(model)[:2]
    assert not model.partition.durability.is_due(NOW_MS, model.partition.config.flush_ms)


def test_syncs_from_several_threads_wait_for_each_other(model):
    """One that returns early would acknowledge what another has not synced yet."""
    append(model)
    model.flush()
    file = model.partition.segments[0].log
    entered, go_on, done = threading.Event(), threading.Event(), []
    real = file.datasync

    class Slow:
        def __getattr__(self, name):
            return getattr(file, name)

        def datasync(self):
            entered.set()
            go_on.wait(60)
            real()

    model.partition.segments[0].log = Slow()
    first = threading.Thread(target=lambda: (model.partition.sync(), done.append(1)))
    first.start()
    entered.wait(60)
    second = threading.Thread(target=lambda: (model.partition.sync(), done.append(2)))
    second.start()
    second.join(0.05)
    assert done == []
    go_on.set()
    first.join(60)
    second.join(60)
    assert sorted(done) == [1, 2]


# Producers


def test_a_batch_sent_twice_is_stored_once(model):
    first = produce(model, 7, 0, 0, 3)
    assert produce(model, 7, 0, 0, 3) == first
    assert model.partition.log_end_offset == 3
    model.flush()
    assert produce(model, 7, 0, 0, 3) == first
    produce(model, 7, 0, 3)
    with pytest.raises(RefusedSet) as caught:
        produce(model, 7, 0, 9)
    assert caught.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_batch_that_was_taken_back_is_no_duplicate(model):
    produce(model, 7, 0, 0)
    model.flush()
    produce(model, 7, 0, 1)
    model.storage.fail("write")
    with pytest.raises(StorageFault):
        model.flush()
    assert produce(model, 7, 0, 1).base_offset == 1
    model.flush()
    assert model.partition.high_watermark == 2


@pytest.mark.parametrize("way", ["close_and_open", "kill_and_open"])
def test_duplicates_are_known_after_a_restart(model, way):
    while len(model.partition.segments) < 3:
        produce(model, 7, 0, model.partition.log_end_offset)
    last = produce(model, 7, 0, model.partition.log_end_offset)
    model.flush()
    model.sync()
    getattr(model, way)()
    again = produce(model, 7, 0, last.base_offset)
    assert (again.base_offset, model.partition.log_end_offset) == (last.base_offset, last.base_offset + 1)


# Leader epochs


def test_a_new_leader_epoch_begins_with_the_next_append(model):
    append(model)
    model.partition.lead(3)
    assert model.partition.epochs.entries == [(0, 0)]
    append(model)
    assert model.partition.epochs.entries == [(0, 0), (3, 1)]
    model.flush()
    assert [entry.leader_epoch for entry in heads_in(model.partition.read(0, 1 << 20))] == [0, 3]


# Rolling


def test_a_partition_that_was_opened_rolls_before_its_first_append(model):
    append(model)
    model.flush()
    model.close_and_open()
    model.partition.roll(NOW_MS)
    append(model)
    model.flush()
    assert bases(model) == [0, 1]
    assert [row[0] for row in read_all(model.partition)] == [0, 1]
    model.close_and_open()
    assert bases(model) == [0, 1]


def test_rolling_by_time_goes_by_the_records():
    """Finding 18: later than the first record by more than segment.ms, strictly."""
    model = Model(small_config(segment_ms=10_000))
    for timestamp, base in ((1000, [0]), (11_000, [0]), (500, [0]), (11_001, [0, 3]), (21_001, [0, 3]), (1, [0, 3])):
        append(model, timestamp)
        assert bases(model) == base


def test_a_segment_whose_first_record_has_no_time_rolls_by_the_clock():
    """Finding 19."""
    model = Model(small_config(segment_ms=10_000))
    append(model, -1)
    append(model, 99_999_999, now_ms=NOW_MS + 10_000)
    assert bases(model) == [0]
    append(model, 5, now_ms=NOW_MS + 10_001)
    assert bases(model) == [0, 2]


def test_settings_may_change_while_running(model):
    append(model, 1000)
    model.partition.configure(small_config(segment_ms=10))
    append(model, 1011)
    assert bases(model) == [0, 1]


def test_a_roll_keeps_a_snapshot_of_the_producers(model):
    while len(model.partition.segments) < 2:
        produce(model, 7, 0, model.partition.log_end_offset)
    model.flush()
    model.partition.sync()
    assert f"{bases(model)[1]:020d}.snapshot" in model.storage.list_dir(DIRECTORY)


def fill(model, timestamps):
    """One segment for each time."""
    for timestamp in timestamps:
        append(model, timestamp, size=900)
    model.flush()


def test_reading_a_bad_sector_is_a_fault_of_that_read_only(model):
    fill(model, [1, 2])
    model.storage.fail("read", times=ALL)
    with pytest.raises(StorageFault):
        model.partition.read(0, 100)
    model.storage.heal()
    assert model.partition.read(0, 100)


def test_an_index_of_aborted_transactions_that_cannot_be_written_is_before_the_next_sync(model):
    """Its markers are in the log by then, so nothing is refused, and nothing is forgotten."""
    for number in range(3):
        records = [Record(0, 100, 0, b"k", b"v")]
        data = encode_batch(records, attributes=16, producer_id=7, producer_epoch=0, base_sequence=number)
        model.partition.append(bytes(data), NOW_MS, produce_version=NEW)
        model.flush()
        model.storage.fail("create" if not number else "write", ".txnindex", times=number < 2)
        append_marker(model.partition, 7, 0, Marker(False, 0), NOW_MS)
        model.flush()
    model.storage.heal()
    expected = [(7, 0), (7, 2), (7, 4)]
    assert aborted_in(model.partition, 0, 6) == expected
    model.sync()
    model.close_and_open()
    assert aborted_in(model.partition, 0, 6) == expected


def test_a_partition_whose_log_is_replaced_is_the_fresh_opening_and_takes_no_appends(model):
    model.append(2, 0, [1, 2], [b"a", b"b"])
    model.flush()
    partition, epoch = model.partition, model.partition.leader_epoch
    known = Circumstances(was_clean=False, log_start_offset=0, now_ms=NOW_MS, may_be_unsynced=True)
    closing.close_files(partition)
    opened = open_log(PartitionFolder("t", 0, DIRECTORY), model.config, Resources(model.storage), known)
    partition.replace_log(opened)
    fresh = Partition(replace(opened, leader_epoch=epoch - 5))
    for name in attribute_names(Partition) - {"leader_epoch"}:
        assert type(getattr(partition, name)) is type(getattr(fresh, name)), name
    assert partition.segments is opened.segments
    assert "may not be on the disk" in partition.condition.stopped
    assert (fresh.condition.stopped, fresh.condition.fault) == (None, None)
    assert partition.leader_epoch == max(epoch, opened.leader_epoch) > epoch
    rewrite.job(partition)()
    assert partition.condition.takes_appends
    fresh.leader_epoch = partition.leader_epoch + 1
    fresh.replace_log(replace(opened, stopped="no room"))
    assert fresh.condition.stopped == "no room"
    assert fresh.leader_epoch == partition.leader_epoch + 1, "an epoch that clients know never falls"


def test_a_partition_tells_what_it_holds(model):
    append(model)
    append(model)
    partition = model.partition
    assert (repr(partition), str(partition)) == ("<Partition t-0: 1 segments, offsets 0 to 2>", "t-0")
    partition.condition.stop("no room")
    assert repr(partition) == "<Partition t-0: 1 segments, offsets 0 to 2, accepts no appends: no room>"
    partition.condition.go_offline("no disk")
    assert repr(partition) == "<Partition t-0: 1 segments, offsets 0 to 2, offline: no disk>"


def test_its_size_is_that_of_all_segments(model):
    append(model, size=900)
    append(model, size=900)
    model.flush()
    assert (len(bases(model)), model.partition.size_bytes) == (2, 2 * len(encode(2, 0, [5], [b"v" * 900])))


def test_nothing_is_stable_behind_an_undecided_transaction(model):
    append(model)
    model.partition.append(transactional.batch([b"v"], 7, 0, 0), NOW_MS, produce_version=NEW)
    append(model)
    model.flush()
    assert model.partition.last_stable_offset == 1
    append_marker(model.partition, 7, 0, Marker(committed=True, coordinator_epoch=0), NOW_MS)
    model.flush()
    assert model.partition.last_stable_offset == 4


@pytest.mark.parametrize("offset", [-1, 3])
def test_an_offset_that_the_log_does_not_reach_is_refused(model, offset):
    append(model)
    append(model)
    with pytest.raises(OffsetOutOfRange, match=f"offset {offset} is not between 0 and 2"):
        model.partition.read(offset, 100)


def test_records_whose_times_surprise_retention_are_counted():
    model = Model(small_config(retention_ms=10_000))
    counters = model.partition.resources.counters
    for timestamp in (NOW_MS - 10_000, NOW_MS):
        append(model, timestamp)
    assert (counters.appends_behind_retention.value, counters.appends_from_future.value) == (0, 0)
    for timestamp in (NOW_MS - 10_001, NOW_MS + 1):
        append(model, timestamp)
    assert (counters.appends_behind_retention.value, counters.appends_from_future.value) == (1, 1)


def test_how_much_there_is_to_read(model):
    for _ in range(3):
        append(model, size=100)
    model.flush()
    append(model, size=100)
    partition = model.partition
    size = len(partition.read(0, 1))
    assert [partition.bytes_ahead(offset, 1 << 40) for offset in (-1, 0, 1, 2, 3, 4)] == [
        0,
        3 * size,
        2 * size,
        size,
        0,
        0,
    ]
    assert [partition.bytes_ahead(0, upto) for upto in (0, 1, 2)] == [0, size, 2 * size]


def test_an_empty_segment_is_not_rolled(model):
    """The new one would have the same name, and the files of the old one."""
    with pytest.raises(AssertionError, match="has the files of"):
        model.partition.roll(NOW_MS)
