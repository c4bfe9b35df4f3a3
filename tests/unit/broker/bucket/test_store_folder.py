"""What a folder says about the store that it goes with, and about the process that had it last."""

import pytest

from horolog.broker.bucket.names import Wal
from horolog.broker.bucket.store_folder import FolderOfAnother, LastUse, claim, ended_wal, read, refuse_another
from horolog.broker.log.storage import DataFolderError, MemoryStorage, StorageFault

USE = LastUse("cluster", Wal(1, 7), "host")


@pytest.fixture
def storage():
    storage = MemoryStorage()
    storage.make_dir("/a")
    storage.make_dir("/b")
    return storage


def test_the_last_use_is_read_as_it_was_noted(storage):
    assert read(storage, "/a") is None
    claim(storage, "/a", USE)
    assert read(storage, "/a") == USE
    storage.write_atomically("/a/horolog-store", b"cluster\n")
    assert read(storage, "/a") == LastUse("cluster")


def test_a_folder_goes_with_one_store(storage):
    refuse_another(storage, "/a", "cluster", has_partitions=False)
    with pytest.raises(FolderOfAnother, match="in no store"):
        refuse_another(storage, "/a", "cluster", has_partitions=True)
    claim(storage, "/a", USE)
    refuse_another(storage, "/a", "cluster", has_partitions=True)
    with pytest.raises(FolderOfAnother, match="of cluster cluster, not other"):
        refuse_another(storage, "/a", "other", has_partitions=False)


def test_the_process_that_had_free_folders_last_has_ended(storage):
    for folder in ("/a", "/b"):
        claim(storage, folder, USE)
    assert ended_wal(storage, ["/a", "/b"], "host") == Wal(1, 7)
    assert ended_wal(storage, ["/a", "/b"], "copy") is None
    assert storage.locks == set()
    claim(storage, "/b", USE._replace(wal=Wal(1, 6)))
    assert ended_wal(storage, ["/a", "/b"], "host") is None


def test_folders_that_are_new_missing_or_damaged_say_nothing(storage, monkeypatch):
    assert ended_wal(storage, ["/a"], "host") is None
    assert ended_wal(storage, ["/missing"], "host") is None
    assert ended_wal(storage, [], "host") is None

    def fail(path):
        raise StorageFault("no", path=path, code=5)

    monkeypatch.setattr(storage, "check_writable", fail)
    assert ended_wal(storage, ["/a"], "host") is None


def test_a_folder_that_is_in_use_is_refused(storage):
    storage.lock("/a/.lock")
    with pytest.raises(DataFolderError, match="in use by another broker"):
        ended_wal(storage, ["/a"], "host")
