"""After failed writes and syncs: which appends are taken, which bytes are believed, and how a partition comes back."""

import errno
import random
import threading
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace

import pytest

from horolog.broker.log.partition import Resources, closing, lookups, rewrite
from horolog.broker.log.partition.rewrite import PROBE
from horolog.broker.log.recovery import Circumstances, PartitionFolder, open_log
from horolog.broker.log.storage import StorageFault
from horolog.broker.log.storage.memory_disk import ALL, PowerCut
from horolog.protocol.records.batch import encode_batch
from horolog.protocol.records.record import Record
from tests.support.log_model import DIRECTORY, NEW, NOW_MS, Model, encode, read_all, small_config


def append(model, timestamp=5, size=40):
    return model.partition.append(encode(2, 0, [timestamp], [b"v" * size]), NOW_MS, produce_version=NEW)


def written(model, count):
    for _ in range(count):
        append(model)
        model.flush()


def stopped(model, count=3, **fault):
    """A partition of three synced records and some that the disk did not take."""
    written(model, 3)
    model.partition.sync()
    written(model, count)
    model.storage.fail("sync", ".log", **fault)
    with pytest.raises(StorageFault):
        model.partition.sync()
    return model


def after_power_cut(model):
    model.storage.crash()
    model.reopen(was_clean=False)
    return read_all(model.partition)


@pytest.fixture
def model():
    return Model(small_config(segment_bytes=100_000))


def test_a_sync_after_a_failed_one_would_prove_nothing(model):
    """The storage forgets what it failed to sync, as kernels do: without a repair a power cut takes it."""
    stopped(model)
    model.partition.condition.resume()
    model.partition.sync_state.rewritten(0)
    model.partition.sync()
    assert len(after_power_cut(model)) == 3


def test_what_was_queued_before_the_stop_is_not_cut_by_the_rewrite(model):
    written(model, 3)
    append(model)
    model.storage.fail("sync", ".log")
    with pytest.raises(StorageFault):
        model.partition.sync()
    job = rewrite.job(model.partition)
    model.flush()
    job()
    model.partition.sync()
    assert len(read_all(model.partition)) == 4
    assert len(after_power_cut(model)) == 4


def test_a_rewrite_goes_on_where_what_was_queued_cannot_be_written(model):
    written(model, 3)
    append(model)
    model.storage.fail("sync", ".log")
    with pytest.raises(StorageFault):
        model.partition.sync()
    model.storage.fail("write", ".log")
    job = rewrite.job(model.partition)
    with pytest.raises(StorageFault):
        model.flush()
    job()
    assert model.partition.condition.takes_appends
    assert len(after_power_cut(model)) == 3


def test_repair_has_everything_on_the_disk_and_appends_go_on(model):
    stopped(model)
    before = read_all(model.partition)
    assert len(before) == 6, "reading goes on"
    rewrite.job(model.partition)()
    assert model.partition.condition.takes_appends
    assert model.partition.sync_state.recovery_point == 6
    written(model, 1)
    model.partition.sync()
    assert after_power_cut(model)[:6] == before
    assert len(read_all(model.partition)) == 7


def test_repair_reaches_over_segments():
    model = Model()
    written(model, 3)
    model.partition.sync()
    written(model, 40)
    assert len(model.partition.segments) > 2
    model.storage.fail("sync", times=ALL)
    with pytest.raises(StorageFault):
        model.partition.sync()
    with pytest.raises(StorageFault):
        rewrite.job(model.partition)()
    assert model.partition.condition.stopped
    before = read_all(model.partition)
    model.storage.heal()
    rewrite.job(model.partition)()
    assert after_power_cut(model) == before


@pytest.mark.parametrize("operation", ["create", "write", "sync", "rename", "sync_dir"])
@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EMFILE])
def test_while_the_disk_fails_a_repair_changes_nothing(model, operation, code):
    stopped(model)
    model.storage.fail(operation, times=ALL, code=code)
    for _ in range(3):
        with pytest.raises(StorageFault):
            rewrite.job(model.partition)()
        with pytest.raises(StorageFault):
            append(model)
        assert len(read_all(model.partition)) == 6
    model.storage.heal()
    rewrite.job(model.partition)()
    assert model.partition.condition.takes_appends
    assert len(after_power_cut(model)) == 6


def test_power_may_fail_at_any_moment_of_a_repair():
    """Whatever it has done by then, all that was synced before is there, and nothing that was not appended is."""
    for seed in range(30):
        model = stopped(Model(small_config(segment_bytes=100_000)), count=5)
        model.storage.power_off_after(seed % 8 + 1)
        with suppress(PowerCut):
            rewrite.job(model.partition)()
        model.storage.crash(random.Random(seed))
        model.reopen(was_clean=False)
        rows = read_all(model.partition)
        assert 3 <= len(rows) <= 8
        assert [row[0] for row in rows] == list(range(len(rows)))


def test_what_a_failed_write_has_left_is_cut_off(model):
    written(model, 2)
    append(model)
    model.storage.fail("write", ".log", torn_bytes=30)
    model.storage.fail("truncate", ".log")
    with pytest.raises(StorageFault):
        model.flush()
    assert model.partition.condition.stopped
    rewrite.job(model.partition)()
    written(model, 1)
    model.partition.sync()
    assert [row[0] for row in after_power_cut(model)] == [0, 1, 2]


def test_what_the_cache_has_given_up_is_not_made_up(model):
    """The unsynced records are nowhere any more: the partition is opened again as after a crash, and their offsets come anew."""
    stopped(model, evicting=True)
    rewrite.job(model.partition)()
    assert model.partition.condition.fault is not None
    assert not model.partition.condition.takes_appends


