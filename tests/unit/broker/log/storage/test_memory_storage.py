"""What the file system in memory loses, tears and refuses."""

import contextlib
import random

import pytest

from horolog.broker.log.storage import FileMissing, FolderInUse, MemoryStorage, StorageFault
from horolog.broker.log.storage.memory_disk import PowerCut


@pytest.fixture
def storage():
    storage = MemoryStorage()
    storage.make_dir("/d")
    storage.sync_dir("/")
    return storage


def synced_file(storage, data=b"synced"):
    file = storage.create("/d/a")
    file.pwritev([data], 0)
    file.datasync()
    storage.sync_dir("/d")
    return file


def test_only_what_was_synced_survives(storage):
    file = synced_file(storage)
    file.pwritev([b" and more"], 6)
    storage.crash()
    assert storage.read_all("/d/a") == b"synced"


def test_a_file_whose_folder_was_not_synced_vanishes(storage):
    file = storage.create("/d/a")
    file.pwritev([b"data"], 0)
    file.datasync()
    storage.crash()
    assert storage.list_dir("/d") == []


def test_renames_and_removals_that_were_not_synced_are_undone(storage):
    synced_file(storage)
    storage.rename("/d/a", "/d/b")
    storage.crash()
    assert storage.list_dir("/d") == ["a"]
    storage.remove("/d/a")
    storage.crash()
    assert storage.list_dir("/d") == ["a"]
    storage.remove("/d/a")
    storage.sync_dir("/d")
    storage.crash()
    assert storage.list_dir("/d") == []


def test_with_chance_any_part_of_what_was_not_synced_may_have_arrived():
    """Every write arrives whole, torn or not at all, each by itself; what was synced is always there."""
    outcomes = set()
    for seed in range(200):
        storage = MemoryStorage()
        storage.make_dir("/d")
        storage.sync_dir("/")
        file = synced_file(storage, b"ok")
        file.pwritev([b"AAA"], 2)
        file.pwritev([b"BBB"], 5)
        storage.crash(random.Random(seed))
        data = storage.read_all("/d/a")
        assert data.startswith(b"ok")
        outcomes.add(data)
    assert {b"ok", b"okAAA", b"ok\0\0\0BBB", b"okAAABBB"} <= outcomes
    assert any(b"A" in one and not one.startswith(b"okAAA") for one in outcomes), "none was torn"


def test_an_atomic_write_is_old_or_new():
    seen = set()
    for changes in range(1, 12):
        storage = MemoryStorage()
        storage.make_dir("/d")
        storage.sync_dir("/")
        storage.write_atomically("/d/a", b"old")
        storage.power_off_after(changes)
        with contextlib.suppress(PowerCut):
            storage.write_atomically("/d/a", b"new")
        storage.crash(random.Random(changes))
        seen.add(storage.read_all("/d/a"))
    assert seen == {b"old", b"new"}


def test_files_stay_in_their_folder(storage):
    synced_file(storage)
    storage.make_dir("/e")
    with pytest.raises(StorageFault, match="another folder"):
        storage.rename("/d/a", "/e/a")


class TestFiles:
    def test_what_was_made_longer_reads_as_zeros_and_takes_no_room(self, storage):
        file = synced_file(storage, b"abc")
        file.allocate(10)
        file.allocate(5)
        assert not file.reserve(10, 100)
        assert (file.size(), file.pread(4, 2)) == (10, b"c\0\0\0")
        file.truncate(1_000_000)
        assert storage.read_all("/d/a") == b"abc".ljust(1_000_000, b"\0")

    def test_reading_beyond_the_end_is_a_fault(self, storage):
        with pytest.raises(StorageFault, match="ends 2 bytes before 8"):
            synced_file(storage, b"synced").pread(4, 4)

    def test_a_file_is_opened_by_its_first_use_or_at_once(self, storage):
        later = storage.open("/d/a")
        with pytest.raises(FileMissing):
            storage.open_apart("/d/a")
        storage.open_apart("/d/b", create=True).pwritev([b"made"], 0)
        assert storage.read_all("/d/b") == b"made"
        synced_file(storage)
        assert later.pread(6, 0) == storage.open_apart("/d/a").pread(6, 0) == b"synced"
        later.close()
        storage.remove("/d/a")
        with pytest.raises(FileMissing):
            later.pread(1, 0)

    def test_a_file_whose_name_stands_for_another_is_gone(self, storage):
        file = synced_file(storage)
        file.check_in_place()
        storage.write_atomically("/d/a", b"other")
        with pytest.raises(FileMissing, match="another file has its name"):
            file.check_in_place()

    def test_creating_empties_what_was_there(self, storage):
        synced_file(storage)
        assert storage.create("/d/a").size() == 0

    def test_times_are_the_storages_until_they_are_set(self, storage):
        storage.now_ns = lambda: 7_000_000
        synced_file(storage)
        assert storage.stat("/d/a") == (6, 7_000_000)
        storage.set_mtime_ms("/d/a", 5)
        assert storage.stat("/d/a") == (6, 5_000_000)


class TestNames:
    def test_folders_hold_files_and_go_when_they_are_empty(self, storage):
        synced_file(storage)
        assert (storage.is_dir("/d"), storage.is_dir("/d/a"), storage.exists("/d/a")) == (True, False, True)
        assert storage.list_dir("/d") == ["a"]
        with pytest.raises(StorageFault, match="not empty"):
            storage.remove_dir("/d")
        storage.remove("/d/a")
        storage.remove_dir("/d")
        assert not storage.exists("/d")

    @pytest.mark.parametrize(
        "use",
        [
            lambda storage: storage.list_dir("/none"),
            lambda storage: storage.list_dir("/d/a"),
            lambda storage: storage.read_all("/none"),
            lambda storage: storage.stat("/d"),
            lambda storage: storage.remove("/none"),
            lambda storage: storage.rename("/none", "/other"),
            lambda storage: storage.create("/none/a"),
        ],
    )
    def test_what_is_not_there_is_missing(self, storage, use):
        synced_file(storage)
        with pytest.raises(FileMissing):
            use(storage)

    def test_a_folder_is_made_once(self, storage):
        with pytest.raises(StorageFault, match="exists"):
            storage.make_dir("/d")


class TestTheMachine:
    def test_a_folder_is_locked_once(self, storage):
        lock = storage.lock("/d/.lock")
        with pytest.raises(FolderInUse):
            storage.lock("/d/.lock")
        lock.release()
        storage.lock("/d/.lock").release()

    def test_there_is_room_until_it_is_bounded(self, storage):
        synced_file(storage)
        assert storage.disk_space("/d")[1] > 1 << 60
        storage.capacity_bytes = 10
        assert storage.disk_space("/d") == (10, 4)

    @pytest.mark.parametrize(
        "step", [lambda s, f: s.sync_dir("/d"), lambda s, f: f.datasync(), lambda s, f: s.remove("/d/a")]
    )
    def test_the_power_may_go_at_any_change(self, storage, step):
        file = synced_file(storage)
        storage.power_off_after(1)
        with pytest.raises(PowerCut):
            step(storage, file)
        with pytest.raises(PowerCut):
            storage.list_dir("/d")
