"""What is written over a folder that is only looked at can be read back, and nothing of it reaches the files."""

import pytest

from horolog.broker.log.storage import FileMissing, StorageFault
from horolog.pipeline.read_only import ReadOnlyStorage, difference, with_patches


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "log").write_bytes(bytes(range(100)))
    (tmp_path / "log").chmod(0o444)
    return tmp_path


@pytest.fixture
def storage(folder):
    found = ReadOnlyStorage()
    yield found
    assert (folder / "log").read_bytes() == bytes(range(100))
    assert sorted(path.name for path in folder.iterdir()) == ["log"]


def test_files_are_created_changed_renamed_and_removed_in_memory(storage, folder):
    made = storage.create(f"{folder}/new")
    made.pwritev([b"abc", b"def"], 2)
    assert made.pread(8, 0) == b"\0\0abcdef"
    storage.rename(f"{folder}/new", f"{folder}/other")
    storage.write_atomically(f"{folder}/third", b"3")
    assert storage.list_dir(str(folder)) == ["log", "other", "third"]
    assert storage.read_all(f"{folder}/third") == b"3"
    storage.remove(f"{folder}/log")
    assert not storage.exists(f"{folder}/log")
    assert storage.list_dir(str(folder)) == ["other", "third"]
    with pytest.raises(FileMissing):
        storage.read_all(f"{folder}/log")
    with pytest.raises(FileMissing):
        storage.stat(f"{folder}/log")


def test_a_log_is_cut_and_patched_without_a_copy_of_it(storage, folder):
    path = f"{folder}/log"
    log = storage.open(path)
    log.pwritev([bytes([10, 99, 12])], 10)
    log.truncate(50)
    assert (log.size(), storage.stat(path)[0]) == (50, 50)
    assert log.pread(4, 9) == bytes([9, 10, 99, 12])
    assert storage.read_all(path)[11] == 99
    assert len(storage.read_all(path)) == 50
    assert storage.patches == {path: [(11, b"\x63")]}
    assert not storage.changed
    with pytest.raises(StorageFault):
        log.pread(2, 49)


def test_a_file_that_grows_is_the_size_that_it_was(storage, tmp_path_factory):
    path = tmp_path_factory.mktemp("growing") / "log"
    path.write_bytes(b"1234")
    log = storage.open(str(path))
    assert log.size() == 4
    path.write_bytes(b"12345678")
    assert log.size() == 4
    with pytest.raises(StorageFault):
        log.pread(5, 0)


def test_what_was_read_is_counted(storage, folder):
    storage.open(f"{folder}/log").pread(30, 5)
    storage.read_all(f"{folder}/log")
    assert storage.bytes_read.bytes == 130


@pytest.mark.parametrize(("position", "size"), [(0, 10), (2, 3), (5, 1), (3, 2), (0, 4), (6, 4)])
def test_patches_show_in_every_window(position, size):
    old, new = b"0123456789", b"012ab5c789"
    patch = difference(old, new, 0)
    assert patch == (3, b"ab5c")
    assert with_patches(old[position : position + size], position, [patch]) == new[position : position + size]
    assert difference(old, old, 7) == (7, b"")
