"""Disks that are full for some files or for all, in memory and in a folder: what takes space is refused, the rest goes on."""

import errno

import pytest

from horolog.broker.log.storage import StorageFault
from horolog.testing.full_disk import FillableDisk, FillableMemory, Fullness


@pytest.fixture(params=["memory", "folder"])
def disk(request, tmp_path):
    fullness = Fullness()
    storage = FillableMemory(lambda: 0, fullness) if request.param == "memory" else FillableDisk(fullness)
    root = "/data" if request.param == "memory" else str(tmp_path)
    if request.param == "memory":
        storage.make_dir(root)
    return storage, fullness, root


def test_folders_of_a_topic_are_full_and_no_others(disk):
    storage, fullness, root = disk
    for name in ("orders-0", "orders-1", "orders-2-0"):
        storage.make_dir(f"{root}/{name}")
        storage.create(f"{root}/{name}/log").close()
    pattern = fullness.fill("orders", 1)
    storage.open(f"{root}/orders-0/log").pwritev([b"x"], 0)
    full = storage.open(f"{root}/orders-1/log")
    for refused in (lambda: full.pwritev([b"x"], 0), lambda: full.allocate(10)):
        with pytest.raises(StorageFault) as caught:
            refused()
        assert caught.value.code == errno.ENOSPC
    full.truncate(0)
    assert full.size() == 0
    fullness.fill("orders")
    assert fullness.covers(f"{root}/orders-0")
    assert not fullness.covers(f"{root}/orders-2-0/log")
    fullness.clear(pattern)
    assert "orders" in repr(fullness)


def test_the_whole_disk_is_full(disk):
    storage, fullness, root = disk
    storage.write_atomically(f"{root}/kept", b"here")
    pattern = fullness.fill()
    for refused in (
        lambda: storage.make_dir(f"{root}/new"),
        lambda: storage.create(f"{root}/new"),
        lambda: storage.write_atomically(f"{root}/kept", b"more"),
    ):
        with pytest.raises(StorageFault) as caught:
            refused()
        assert caught.value.code == errno.ENOSPC
    assert storage.read_all(f"{root}/kept") == b"here"
    fullness.clear(pattern)
    storage.write_atomically(f"{root}/kept", b"more")
    file = storage.create(f"{root}/file")
    file.allocate(10)
    file.pwritev([b"x"], 0)
    assert (file.pread(1, 0), file.size()) == (b"x", 10)
    file.close()
    storage.remove(f"{root}/kept")


def test_a_copy_in_memory_has_everything_or_what_was_synced():
    disk = FillableMemory(lambda: 0, Fullness())
    disk.make_dir("/d")
    disk.sync_dir("/")
    file = disk.create("/d/f")
    file.pwritev([b"synced"], 0)
    file.datasync()
    disk.sync_dir("/d")
    file.pwritev([b", written"], 6)
    whole, rest = disk.copied(), disk.copied(synced_only=True)
    file.pwritev([b"X"], 0)
    assert (whole.read_all("/d/f"), rest.read_all("/d/f")) == (b"synced, written", b"synced")
