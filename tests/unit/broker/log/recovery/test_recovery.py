"""Whatever is found in a folder is opened: after a clean stop, a crash, damage, a copy, and when leftovers are in the way."""

import random

import pytest

from horolog.broker.log.files import checkpoints, leader_epochs
from horolog.broker.log.integrity import seals
from horolog.broker.log.partition import Resources, closing, log_start, lookups
from horolog.broker.log.producers import producers_file, snapshot_file
from horolog.broker.log.recovery import (
    Circumstances,
    PartitionFolder,
    create_partition,
    is_segment_file,
    offline_partition,
    open_partition,
)
from horolog.broker.log.recovery.recovery import STRAY_SUFFIX
from horolog.broker.log.storage import StorageFault
from horolog.broker.log.storage.memory_disk import ALL
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.control import Marker, encode_marker
from horolog.protocol.records.head import MAGIC_AT, TRANSACTIONAL_BIT, heads_in
from horolog.protocol.records.record import Record
from tests.support.log_model import DIRECTORY, NEW, NOW_MS, Model, encode, new_storage, read_all, send, small_config
from tests.support.transactional import aborted_in


def fill(model, count=12, size=80):
    for n in range(count):
        model.append(2, 0, [n * 10], [b"%d" % n + b"v" * size])
    model.flush()


def log_path(base):
    return f"{DIRECTORY}/{base:020d}.log"


def counters(model):
    return model.partition.folder.counters


@pytest.fixture
def model():
    model = Model()
    fill(model)
    return model


def flip(model, path, at, mask=0x10):
    data = bytearray(model.storage.read_all(path))
    data[at] ^= mask
    mtime_ms = model.storage.stat(path)[1] // 1_000_000
    model.storage.create(path).pwritev([bytes(data)], 0)
    model.storage.set_mtime_ms(path, mtime_ms)


def bases(model):
    return [segment.base_offset for segment in model.partition.segments]


# Which segments are read again, and which are not


def test_after_a_clean_stop_no_log_is_read(model):
    closing.close(model.partition)
    model.storage.fail("open", times=ALL)
    model.written = 12
    model.reopen(was_clean=True)
    assert counters(model).segments_scanned.value == 0
    assert (model.partition.log_end_offset, model.partition.leader_epoch) == (12, 0)


def test_after_a_crash_only_unsealed_segments_are_read(model):
    model.partition.sync()
    assert len(bases(model)) > 1
    model.kill_and_open()
    assert counters(model).segments_scanned.value == 1
    assert model.partition.sync_state.recovery_point == bases(model)[-1]
    model.partition.sync()
    assert model.partition.sync_state.recovery_point == 12
    model.kill_and_open()
    assert counters(model).segments_scanned.value == 0, "a scanned segment has been sealed again"
    model.check()


def test_without_seals_everything_is_read(model):
    closing.close(model.partition)
    model.storage.remove(f"{DIRECTORY}/{seals.SEALS}")
    model.written = 12
    model.reopen(was_clean=True)
    assert counters(model).segments_scanned.value == len(bases(model))
    model.check()


@pytest.mark.parametrize("data", [b"", b"horolog-seals 1\n", b"\xff" * 100])
def test_damaged_seals_are_as_good_as_none(model, data):
    closing.close(model.partition)
    model.storage.create(f"{DIRECTORY}/{seals.SEALS}").pwritev([data], 0)
    model.written = 12
    model.reopen(was_clean=True)
    assert counters(model).segments_scanned.value == len(bases(model))
    model.check()


def test_a_copy_with_new_file_times_is_recognised(model):
    closing.close(model.partition)
    for base in bases(model):
        model.storage.set_mtime_ms(log_path(base), 1)
    model.written = 12
    model.reopen(was_clean=True)
    assert counters(model).segments_scanned.value == 0
    model.check()


