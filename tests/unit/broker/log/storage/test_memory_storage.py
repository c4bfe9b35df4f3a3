"""What the file system in memory loses, tears and refuses."""

import contextlib
import random

import pytest

from horolog.broker.log.storage import MemoryStorage, StorageFault
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
