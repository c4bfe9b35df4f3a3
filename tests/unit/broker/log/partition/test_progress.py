"""An active segment that was sealed as it grew is read only from there on, and never believed further than it was synced."""

import random

import pytest

from horolog.broker.log.integrity import seals
from horolog.broker.log.integrity.set_aside import in_folder
from horolog.broker.log.partition import note_progress
from horolog.broker.log.partition.rewrite import PAGE_BYTES
from horolog.broker.log.segments import index_loading, indexes_of
from horolog.broker.log.segments import segment as segment_module
from tests.support.log_model import DIRECTORY, Model, small_config
from tests.unit.broker.log.recovery.test_recovery import counters, fill, flip, log_path, transaction


@pytest.fixture
def model(monkeypatch):
    monkeypatch.setattr(segment_module, "PROGRESS_BYTES", 1000)
    model = Model(small_config(segment_bytes=1 << 20, segment_index_bytes=4000))
    fill(model, 20)
    return model


def sealed_bytes(model):
    sealed = seals.load(model.storage, DIRECTORY)
    return sealed[0].contents.size_bytes if 0 in sealed else 0


def read_positions(model):
    """Where the log is read while the partition is opened after a kill."""
    positions = []
    real = model.storage.open

    def watched(path):
        file = real(path)
        if path.endswith(".log"):
            pread = file.pread

            class Watched:
                def __getattr__(self, name):
                    return getattr(file, name)

                def pread(self, size, position):
                    positions.append((position, size))
                    return pread(size, position)

            return Watched()
        return file

    model.storage.open = watched
    model.kill_and_open()
    model.storage.open = real
    return positions


def test_only_what_was_added_is_read(model):
    fill(model, 80)
    note_progress(model.partition)
    model.sync()
    sealed = sealed_bytes(model)
    assert sealed == model.partition.size_bytes
    fill(model, 3)
    whole = model.partition.size_bytes
    positions = read_positions(model)
    before = [(start, size) for start, size in positions if start < sealed]
    written_again = sealed - sealed % PAGE_BYTES, PAGE_BYTES
    assert all(size == seals.FINGERPRINT_BYTES or start >= written_again[0] for start, size in before), "only the ends"
    assert any(start >= sealed for start, _ in positions)
    assert model.partition.size_bytes == whole
    model.check()
    model.close_and_open()
    model.check()


def test_a_log_that_is_idle_since_it_was_sealed_needs_no_reading_to_be_looked_into(model, monkeypatch):
    """Its index files have room for what may come, which is no damage, however large the log is."""
    monkeypatch.setattr(index_loading, "REBUILD_AT_ONCE_BYTES", 0)
    fill(model, 80)
    note_progress(model.partition)
    model.sync()
    assert sealed_bytes(model) == model.partition.size_bytes
    model.kill_and_open()
    model.check()
    assert counters(model).indexes_rebuilt.value == 0
    assert model.storage.stat(f"{DIRECTORY}/{0:020d}.timeindex")[0] < 4000
    fill(model, 3)
    model.close_and_open()
    model.check()


def test_a_kill_after_room_was_made_for_an_append_that_never_came(model, monkeypatch):
    monkeypatch.setattr(index_loading, "REBUILD_AT_ONCE_BYTES", 0)
    model.close_and_open()
    active = model.partition.segments[-1]
    active.prepare_to_append(indexes_of(active))
    model.kill_and_open()
    model.check()
    assert counters(model).indexes_rebuilt.value == 0


def test_little_growth_is_not_sealed(model):
    note_progress(model.partition)
    model.sync()
    before = model.storage.read_all(f"{DIRECTORY}/{seals.SEALS}")
    fill(model, 1)
    note_progress(model.partition)
    model.sync()
    assert model.storage.read_all(f"{DIRECTORY}/{seals.SEALS}") == before


def test_a_seal_of_what_was_not_synced_is_never_saved(model):
    note_progress(model.partition)
    assert sealed_bytes(model) == 0
    model.storage.fail("sync", ".log")
    with pytest.raises(Exception, match="sync"):
        model.partition.sync()
    assert sealed_bytes(model) == 0


def test_its_index_entries_are_on_the_disk_with_it(model):
    note_progress(model.partition)
    model.sync()
    fill(model, 2)
    model.written = model.synced
    model.rows = [row for row in model.rows if row[0] < model.synced]
    model.storage.crash()
    model.reopen(was_clean=False)
    assert counters(model).indexes_rebuilt.value == 0
    model.check()


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_without_its_index_entries_all_is_read_again(model, suffix):
    note_progress(model.partition)
    model.sync()
    flip(model, f"{DIRECTORY}/{0:020d}{suffix}", 3)
    model.kill_and_open()
    model.check()


def test_what_was_sealed_and_is_gone_is_never_given_out_again(model):
    """A cut log: the offsets that were synced once are missing, those that follow are new."""
    note_progress(model.partition)
    model.sync()
    path = log_path(0)
    model.storage.open(path).truncate(model.storage.stat(path)[0] - 10)
    model.rows.pop()
    model.kill_and_open()
    assert model.partition.log_end_offset == 20
    fill(model, 2)
    model.kill_and_open()
    assert [row[0] for row in model.visible()] == [*range(19), 20, 21]
    model.check()
    assert [(one.kind, one.first_offset, one.last_offset) for one in in_folder(model.storage, DIRECTORY)] == [
        ("damaged", 19, 19)
    ]


def test_snapshots_of_producers_do_not_pile_up(model):
    transaction(model, 7, 0, committed=True)
    for _ in range(4):
        fill(model, 12)
        note_progress(model.partition)
        model.sync()
    names = [name for name in model.storage.list_dir(DIRECTORY) if name.endswith(".snapshot")]
    assert len(names) == 1
    for _ in range(2):
        model.kill_and_open()
        fill(model, 12)
        note_progress(model.partition)
        model.sync()
    assert len([name for name in model.storage.list_dir(DIRECTORY) if name.endswith(".snapshot")]) <= 2
    assert len(model.partition.producers) == 1


@pytest.mark.parametrize("seed", range(30))
def test_a_power_cut_leaves_what_was_sealed(model, seed):
    chance = random.Random(seed)
    for _ in range(6):
        fill(model, chance.randint(1, 8))
        if chance.random() < 0.6:
            note_progress(model.partition)
        if chance.random() < 0.5:
            model.sync()
    model.cut_power_and_open(chance)
    model.check()
    fill(model, 2)
    model.check()