def test_another_log_of_the_same_size_is_not_taken_for_the_sealed_one(model):
    closing.close(model.partition)
    other = Model()
    for n in range(12):
        other.append(2, 0, [n * 10 + 5], [b"%d" % n + b"w" * 80])
    other.flush()
    data = other.storage.read_all(log_path(0))
    assert len(data) == model.storage.stat(log_path(0))[0]
    model.storage.create(log_path(0)).pwritev([data], 0)
    model.storage.set_mtime_ms(log_path(0), 1)
    count = bases(model)[1]
    model.rows = other.rows[:count] + model.rows[count:]
    model.written = 12
    model.reopen(was_clean=True)
    assert counters(model).segments_scanned.value == 1
    model.check()


def look(model, **known):
    """Opened by somebody who looks for records alone, after a kill."""
    model.written = len(model.rows)
    known = Circumstances(False, 0, NOW_MS, records_only=True, **known)
    model.partition = open_partition(PartitionFolder("t", 0, DIRECTORY), model.config, Resources(model.storage), known)
    model.check()


class TestLooks:
    """Who wants little of a folder believes the index files that lie in it, and reads nothing else of a log that they fit."""

    @pytest.fixture
    def count(self, model):
        """How many logs there are, none with a seal."""
        fill(model, 24)
        stop(model)
        return len(bases(model))

    def test_only_the_last_log_is_read(self, model, count):
        look(model, believes_indexes=True)
        assert counters(model).segments_scanned.value <= 1
        look(model)
        assert counters(model).segments_scanned.value == count > 3

    @pytest.mark.parametrize("damage", ["empty", "missing", "of another log"])
    def test_where_the_indexes_do_not_fit_the_log_is_read(self, model, count, damage):
        path, other = (log_path(base).replace(".log", ".timeindex") for base in bases(model)[:2])
        data = model.storage.read_all(other)
        model.storage.remove(path)
        if damage != "missing":
            model.storage.write_atomically(path, b"" if damage == "empty" else data)
        look(model, believes_indexes=True)
        assert 1 <= counters(model).segments_scanned.value <= 2 < count

    @pytest.mark.parametrize("fits", [True, False])
    def test_a_sealed_log_that_was_copied_is_known_by_its_indexes_or_else_by_its_ends(self, model, fits):
        closing.close(model.partition)
        for base in bases(model):
            model.storage.set_mtime_ms(log_path(base), 1)
            if not fits:
                model.storage.write_atomically(log_path(base).replace(".log", ".timeindex"), b"")
        look(model, presumes_copies=True)
        assert counters(model).segments_scanned.value == 0

    def test_nothing_is_asked_of_transactions(self):
        model = Model()
        transaction(model, 7, 0, committed=False)
        assert aborted_in(model.partition, 0, 2) == [(7, 0)]
        known = Circumstances(False, 0, NOW_MS, records_only=True)
        partition = open_partition(PartitionFolder("t", 0, DIRECTORY), model.config, Resources(model.storage), known)
        assert (aborted_in(partition, 0, 2), partition.last_stable_offset) == ([], 2)


# Damage


def test_a_sealed_log_that_is_damaged_since_is_read_again_where_producers_are_looked_for(caplog):
    """Its seal would hide the damage, and what the batch behind it tells of its producer."""
    model = Model(small_config(segment_bytes=1 << 20))
    places = [send(model, 2 * number) for number in range(3)]
    closing.close(model.partition)
    model.storage.remove(f"{DIRECTORY}/{producers_file.FILE_NAME}")
    for name in [one for one in model.storage.list_dir(DIRECTORY) if one.endswith(snapshot_file.SUFFIX)]:
        model.storage.remove(f"{DIRECTORY}/{name}")
    model.storage.corrupt(log_path(0), MAGIC_AT, 0x04)
    model.reopen(was_clean=True)
    assert "reading it again" in caplog.text
    assert counters(model).segments_scanned.value == 1
    assert [send(model, 2 * number) for number in range(3)] == places


