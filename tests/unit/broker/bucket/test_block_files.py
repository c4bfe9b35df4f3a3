"""Blocks as files: kept bytes are read back, the limit holds on the disk, and a disk that fails ends no read."""

import errno

import pytest

from horolog.broker.bucket import block_files
from horolog.broker.bucket.block_files import FOLDER, BlockFiles
from horolog.broker.bucket.block_ledger import Block
from horolog.broker.log.storage import StorageFault
from horolog.broker.log.storage.memory_disk import ALL
from tests.support.bucket_segments import keep
from tests.support.log_model import new_storage


@pytest.fixture
def storage():
    return new_storage()


@pytest.fixture
def files(storage):
    return BlockFiles(storage, "/data", lambda: 300)


def block(number):
    return Block("data/x.log", number)


def on_disk(storage):
    return [storage.stat(f"/data/{FOLDER}/{name}")[0] for name in storage.list_dir(f"/data/{FOLDER}")]


def test_what_is_kept_is_read_back_in_parts(files):
    assert files.read(block(0), 1, 0) is None
    keep(files, block(0), b"0123456789")
    assert block(0) in files
    assert (files.read(block(0), 4, 3), files.read(block(1), 4, 3)) == (b"3456", None)
    assert (files.read_whole(block(0)), files.read_whole(block(1))) == (b"0123456789", None)
    assert (files.kept_bytes, files.unread_bytes) == (10, 0)
    keep(files, block(1), b"01")
    assert files.unread_bytes == 2
    assert FOLDER in repr(files)


def test_the_limit_holds_on_the_disk(files, storage):
    for number in range(5):
        keep(files, block(number), bytes(100))
        files.read(block(0), 1, 0)
    assert on_disk(storage) == [100] * 3
    assert [number for number in range(5) if block(number) in files] == [0, 3, 4]


def test_a_block_that_is_kept_again_has_one_file(files, storage):
    keep(files, block(0), b"old")
    keep(files, block(0), b"newer")
    assert (files.read(block(0), 5, 0), on_disk(storage)) == (b"newer", [5])


def test_the_folder_is_emptied_at_the_start(files, storage):
    keep(files, block(0), b"old")
    again = BlockFiles(storage, "/data", lambda: 300)
    assert (again.kept_bytes, on_disk(storage), block(0) in again) == (0, [], False)


def test_a_full_disk_leaves_blocks_to_memory_within_a_limit(files, storage, monkeypatch):
    monkeypatch.setattr(block_files, "SPARE_BYTES", 250)
    storage.fail("write", FOLDER, times=ALL, code=errno.ENOSPC)
    for number in range(4):
        keep(files, block(number), bytes([number]) * 100)
        files.read(block(0), 1, 0)
    assert on_disk(storage) == []
    assert (files.read(block(3), 2, 50), files.read(block(0), 1, 0), files.read(block(1), 1, 0)) == (
        b"\3\3",
        b"\0",
        None,
    )
    assert files.kept_bytes == 200


def test_a_file_that_is_not_made_leaves_its_block_to_memory(files, storage):
    storage.fail("create", FOLDER, times=ALL, code=errno.EMFILE)
    keep(files, block(0), b"0123")
    assert (on_disk(storage), files.read(block(0), 2, 1)) == ([], b"12")


def test_a_block_that_cannot_be_read_is_asked_for_again(files, storage):
    keep(files, block(0), b"0123")
    storage.fail("read", FOLDER, times=ALL, code=errno.EIO)
    assert files.read(block(0), 2, 0) is None
    assert block(0) not in files


def test_a_file_that_cannot_be_removed_does_not_count(files, storage):
    keep(files, block(0), bytes(200))
    storage.fail("remove", FOLDER, times=ALL, code=errno.EIO)
    keep(files, block(1), bytes(200))
    assert (block(0) in files, files.kept_bytes) == (False, 200)


def test_a_folder_that_cannot_be_made_is_a_fault(storage):
    storage.fail("make", "", times=ALL, code=errno.EROFS)
    with pytest.raises(StorageFault):
        BlockFiles(storage, "/data", lambda: 300)


class Slice:
    """Bytes that stay in a file, if it can be kept open."""

    def __init__(self, kept):
        self._kept = kept

    def keep(self):
        if isinstance(self._kept, StorageFault):
            raise self._kept
        return self._kept


@pytest.mark.parametrize(("kept", "is_found"), [(True, True), (False, False), (StorageFault("gone"), False)])
def test_bytes_are_left_in_a_file_that_stays_open(files, monkeypatch, kept, is_found):
    keep(files, block(0), b"0123")
    one = Slice(kept)
    monkeypatch.setattr("horolog.broker.log.storage.memory_storage.MemoryFile.unread", lambda *_: one)
    assert files.unread(block(0), 2, 1) is (one if is_found else None)
    assert files.unread(block(1), 2, 1) is None


def test_a_file_without_such_bytes_is_read(files):
    keep(files, block(0), b"0123")
    assert files.unread(block(0), 2, 1) is None