def test_no_descriptor_to_sync_by_is_no_lost_write(model):
    written(model, 3)
    model.storage.fail("open", code=errno.EMFILE)
    model.partition.segments[0].log.close()
    with pytest.raises(StorageFault):
        model.partition.sync()
    assert model.partition.condition.takes_appends
    model.partition.sync()
    assert len(after_power_cut(model)) == 3


def test_small_files_of_a_new_folder_are_written_again(model):
    written(model, 1)
    model.storage.fail("sync", "leader-epoch")
    with pytest.raises(StorageFault):
        model.partition.sync()
    rewrite.job(model.partition)()
    model.storage.crash()
    assert model.storage.read_all(f"{DIRECTORY}/leader-epoch-checkpoint")


def test_producers_are_told_of_what_was_repaired(model):
    """A numbered batch that got an error is there after the repair: sent again, it is told its place and not appended."""
    batch = bytes(encode_batch([Record(0, 1, 0, b"k", b"v")], producer_id=7, producer_epoch=0, base_sequence=0))
    first = model.partition.append(batch, NOW_MS, produce_version=NEW)
    model.flush()
    model.storage.fail("sync", ".log")
    with pytest.raises(StorageFault):
        model.partition.sync()
    with pytest.raises(StorageFault):
        model.partition.append(batch, NOW_MS, produce_version=NEW)
    rewrite.job(model.partition)()
    assert model.partition.append(batch, NOW_MS, produce_version=NEW).base_offset == first.base_offset
    assert len(after_power_cut(model)) == 1


def test_seals_that_cannot_be_written_stop_nothing_and_come_later():
    model = Model()
    written(model, 40)
    model.storage.fail("create", "horolog-seals", times=2, code=errno.ENOSPC)
    for _ in range(3):
        model.partition.sync()
        written(model, 1)
    assert model.partition.condition.takes_appends
    model.partition.sync()
    assert model.storage.exists(f"{DIRECTORY}/horolog-seals")
    assert not model.partition.durability.is_due(NOW_MS, model.partition.config.flush_ms)


def test_nothing_is_left_of_the_probe(model):
    stopped(model)
    rewrite.job(model.partition)()
    assert not [name for name in model.storage.list_dir(DIRECTORY) if PROBE in name]


def test_a_sync_that_waited_for_one_that_failed_fails_too(model):
    """It had looked at the partition before the other failed: two workers may sync one partition."""
    written(model, 3)
    durability, log = model.partition.durability, model.partition.segments[0].log
    late = []

    def sync_late():
        try:
            durability.sync(model.partition.segments, 3)
        except StorageFault as fault:
            late.append(fault)

    waiting = threading.Thread(target=sync_late)

    class Dying:
        def __getattr__(self, name):
            return getattr(log, name)

        def datasync(self):
            model.partition.segments[0].log = log
            waiting.start()
            raise StorageFault("no more")

    model.partition.segments[0].log = Dying()
    with pytest.raises(StorageFault):
        model.partition.sync()
    waiting.join(60)
    assert len(late) == 1
    assert model.partition.sync_state.recovery_point == 0


@pytest.mark.parametrize("evicting", [False, True])
def test_the_next_process_does_not_believe_the_page_cache_of_one_whose_sync_has_failed(model, evicting):
    """What a reader is shown after the start, and everything acknowledged on top of it, is on the disk with the first sync."""
    stopped(model, evicting=evicting)
    model.storage.die()
    model.reopen(was_clean=False)
    shown = read_all(model.partition)
    assert len(shown) == (3 if evicting else 6)
    written(model, 1)
    model.partition.sync()
    assert after_power_cut(model)[:-1] == shown
    assert len(read_all(model.partition)) == len(shown) + 1


def test_nothing_that_a_seal_speaks_of_is_written_again():
    model = Model()
    written(model, 40)
    model.partition.sync()
    sealed = [segment.log.path for segment in model.partition.segments[:-1]]
    assert len(sealed) > 1
    before = {path: model.storage.file_node(path).mtime_ns for path in sealed}
    model.storage.now_ns = lambda: 5
    model.reopen(was_clean=False)
    assert {path: model.storage.file_node(path).mtime_ns for path in sealed} == before
    assert model.storage.file_node(model.partition.segments[-1].log.path).mtime_ns == 5


def test_what_the_cache_has_lost_is_not_shown(model):
    """Readers of a stopped partition get good batches, and an error that they try again for the rest."""
    stopped(model, evicting=True)
    partition = model.partition
    good = partition.read(0, 1 << 20)
    assert good.endswith(partition.read(2, 1 << 20) or b"nothing")
    for offset in (3, 5):
        with pytest.raises(StorageFault):
            partition.read(offset, 1 << 20)
    assert lookups.first_at_or_after(partition, 5).offset == 0
    with pytest.raises(StorageFault):
        lookups.first_at_or_after(partition, 6)
    with pytest.raises(StorageFault):
        lookups.largest_timestamp(partition)


def test_a_log_that_is_replaced_is_noted_once_all_of_it_is_there(model):
    """Code that has seen the count before looks again after it."""
    partition, seen = model.partition, []
    changes = SimpleNamespace(note=lambda: seen.append(partition.leader_epoch))
    known = Circumstances(was_clean=False, log_start_offset=0, now_ms=NOW_MS)
    closing.close_files(partition)
    resources = replace(Resources(model.storage), changes=changes)
    opened = open_log(PartitionFolder("t", 0, DIRECTORY), model.config, resources, known)
    partition.resources = resources
    partition.leader_epoch = opened.leader_epoch + 3
    partition.replace_log(opened)
    assert seen == [opened.leader_epoch + 3]