@pytest.mark.parametrize("tail", [b"\xff" * 37, bytes(100), encode(2, 0, [5], [b"cut"])[:-1], b"x"])
@pytest.mark.parametrize("was_clean", [True, False])
def test_a_torn_tail_is_cut_and_appends_go_on(model, tail, was_clean):
    """Findings 27 and 31: garbage, zeros or half a batch behind the last one, after a kill or a clean stop."""
    model.close_and_open()
    last = log_path(bases(model)[-1])
    size = model.storage.stat(last)[0]
    model.storage.open(last).pwritev([tail], size)
    model.written = 12
    model.reopen(was_clean=was_clean)
    assert counters(model).torn_bytes_cut.value == len(tail)
    assert model.storage.stat(last)[0] == size
    model.check()
    model.append(2, 0, [999], [b"on"])
    model.flush()
    model.check()


@pytest.mark.parametrize("which", [0, 1, -1])
@pytest.mark.parametrize("at", [18, 40, 70])
def test_damage_inside_costs_one_batch_and_nothing_behind_it(model, which, at):
    """Findings 28 and 29: a bit in the checksum, the header or the records."""
    model.close_and_open()
    base = bases(model)[which]
    flip(model, log_path(base), at)
    model.storage.remove(f"{DIRECTORY}/{seals.SEALS}")
    model.rows = [row for row in model.rows if row[0] != base]
    model.written = 12
    model.reopen(was_clean=False)
    assert counters(model).damaged_bytes.value > 0
    assert counters(model).torn_bytes_cut.value == 0
    model.check()
    for max_bytes in (1, 100, 700):
        assert read_all(model.partition, max_bytes) == model.visible()
    for offset in range(12):
        assert read_all(model.partition, 1 << 20, offset) == [row for row in model.visible() if row[0] >= offset]
    model.close_and_open()
    assert counters(model).segments_scanned.value == 0, "the hole is on record"
    model.check()


