"""How the disk in memory fails: faults on demand, a full disk, a power cut, damage at rest."""

import errno
import random

import pytest

from horolog.broker.log.storage import FileMissing, MemoryStorage, StorageFault
from horolog.broker.log.storage.memory_disk import ALL, PowerCut


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


def test_after_the_power_has_gone_nothing_works_until_the_crash(storage):
    file = synced_file(storage)
    storage.power_off_after(1)
    with pytest.raises(PowerCut):
        file.pwritev([b"x"], 0)
    for use in (lambda: file.pread(1, 0), file.datasync, lambda: storage.list_dir("/d")):
        with pytest.raises(PowerCut):
            use()
    storage.crash()
    assert storage.read_all("/d/a") == b"synced"


def test_a_fault_strikes_as_often_as_asked_and_where_asked(storage):
    file = synced_file(storage)
    other = storage.create("/d/other")
    storage.fail("write", "/d/a", times=2, code=errno.EIO)
    for _ in range(2):
        with pytest.raises(StorageFault) as caught:
            file.pwritev([b"x"], 0)
        assert caught.value.code == errno.EIO
        other.pwritev([b"x"], 0)
    file.pwritev([b"x"], 0)


def test_a_fault_may_last_until_it_is_healed(storage):
    file = synced_file(storage)
    storage.fail("read", times=ALL)
    for _ in range(3):
        with pytest.raises(StorageFault):
            file.pread(1, 0)
    storage.heal()
    assert file.pread(1, 0) == b"s"


def test_a_failed_write_may_leave_a_part(storage):
    file = synced_file(storage, b"")
    storage.fail("write", torn_bytes=3)
    with pytest.raises(StorageFault):
        file.pwritev([b"abcdef"], 0)
    assert storage.read_all("/d/a") == b"abc"


def test_a_failed_sync_forgets_what_it_should_have_synced(storage):
    file = synced_file(storage, b"1")
    file.pwritev([b"2"], 1)
    storage.fail("sync")
    with pytest.raises(StorageFault):
        file.datasync()
    assert storage.read_all("/d/a") == b"12", "the cache still shows it"
    storage.crash(random.Random(1))
    assert storage.read_all("/d/a") == b"1"


def test_what_a_failed_sync_has_forgotten_no_later_sync_brings_back(storage):
    file = synced_file(storage, b"1")
    file.pwritev([b"2"], 1)
    storage.fail("sync")
    with pytest.raises(StorageFault):
        file.datasync()
    file.pwritev([b"3"], 2)
    file.datasync()
    storage.crash()
    assert storage.read_all("/d/a") == b"1\0" + b"3"


def test_a_failing_sync_may_take_it_out_of_the_cache_too(storage):
    file = synced_file(storage, b"1")
    file.pwritev([b"2"], 1)
    storage.fail("sync", evicting=True)
    with pytest.raises(StorageFault):
        file.datasync()
    assert storage.read_all("/d/a") == b"1\0"


def test_a_full_disk_takes_what_fits_and_refuses_the_rest(storage):
    file = synced_file(storage, b"12345")
    storage.capacity_bytes = 8
    with pytest.raises(StorageFault) as caught:
        file.pwritev([b"678901"], 5)
    assert caught.value.code == errno.ENOSPC
    assert storage.used_bytes() <= 8
    file.pwritev([b"abc"], 0)
    storage.heal()
    file.pwritev([b"678901"], 5)
    assert storage.read_all("/d/a") == b"abc45678901"


def test_zeros_behind_the_data_take_no_space(storage):
    file = storage.create("/d/a")
    file.truncate(1 << 40)
    assert storage.used_bytes() == 0
    assert file.size() == 1 << 40
    assert file.pread(4, 1 << 39) == bytes(4)


def test_operations_are_counted(storage):
    file = synced_file(storage)
    before = dict(storage.operations)
    file.datasync()
    file.datasync()
    assert storage.operations["sync"] == before["sync"] + 2


def test_when_only_the_process_dies_everything_written_is_there(storage):
    file = synced_file(storage)
    storage.power_off_after(2, last_write_bytes=3)
    file.pwritev([b" and"], 6)
    with pytest.raises(PowerCut):
        file.pwritev([b" more"], 10)
    storage.die()
    assert storage.read_all("/d/a") == b"synced and mo"


def test_what_is_corrupted_on_its_way_to_the_disk_arrives_so(storage):
    file = synced_file(storage, b"")
    file.pwritev([b"ab"], 0)
    file.pwritev([b"cd"], 2)
    storage.corrupt("/d/a", 2, 0x20)
    storage.crash(random.Random(1), survival=1.0)
    assert storage.read_all("/d/a") == b"abCd"


def test_what_is_corrupted_stays_so(storage):
    synced_file(storage)
    storage.corrupt("/d/a", 1, 0x20)
    assert storage.read_all("/d/a") == b"sYnced"
    storage.crash()
    assert storage.read_all("/d/a") == b"sYnced"
    assert storage.files() == ["/d/a"]


def test_what_goes_on_during_a_sync_may_write(storage):
    file = synced_file(storage)
    storage.while_syncing = lambda: file.pwritev([b"!"], 6)
    file.datasync()
    storage.crash()
    assert storage.read_all("/d/a") == b"synced!"


def test_what_is_only_read_takes_no_change_until_it_is_healed(storage):
    file = synced_file(storage)
    storage.unwritable["/d/"] = errno.EROFS
    for change in (
        lambda: file.pwritev([b"x"], 0),
        lambda: storage.create("/d/b"),
        lambda: storage.remove("/d/a"),
        lambda: storage.check_writable("/d/a"),
    ):
        with pytest.raises(StorageFault) as caught:
            change()
        assert caught.value.code == errno.EROFS
    storage.check_writable("/elsewhere")
    assert file.pread(6, 0) == b"synced"
    storage.heal()
    file.pwritev([b"x"], 0)


def test_a_sync_at_which_the_power_goes_has_synced_nothing(storage):
    file = synced_file(storage)
    file.pwritev([b" more"], 6)
    storage.power_off_after(1)
    with pytest.raises(PowerCut):
        file.datasync()
    storage.crash()
    assert storage.read_all("/d/a") == b"synced"


def test_files_and_folders_are_told_apart(storage):
    synced_file(storage)
    for path in ("/d", "/none", "/d/a/b"):
        with pytest.raises(FileMissing):
            storage.file_node(path)
    for path in ("/d/a", "/none"):
        with pytest.raises(FileMissing):
            storage.folder(path)
