"""Files that are only looked at: read and counted as they were when first asked for, and never changed, even over an overlay."""

import errno
import gc
import os

import pytest

from horolog.broker.log.storage import FileMissing, OverlayStorage, ReadOnlyStorage, StorageFault


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "log").write_bytes(bytes(range(100)))
    (tmp_path / "log").chmod(0o444)
    yield tmp_path
    assert (tmp_path / "log").read_bytes() == bytes(range(100))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log"]


def test_whatever_would_change_something_is_refused(folder):
    storage, path = ReadOnlyStorage(), f"{folder}/log"
    file = storage.open(path)
    for change in (
        lambda: file.pwritev([b"x"], 0),
        lambda: file.truncate(0),
        lambda: file.allocate(200),
        lambda: storage.create(f"{folder}/new"),
        lambda: storage.open_apart(f"{folder}/new", create=True),
        lambda: storage.rename(path, f"{folder}/new"),
        lambda: storage.remove(path),
        lambda: storage.remove_dir(str(folder)),
        lambda: storage.make_dir(f"{folder}/new"),
        lambda: storage.write_atomically(path, b""),
        lambda: storage.set_mtime_ms(path, 0),
        lambda: storage.check_writable(path),
        lambda: storage.lock(path),
        lambda: storage.lock_in_turn(path),
    ):
        with pytest.raises(StorageFault, match="only read"):
            change()
    assert not file.reserve(100, 100)
    file.datasync()
    file.check_in_place()
    storage.sync_dir(str(folder))


def test_what_was_read_is_counted_by_file(folder):
    storage, path = ReadOnlyStorage(), f"{folder}/log"
    assert storage.open(path).pread(30, 5) == bytes(range(5, 35))
    assert len(storage.read_all(path)) == 100
    assert storage.bytes_read == {path: 130}
    with pytest.raises(StorageFault, match="ends 2 bytes before 102"):
        storage.open(path).pread(4, 98)
    with pytest.raises(FileMissing):
        storage.open(f"{folder}/none").pread(1, 0)


def test_a_file_that_grows_is_the_size_that_it_was(tmp_path):
    path = tmp_path / "log"
    path.write_bytes(b"1234")
    storage = OverlayStorage(ReadOnlyStorage())
    log = storage.open(str(path))
    assert log.size() == 4
    path.write_bytes(b"12345678")
    assert (log.size(), storage.stat(str(path))[0]) == (4, 4)


def test_a_descriptor_is_given_back_when_nobody_has_the_file_any_more(folder):
    file = ReadOnlyStorage().open(f"{folder}/log")
    file.pread(1, 0)
    descriptor = file._descriptor
    os.fstat(descriptor)
    del file
    gc.collect()
    with pytest.raises(OSError, match="descriptor"):
        os.fstat(descriptor)


def test_a_log_is_cut_and_patched_in_memory_without_a_copy_of_it(folder):
    files = ReadOnlyStorage()
    storage, path = OverlayStorage(files), f"{folder}/log"
    log = storage.open(path)
    log.pwritev([bytes([10, 99, 12])], 10)
    log.truncate(50)
    assert (log.size(), storage.stat(path)[0]) == (50, 50)
    assert log.pread(4, 9) == bytes([9, 10, 99, 12])
    assert storage.changed[path].patches == [(10, bytearray([10, 99, 12]))]
    assert files.bytes_read[path] < 20


def test_what_the_disk_is_asked_without_opening_is_answered(folder):
    storage, path = ReadOnlyStorage(), f"{folder}/log"
    assert storage.list_dir(str(folder)) == ["log"]
    assert (storage.exists(path), storage.is_dir(path), storage.stat(path)[0]) == (True, False, 100)
    assert storage.open_apart(path).pread(1, 99) == b"c"


def test_room_that_was_taken_and_never_written_to_is_told_from_data(tmp_path):
    """Room is taken in whole blocks; where the system tells no holes, all of it may be data."""
    path = tmp_path / "log"
    with path.open("wb") as file:
        file.write(b"x" * 10_000)
        file.truncate(1 << 20)
    end = ReadOnlyStorage().end_of_data(str(path))
    assert 10_000 <= end <= 1 << 20
    assert not any(path.read_bytes()[end:])


@pytest.mark.parametrize("size_bytes", [0, 5])
def test_a_file_without_such_room_ends_where_it_ends(tmp_path, size_bytes):
    path = tmp_path / "log"
    path.write_bytes(b"x" * size_bytes)
    assert ReadOnlyStorage().end_of_data(str(path)) == size_bytes


def test_a_file_of_room_alone_has_no_data(tmp_path, monkeypatch):
    path = tmp_path / "log"
    path.write_bytes(bytes(10))

    def no_data(*_arguments):
        raise OSError(errno.ENXIO, "no more data")

    monkeypatch.setattr(os, "lseek", no_data)
    assert ReadOnlyStorage().end_of_data(str(path)) == 0


def test_a_system_that_tells_no_holes_is_believed_to_have_data_everywhere(tmp_path, monkeypatch):
    path = tmp_path / "log"
    path.write_bytes(bytes(10))

    def not_told(*_arguments):
        raise OSError(errno.EINVAL, "not told")

    monkeypatch.setattr(os, "lseek", not_told)
    assert ReadOnlyStorage().end_of_data(str(path)) == 10


def test_a_file_that_is_not_there_has_no_end(tmp_path):
    with pytest.raises(FileMissing):
        ReadOnlyStorage().end_of_data(f"{tmp_path}/none")


def test_a_file_may_be_closed_and_read_again(folder):
    file = ReadOnlyStorage().open(f"{folder}/log")
    assert file.pread(1, 7) == b"\x07"
    file.close()
    file.close()
    assert file.pread(1, 8) == b"\x08"