@pytest.mark.parametrize("which", [0, 1, -1])
@pytest.mark.parametrize("at", [3, 6, 7, 9, 11, 13, 15, 16])
def test_what_no_checksum_covers_is_corrected(model, which, at):
    """damage.md: a bit in the offset, the size, the leader epoch or the magic costs nothing, and the file is right again."""
    model.close_and_open()
    path = log_path(bases(model)[which])
    good = model.storage.read_all(path)
    flip(model, path, at)
    model.storage.remove(f"{DIRECTORY}/{seals.SEALS}")
    model.written = 12
    model.reopen(was_clean=False)
    assert counters(model).batches_put_right.value == 1
    assert counters(model).damaged_bytes.value == counters(model).torn_bytes_cut.value == 0
    assert model.storage.read_all(path) == good
    model.check()


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("is_synced", [False, True])
def test_an_offset_that_flipped_is_corrected_wherever_its_batch_lies(count, is_synced):
    """The first and the last batch of the log have neighbours on one side only."""
    for which in range(count):
        for bit in (0, 1, 6, 31, 62, 63):
            model = Model(small_config(segment_bytes=1 << 20))
            fill(model, count)
            if is_synced:
                model.sync()
            rows = read_all(model.partition)
            entry = list(heads_in(model.storage.read_all(log_path(0))))[which]
            model.storage.corrupt(log_path(0), entry.position + 7 - bit // 8, 1 << bit % 8)
            model.reopen(was_clean=False)
            assert read_all(model.partition) == rows


@pytest.mark.parametrize("magic", [1, 2])
def test_a_log_file_that_takes_appends_begins_as_its_name_says_also_on_a_compacted_topic(magic):
    """Nothing before it and nothing behind it tells, and the cleaner never was there."""
    for bit in (0, 1, 3, 6, 31, 62, 63):
        model = Model(small_config(segment_bytes=300, compact=True))
        while len(model.partition.segments) < 2:
            model.append(magic, 0, [10], [b"v" * 80])
        model.flush()
        model.partition.sync()
        rows, base = read_all(model.partition), bases(model)[-1]
        model.storage.corrupt(log_path(base), 7 - bit // 8, 1 << bit % 8)
        model.reopen(was_clean=False)
        assert read_all(model.partition) == rows, bit


@pytest.mark.parametrize("magic", [1, 2])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_closed_log_file_that_nobody_has_sealed_begins_as_its_name_says(magic, count):
    """The power has taken what lay behind its first batches, and the file after it is there."""
    for bit in (0, 1, 2, 3, 6, 31, 62, 63):
        model = Model(small_config(segment_bytes=1200))
        while len(model.partition.segments) < 2:
            model.append(magic, 0, [10], [b"v" * 80])
        model.partition.sync()
        base = bases(model)[-1]
        while len(model.partition.segments) < 3:
            model.append(magic, 0, [10], [b"v" * 80])
        model.flush()
        entries = list(heads_in(model.storage.read_all(log_path(base))))
        rows = read_all(model.partition)
        model.storage.open(log_path(base)).truncate(entries[count].position)
        model.storage.corrupt(log_path(base), 7 - bit // 8, 1 << bit % 8)
        model.reopen(was_clean=False)
        assert [row for row in read_all(model.partition) if row[0] < bases(model)[-1]] == rows[: base + count], bit


@pytest.mark.parametrize("codecs", [(0, 0), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize("magics", [(1, 2), (2, 1), (1, 1), (2, 2)])
def test_an_offset_that_flipped_is_corrected_beside_sets_of_several_records(magics, codecs):
    """A wrapper has its last record's offset: that it is larger than what follows must not tell against it."""
    for which in range(4):
        for bit in (0, 1, 2, 6, 31, 62, 63):
            model = Model(small_config(segment_bytes=1 << 20))
            for magic, codec in zip((*magics, 2, 2), (*codecs, 0, 0), strict=True):
                model.append(magic, codec, [10, 20, 30], [b"a", b"b", b"c"])
            model.flush()
            rows = read_all(model.partition)
            entry = list(heads_in(model.storage.read_all(log_path(0))))[which]
            model.storage.corrupt(log_path(0), entry.position + 7 - bit // 8, 1 << bit % 8)
            model.reopen(was_clean=False)
            assert read_all(model.partition) == rows, (which, bit)


def test_a_stale_message_at_the_tail_does_not_stop_the_start(model):
    """Finding 30: there the brokers refuse to start, or give offsets out again."""
    model.close_and_open()
    last = log_path(bases(model)[-1])
    model.storage.open(last).pwritev([encode(2, 0, [5], [b"stale"])], model.storage.stat(last)[0])
    model.written = 12
    model.reopen(was_clean=True)
    assert model.partition.log_end_offset == 12
    model.check()


def test_a_torn_end_of_an_older_segment_is_left_alone(model):
    model.close_and_open()
    first = log_path(0)
    size = model.storage.stat(first)[0]
    model.storage.open(first).truncate(size - 5)
    model.storage.remove(f"{DIRECTORY}/{seals.SEALS}")
    model.rows = [row for row in model.rows if row[0] != bases(model)[1] - 1]
    model.written = 12
    model.reopen(was_clean=False)
    assert model.storage.stat(first)[0] == size - 5
    model.check()


def test_a_missing_log_is_a_gap(model):
    """Finding 36: what belonged to it goes, everything else is served."""
    model.close_and_open()
    gone, following = bases(model)[:2]
    model.storage.remove(log_path(gone))
    model.rows = [row for row in model.rows if row[0] >= following]
    model.written = 12
    model.reopen(was_clean=True)
    assert not model.storage.exists(f"{DIRECTORY}/{gone:020d}.index")
    assert model.partition.log_start_offset == following
    model.check()


def test_a_hole_between_segments_is_passed_over():
    model = Model()
    fill(model, 30)
    model.close_and_open()
    gone, following = bases(model)[1:3]
    model.storage.remove(log_path(gone))
    model.rows = [row for row in model.rows if not gone <= row[0] < following]
    model.written = 30
    model.reopen(was_clean=True)
    model.check()


def test_a_log_that_cannot_be_read_is_a_fault(model):
    model.storage.fail("read", ".log", times=ALL)
    with pytest.raises(StorageFault):
        model.reopen(was_clean=False)


# Leftovers


def test_leftovers_go_and_foreign_names_stay(model):
    model.close_and_open()
    leftovers = [f"{7:020d}.log.deleted", f"{0:020d}.log.cleaned", f"{99:020d}.index", f"{99:020d}.timeindex", "x.tmp"]
    foreign = ["notes.txt", "00.log", f"{0:020d}.logs", f"{0:019d}x.log"]
    for name in leftovers + foreign:
        model.storage.create(f"{DIRECTORY}/{name}")
    model.written = 12
    model.reopen(was_clean=True)
    names = set(model.storage.list_dir(DIRECTORY))
    assert not names & set(leftovers)
    assert names >= set(foreign)
    model.check()


def test_an_interrupted_swap_is_finished(model):
    """The cleaner's new segment is complete, the old one still there: the new one counts."""
    model.close_and_open()
    kept = encode(2, 0, [0], [b"0" + b"v" * 80])
    model.storage.create(log_path(0) + ".swap").pwritev([kept], 0)
    following = bases(model)[1]
    model.rows = [row for row in model.rows if row[0] == 0 or row[0] >= following]
    model.written = 12
    model.reopen(was_clean=False)
    model.check()


def test_an_empty_folder_is_an_empty_partition():
    model = Model()
    for name in model.storage.list_dir(DIRECTORY):
        model.storage.remove(f"{DIRECTORY}/{name}")
    model.reopen(was_clean=True)
    assert (model.partition.log_start_offset, model.partition.log_end_offset) == (0, 0)
    fill(model, 2)
    model.check()


@pytest.mark.parametrize(
    ("name", "is_log"),
    [
        (f"{5:020d}.log", True),
        (f"{5:020d}.log.swap", False),
        ("5.log", False),
        (f"{5:021d}.log", False),
        ("x" * 20 + ".log", False),
    ],
)
def test_what_a_log_file_is_called(name, is_log):
    assert is_segment_file(name, ".log") == is_log


# Epochs, producers, transactions


def test_a_stop_that_was_not_clean_bumps_the_epoch_once_per_stop(model):
    model.partition.sync()
    model.kill_and_open()
    model.kill_and_open()
    assert model.partition.leader_epoch == 1, "nothing was appended in the first"
    model.append(2, 0, [5], [b"v"])
    model.flush()
    model.kill_and_open()
    assert model.partition.leader_epoch == 2


def test_an_empty_partition_keeps_its_epoch():
    model = Model()
    model.kill_and_open()
    assert model.partition.leader_epoch == 0


def test_a_lost_epoch_file_is_made_up_from_the_batches(model):
    model.sync()
    model.kill_and_open()
    model.append(2, 0, [5], [b"v"])
    model.flush()
    model.storage.create(f"{DIRECTORY}/{checkpoints.LEADER_EPOCHS}").pwritev([b"nonsense"], 0)
    model.storage.remove(f"{DIRECTORY}/{seals.SEALS}")
    model.kill_and_open()
    model.append(2, 0, [5], [b"v"])
    saved = leader_epochs.decode(model.storage.read_all(f"{DIRECTORY}/{checkpoints.LEADER_EPOCHS}"))
    assert saved == [(0, 0), (1, 12), (2, 13)]


@pytest.mark.parametrize("is_there", [False, True])
def test_epochs_that_are_lost_are_those_of_sealed_batches(is_there):
    """A clean stop reads no log, so nothing else tells them."""
    model = Model(small_config(segment_bytes=600))
    for _ in range(3):
        fill(model, 8)
        model.kill_and_open()
    fill(model, 3)
    known, leads = model.partition.epochs.entries, model.partition.leader_epoch
    assert ([epoch for epoch, _ in known], leads) == ([0, 1, 2, 3], 3)
    assert len(model.partition.segments) > 4
    closing.close(model.partition)
    path = f"{DIRECTORY}/{checkpoints.LEADER_EPOCHS}"
    if is_there:
        model.storage.create(path).pwritev([b"nonsense"], 0)
    else:
        model.storage.remove(path)
    for _ in range(2):
        model.reopen(was_clean=True)
        assert (model.partition.epochs.entries, model.partition.leader_epoch) == (known, leads)
    model.reopen(was_clean=False)
    assert model.partition.leader_epoch == leads + 1


def transaction(model, producer_id, sequence, *, committed):
    """A record and the marker behind it, written as the files have them."""
    offset = model.partition.log_end_offset
    record = Record(0, 50, 0, b"k", b"v" * 100)
    attributes = TRANSACTIONAL_BIT
    data = encode_batch(
        [record], attributes=attributes, producer_id=producer_id, producer_epoch=0, base_sequence=sequence
    )
    model.partition.append(bytes(data), NOW_MS, produce_version=NEW)
    marker = Marker(committed=committed, coordinator_epoch=0)
    end = encode_marker(marker, offset + 1, 9999, producer_id=producer_id, producer_epoch=0, leader_epoch=0)
    model.flush()
    segment = model.partition.segments[-1]
    segment.log.pwritev([bytes(end)], segment.size_bytes)
    model.kill_and_open()


def test_transactions_are_found_again_in_the_log():
    model = Model(small_config(segment_bytes=1 << 20))
    transaction(model, 7, 0, committed=True)
    transaction(model, 7, 1, committed=False)
    transaction(model, 8, 0, committed=False)
    partition = model.partition
    assert partition.log_end_offset == partition.last_stable_offset == 6
    assert aborted_in(partition, 0, 6) == [(7, 2), (8, 4)]
    assert aborted_in(partition, 4, 6) == [(8, 4)]
    assert lookups.first_at_or_after(partition, 51) is None, "a marker's time is no answer"
    assert lookups.largest_timestamp(partition).offset == 0
    model.close_and_open()
    assert aborted_in(model.partition, 0, 6) == [(7, 2), (8, 4)]


def test_an_open_transaction_holds_the_stable_offset():
    model = Model()
    data = encode_batch(
        [Record(0, 50, 0, b"k", b"v")], attributes=TRANSACTIONAL_BIT, producer_id=7, producer_epoch=0, base_sequence=0
    )
    fill(model, 1)
    model.partition.append(bytes(data), NOW_MS, produce_version=NEW)
    fill(model, 1)
    for way in (None, model.close_and_open, model.kill_and_open):
        if way is not None:
            model.written = model.partition.high_watermark
            way()
        assert (model.partition.last_stable_offset, model.partition.high_watermark) == (1, 3)


def test_producers_of_a_batch_that_the_start_divides_or_hides_are_known_again():
    """Else a batch that is sent again is taken twice, and what an open transaction has written is shown."""
    for start in (1, 2, 3):
        model = Model(small_config(segment_bytes=1 << 20))
        records = [Record(n, 50, 0, b"k", b"v") for n in range(2)]
        data = bytes(
            encode_batch(records, attributes=TRANSACTIONAL_BIT, producer_id=7, producer_epoch=0, base_sequence=0)
        )
        assert model.partition.append(data, NOW_MS, produce_version=NEW).base_offset == 0
        fill(model, 1)
        log_start.delete_records_before(model.partition, start)
        assert model.partition.last_stable_offset == start
        model.written = 3
        model.kill_and_open()
        assert model.partition.append(data, NOW_MS, produce_version=NEW).base_offset == 0
        assert (model.partition.last_stable_offset, model.partition.log_end_offset) == (start, 3)


def test_the_log_may_start_inside_a_segment(model):
    log_start.delete_records_before(model.partition, 1)
    model.written = 12
    model.close_and_open()
    assert model.partition.log_start_offset == 1
    model.check()


def test_memory_of_a_scan_is_bounded():
    """A segment is read in pieces of a megabyte, not as a whole."""
    model = Model(small_config(segment_bytes=1 << 30))
    for n in range(40):
        model.append(2, 0, [n], [random.Random(n).randbytes(100_000)])
    model.flush()
    sizes = []
    real = model.storage.open

    def watched(path):
        file = real(path)
        pread = file.pread

        class Watched:
            def __getattr__(self, name):
                return getattr(file, name)

            def pread(self, size, position):
                sizes.append(size)
                return pread(size, position)

        return Watched()

    model.storage.open = watched
    model.kill_and_open()
    assert max(sizes) <= 1 << 20
    assert model.partition.log_end_offset == 40


# Logs whose names lie inside of the one before


def stop(model):
    """Stopped cleanly, without seals: the logs speak for themselves."""
    closing.close(model.partition)
    model.storage.remove(f"{DIRECTORY}/{seals.SEALS}")


def test_a_copy_under_a_wrong_name_is_set_aside_whole(model):
    stop(model)
    model.storage.write_atomically(log_path(1), model.storage.read_all(log_path(0)))
    model.storage.write_atomically(log_path(1).replace(".log", ".index"), b"")
    model.written = 12
    model.reopen(was_clean=True)
    model.check()
    names = model.storage.list_dir(DIRECTORY)
    assert f"{1:020}.log{STRAY_SUFFIX}" in names
    assert f"{1:020}.index" not in names


def test_a_log_that_goes_on_under_a_wrong_name_gets_its_own(model):
    stop(model)
    second = bases(model)[1]
    model.storage.rename(log_path(second), log_path(second - 1))
    model.written = 12
    before = bases(model)
    model.reopen(was_clean=True)
    assert bases(model) == before
    model.check()


@pytest.mark.parametrize("with_seals", [True, False])
def test_a_log_without_a_record_inside_of_another_hides_nothing_of_it(model, with_seals):
    closing.close(model.partition)
    if not with_seals:
        model.storage.remove(f"{DIRECTORY}/{seals.SEALS}")
    model.storage.write_atomically(log_path(1), b"no log at all" * 20)
    model.written = 12
    model.reopen(was_clean=True)
    model.check()
    assert model.storage.exists(f"{log_path(1)}{STRAY_SUFFIX}")


def test_an_empty_log_inside_of_another_is_nothing(model, caplog):
    stop(model)
    model.storage.write_atomically(log_path(1), b"")
    model.written = 12
    model.reopen(was_clean=True)
    model.check()
    assert "is empty and is ignored" in caplog.text


def test_offsets_that_are_gone_are_not_given_out_again(model, caplog):
    closing.close(model.partition)
    last = bases(model)[-1]
    model.storage.remove(log_path(last))
    model.reopen(was_clean=True)
    assert (model.partition.log_end_offset, bases(model)[-1]) == (12, 12)
    assert f"offsets {last} to 11 are missing" in caplog.text
    model.rows = [row for row in model.rows if row[0] < last]
    model.written = 12
    model.check()


# A partition that is made, and what stands for one that cannot be opened


ELSEWHERE = PartitionFolder("u", 3, "/data/u-3")


@pytest.mark.parametrize("topic_id", [None, bytes(range(16))])
def test_a_new_partition_is_empty_and_knows_its_topic(topic_id):
    storage = new_storage()
    partition = create_partition(ELSEWHERE, topic_id, small_config(), Resources(storage), NOW_MS)
    assert (partition.log_start_offset, partition.log_end_offset, partition.leader_epoch) == (0, 0, 0)
    partition.sync()
    storage.sync_dir("/data")
    storage.crash()
    again = open_partition(ELSEWHERE, small_config(), Resources(storage), Circumstances(False, 0, NOW_MS))
    assert (again.topic_id, again.log_end_offset) == (topic_id, 0)


@pytest.mark.parametrize(
    ("metadata", "is_known"), [(None, False), ("good", True), ("damaged", False), ("failing", False)]
)
def test_what_stands_for_a_partition_says_why_and_whose_it_is(metadata, is_known):
    storage = new_storage()
    storage.make_dir(ELSEWHERE.directory)
    if metadata is not None:
        checkpoints.save_topic_id(storage, ELSEWHERE.directory, bytes(range(16)))
    if metadata == "damaged":
        storage.write_atomically(f"{ELSEWHERE.directory}/{checkpoints.PARTITION_METADATA}", b"nonsense")
    if metadata == "failing":
        storage.fail("read", checkpoints.PARTITION_METADATA)
    before = storage.list_dir(ELSEWHERE.directory)
    partition = offline_partition(ELSEWHERE, small_config(), Resources(storage), "no disk", 7)
    assert (partition.topic_id is not None) is is_known
    assert ("no disk" in partition.condition.fault, partition.log_start_offset) == (True, 7)
    assert storage.list_dir(ELSEWHERE.directory) == before
