"""The real file system and the one in memory keep the same promises."""

import errno
import os

import pytest

from horolog.broker.log.storage import (
    FileMissing,
    FolderInUse,
    MemoryStorage,
    RealStorage,
    StorageFault,
    fault,
    parent_of,
)
from horolog.broker.log.storage import storage as storage_module


@pytest.fixture(params=["real", "memory"])
def place(request, tmp_path):
    """A storage and a folder in it."""
    if request.param == "real":
        return RealStorage(), str(tmp_path)
    storage = MemoryStorage()
    storage.make_dir("/folder")
    return storage, "/folder"


def test_what_is_written_is_read(place):
    storage, folder = place
    file = storage.create(f"{folder}/a")
    file.pwritev([b"hello ", memoryview(b"wor"), bytearray(b"ld")], 0)
    file.pwritev([b"W"], 6)
    assert file.pread(11, 0) == b"hello World"
    assert file.pread(3, 2) == b"llo"
    assert file.size() == 11
    assert storage.read_all(f"{folder}/a") == b"hello World"
    assert storage.open(f"{folder}/a").pread(5, 6) == b"World"
    assert storage.stat(f"{folder}/a")[0] == 11


def test_a_write_of_more_buffers_than_one_call_takes(place):
    storage, folder = place
    file = storage.create(f"{folder}/a")
    buffers = [bytes([n % 251]) * (n % 97 + 20) for n in range(2500)]
    file.pwritev(buffers, 7)
    assert storage.read_all(f"{folder}/a") == bytes(7) + b"".join(buffers)


def test_reading_beyond_the_end_is_a_fault(place):
    storage, folder = place
    file = storage.create(f"{folder}/a")
    file.pwritev([b"12345"], 0)
    with pytest.raises(StorageFault, match="ends 2 bytes before 7"):
        file.pread(4, 3)


def test_truncating_cuts_and_grows_with_zeros(place):
    storage, folder = place
    file = storage.create(f"{folder}/a")
    file.pwritev([b"12345"], 0)
    file.truncate(3)
    file.truncate(6)
    assert storage.read_all(f"{folder}/a") == b"123\0\0\0"
    file.allocate(10)
    assert file.size() == 10
    file.allocate(4)
    assert storage.read_all(f"{folder}/a") == b"123" + bytes(7)
    file.close()
    file.reserve(10, 100)
    assert storage.read_all(f"{folder}/a") == b"123" + bytes(7)


def test_creating_empties_what_was_there(place):
    storage, folder = place
    storage.create(f"{folder}/a").pwritev([b"old"], 0)
    assert storage.create(f"{folder}/a").size() == 0


def test_what_is_missing_says_so(place):
    storage, folder = place
    missing = f"{folder}/missing"
    for use in (
        lambda: storage.open(missing).pread(1, 0),
        lambda: storage.read_all(missing),
        lambda: storage.stat(missing),
        lambda: storage.rename(missing, f"{folder}/b"),
        lambda: storage.remove(missing),
        lambda: storage.list_dir(missing),
    ):
        with pytest.raises(FileMissing) as caught:
            use()
        assert caught.value.code == errno.ENOENT
        assert missing in str(caught.value)
    assert not storage.exists(missing)
    assert not storage.is_dir(missing)


def test_names_come_and_go(place):
    storage, folder = place
    storage.make_dir(f"{folder}/sub")
    storage.create(f"{folder}/sub/a")
    storage.rename(f"{folder}/sub/a", f"{folder}/sub/b")
    assert storage.list_dir(f"{folder}/sub") == ["b"]
    assert storage.is_dir(f"{folder}/sub")
    assert storage.exists(f"{folder}/sub/b")
    with pytest.raises(StorageFault):
        storage.remove_dir(f"{folder}/sub")
    with pytest.raises(StorageFault):
        storage.make_dir(f"{folder}/sub")
    storage.remove(f"{folder}/sub/b")
    storage.remove_dir(f"{folder}/sub")
    assert storage.list_dir(folder) == []


def test_a_file_is_replaced_as_a_whole(place):
    storage, folder = place
    storage.write_atomically(f"{folder}/a", b"one")
    storage.write_atomically(f"{folder}/a", b"two")
    assert storage.read_all(f"{folder}/a") == b"two"
    assert storage.list_dir(folder) == ["a"]


def test_times_of_files_are_set_and_told(place):
    storage, folder = place
    storage.create(f"{folder}/a")
    storage.set_mtime_ms(f"{folder}/a", 1_600_000_000_123)
    assert storage.stat(f"{folder}/a")[1] // 1_000_000 == 1_600_000_000_123


def test_a_file_is_held_in_turn(place, monkeypatch):
    monkeypatch.setattr(storage_module, "TURN_LOOKS", 3)
    storage, folder = place
    with pytest.raises(FileMissing):
        storage.lock_in_turn(f"{folder}/journal")
    storage.write_atomically(f"{folder}/journal", b"")
    lock = storage.lock_in_turn(f"{folder}/journal")
    with pytest.raises(FolderInUse):
        storage.lock_in_turn(f"{folder}/journal")
    lock.release()
    storage.lock_in_turn(f"{folder}/journal").release()


def test_who_waits_for_a_file_waits_for_the_one_that_takes_its_place(monkeypatch, tmp_path):
    """Else two would hold it: one the old file, the other the new."""
    storage, path = RealStorage(), f"{tmp_path}/journal"
    storage.write_atomically(path, b"old")
    old, new = storage.lock_in_turn(path), []

    def goes_on(_):
        if not new:
            storage.write_atomically(path, b"new")
            new.append(storage.lock_in_turn(path))
            old.release()
        elif len(new) == 1:
            new.append(None)
            new[0].release()

    monkeypatch.setattr(storage_module.time, "sleep", goes_on)
    storage.lock_in_turn(path).release()
    assert len(new) == 2


def test_who_gets_the_lock_of_a_file_that_lost_its_name_goes_on_to_the_one_that_has_it(monkeypatch, tmp_path):
    monkeypatch.setattr(storage_module, "TURN_LOOKS", 3)
    storage, path, real = RealStorage(), f"{tmp_path}/journal", storage_module.fcntl.flock
    storage.write_atomically(path, b"old")
    replaced = []

    def replaced_meanwhile(descriptor, operation):
        if not replaced:
            replaced.append(descriptor)
            storage.write_atomically(path, b"new")
        real(descriptor, operation)

    monkeypatch.setattr(storage_module.fcntl, "flock", replaced_meanwhile)
    lock = storage.lock_in_turn(path)
    assert os.path.samestat(os.fstat(lock.fileno()), os.stat(path))  # noqa: PTH116
    with pytest.raises(FolderInUse):
        storage.lock_in_turn(path)
    lock.release()


def test_a_file_that_the_system_does_not_lock_is_a_fault(monkeypatch, tmp_path):
    def fails(*_):
        raise OSError(errno.ENOLCK, "no locks")

    RealStorage().write_atomically(f"{tmp_path}/journal", b"")
    monkeypatch.setattr(storage_module.fcntl, "flock", fails)
    with pytest.raises(StorageFault, match="lock"):
        RealStorage().lock_in_turn(f"{tmp_path}/journal")


def test_a_folder_is_locked_once(place):
    storage, folder = place
    lock = storage.lock(f"{folder}/.lock")
    with pytest.raises(FolderInUse, match="another broker"):
        storage.lock(f"{folder}/.lock")
    lock.release()
    storage.lock(f"{folder}/.lock").release()


def test_there_is_room_on_the_disk(place):
    storage, folder = place
    total, usable = storage.disk_space(folder)
    assert 0 < usable <= total


def test_descriptors_are_bounded_and_files_stay_usable(tmp_path):
    storage = RealStorage(max_open_files=4)
    files = [storage.create(f"{tmp_path}/{n}") for n in range(20)]
    assert storage.open_files == 4
    for n, file in enumerate(files):
        file.pwritev([b"%d" % n], 0)
    assert storage.open_files == 4
    assert [file.pread(1, 0) for file in files] == [b"%d" % (n // 10 if n > 9 else n) for n in range(20)]
    for file in files:
        file.close()
    assert storage.open_files == 0


def test_a_file_that_is_used_keeps_its_descriptor(tmp_path):
    storage = RealStorage(max_open_files=3)
    busy = storage.create(f"{tmp_path}/busy")
    for n in range(10):
        busy.pwritev([b"x"], n)
        storage.create(f"{tmp_path}/{n}")
        assert busy.descriptor() >= 0
    idle = storage.open(f"{tmp_path}/3")
    assert idle.descriptor() == -1


def test_a_file_is_synced_whether_it_is_open_or_not(tmp_path):
    storage = RealStorage(max_open_files=1)
    first = storage.create(f"{tmp_path}/a")
    second = storage.create(f"{tmp_path}/b")
    assert first.descriptor() == -1
    first.datasync()
    second.datasync()
    assert first.descriptor() == -1
    storage.sync_dir(str(tmp_path))


def is_open(descriptor):
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


@pytest.mark.parametrize("takes_it_away", ["closing the file", "opening another"])
def test_a_descriptor_stays_open_while_workers_sync_it(tmp_path, takes_it_away):
    """Else the next file to be opened gets its number, and is synced in its stead."""
    storage = RealStorage(max_open_files=1)
    file = storage.create(f"{tmp_path}/a")
    first, second = storage.hold(file), storage.hold(file)
    assert first == second == file.descriptor()
    if takes_it_away == "closing the file":
        file.close()
    other = storage.create(f"{tmp_path}/b")
    assert file.descriptor() == -1
    assert other.descriptor() != first
    storage.let_go(first)
    assert is_open(first)
    storage.let_go(second)
    assert not is_open(first)
    other.close()


def test_a_file_keeps_its_descriptor_when_its_sync_ends(tmp_path):
    storage = RealStorage()
    file = storage.create(f"{tmp_path}/a")
    for _ in range(2):
        file.datasync()
        assert is_open(file.descriptor())
    descriptor = file.descriptor()
    file.close()
    assert not is_open(descriptor)


def test_a_sync_that_fails_lets_the_descriptor_go(tmp_path, monkeypatch):
    storage = RealStorage()
    file = storage.create(f"{tmp_path}/a")
    descriptor = file.descriptor()

    def fails(_):
        file.close()
        raise OSError(errno.EIO, "the disk is gone")

    monkeypatch.setattr(os, "fdatasync", fails)
    with pytest.raises(StorageFault):
        file.datasync()
    assert not is_open(descriptor)


def test_faults_of_the_system_are_storage_faults(tmp_path):
    if os.geteuid() == 0:
        with pytest.raises(StorageFault):
            RealStorage().create(f"{tmp_path}/no/such/folder")
        return
    tmp_path.chmod(0o500)
    with pytest.raises(StorageFault) as caught:
        RealStorage().create(f"{tmp_path}/a")
    assert caught.value.code == errno.EACCES


def test_a_fault_tells_what_happened_to_which_file():
    made = fault("write", "/d/a", OSError(errno.ENOSPC, "full"))
    assert (made.code, made.path) == (errno.ENOSPC, "/d/a")
    assert str(made) == f"write /d/a: {os.strerror(errno.ENOSPC)}"


@pytest.mark.parametrize(("path", "parent"), [("/a/b", "/a"), ("/a", "/"), ("a/b", "a"), ("a", ".")])
def test_where_a_path_lies(path, parent):
    assert parent_of(path) == parent


def test_idle_files_give_way_when_there_are_no_descriptors_left(tmp_path, monkeypatch):
    storage = RealStorage()
    files = [storage.create(f"{tmp_path}/{n}") for n in range(20)]
    for file in files:
        file.pwritev([b"x"], 0)
    full = []
    real_open = os.open

    def open_if_there_is_room(*arguments, **more):
        if storage.open_files >= len(files) - 1:
            full.append(1)
            raise OSError(errno.EMFILE, "too many open files")
        return real_open(*arguments, **more)

    monkeypatch.setattr(os, "open", open_if_there_is_room)
    late = storage.create(f"{tmp_path}/late")
    assert full
    late.pwritev([b"y"], 0)
    assert [file.pread(1, 0) for file in files] == [b"x"] * 20, "those that gave way are opened again"


def test_a_file_that_was_opened_apart_is_closed_by_nobody_else(tmp_path):
    storage = RealStorage(2)
    storage.create(f"{tmp_path}/a").pwritev([b"abc"], 0)
    apart = storage.open_apart(f"{tmp_path}/a")
    for n in range(10):
        storage.create(f"{tmp_path}/{n}").pwritev([b"x"], 0)
    (tmp_path / "a").rename(tmp_path / "b")
    assert apart.pread(3, 0) == b"abc", "it has not been opened anew"
    apart.pwritev([b"d"], 3)
    apart.datasync()
    apart.close()
    with pytest.raises(FileMissing):
        storage.open_apart(f"{tmp_path}/a")
    assert storage.read_all(f"{tmp_path}/b") == b"abcd"


def test_a_file_that_was_created_apart_is_closed_by_nobody_else(tmp_path):
    storage = RealStorage(2)
    (tmp_path / "a").write_bytes(b"before")
    apart = storage.open_apart(f"{tmp_path}/a", create=True)
    for n in range(10):
        storage.create(f"{tmp_path}/{n}").pwritev([b"x"], 0)
    (tmp_path / "a").rename(tmp_path / "b")
    apart.pwritev([b"abc"], 0)
    apart.close()
    assert storage.read_all(f"{tmp_path}/b") == b"abc"
    with pytest.raises(FileMissing):
        storage.open_apart(f"{tmp_path}/missing/a", create=True)


class TestFaultsOfTheSystem:
    """Each call tells what was done to which file, whatever the system says."""

    @pytest.fixture
    def broken(self, monkeypatch):
        def breaks(name, code=errno.EIO):
            def broken(*_arguments, **_fields):
                raise OSError(code, os.strerror(code))

            monkeypatch.setattr(os, name, broken)

        return breaks

    @pytest.mark.parametrize(
        ("call", "use", "operation"),
        [
            ("stat", lambda storage, file: storage.stat(file.path), "stat"),
            ("statvfs", lambda storage, file: storage.disk_space(file.path), "stat"),
            ("utime", lambda storage, file: storage.set_mtime_ms(file.path, 5), "touch"),
            ("rename", lambda storage, file: storage.rename(file.path, file.path + "x"), "rename"),
            ("unlink", lambda storage, file: storage.remove(file.path), "remove"),
            ("rmdir", lambda storage, file: storage.remove_dir(file.path), "remove"),
            ("mkdir", lambda storage, file: storage.make_dir(file.path), "make"),
            ("fsync", lambda storage, file: storage.write_atomically(file.path, b""), "write"),
            ("listdir", lambda storage, file: storage.list_dir(file.path), "list"),
            ("open", lambda storage, file: storage.create(file.path), "create"),
            ("open", lambda storage, file: storage.open_apart(file.path, create=True), "create"),
            ("open", lambda storage, file: storage.open_apart(file.path), "open"),
            ("open", lambda storage, file: storage.sync_dir(file.path), "sync"),
            ("open", lambda storage, file: storage.lock(file.path), "lock"),
        ],
    )
    def test_they_are_storage_faults(self, tmp_path, broken, call, use, operation):
        storage = RealStorage()
        file = storage.create(f"{tmp_path}/a")
        file.pwritev([b"abc"], 0)
        broken(call)
        with pytest.raises(StorageFault, match=f"{operation} {tmp_path}/a.*Input/output error") as caught:
            use(storage, file)
        assert (caught.value.code, caught.value.path) == (errno.EIO, f"{tmp_path}/a")

    def test_whoever_may_not_write_is_told_why(self, tmp_path, broken, monkeypatch):
        storage, path = RealStorage(), str(tmp_path)
        storage.check_writable(path)
        monkeypatch.setattr(os, "access", lambda *_arguments, **_fields: False)
        with pytest.raises(StorageFault) as caught:
            storage.check_writable(path)
        assert caught.value.code in {errno.EACCES, errno.EROFS}
        broken("statvfs")
        with pytest.raises(StorageFault) as caught:
            storage.check_writable(path)
        assert caught.value.code == errno.EIO


def test_a_storage_that_only_reads_shares_its_lock(tmp_path):
    path = tmp_path / ".lock"
    path.write_bytes(b"")
    readers = [RealStorage(read_only=True) for _ in range(2)]
    locks = [one.lock(str(path)) for one in readers]
    with pytest.raises(FolderInUse):
        RealStorage().lock(str(path))
    for lock in locks:
        lock.release()
        lock.release()
    RealStorage().lock(str(path)).release()
    assert readers[0].open(str(path)).size() == 0


def test_a_storage_shows_how_many_files_are_open(tmp_path):
    storage = RealStorage(max_open_files=16)
    file = storage.create(f"{tmp_path}/a")
    assert (repr(storage), repr(file)) == ("<RealStorage 1 of 16 files open>", f"<RealFile {tmp_path}/a open>")
    file.close()
    assert (storage.open_files, repr(file)) == (0, f"<RealFile {tmp_path}/a closed>")


def test_a_file_system_lock_that_fails_is_a_fault_and_not_somebody_elses(tmp_path, monkeypatch):
    def broken(*_arguments):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(storage_module.fcntl, "flock", broken)
    with pytest.raises(StorageFault) as caught:
        RealStorage().lock(f"{tmp_path}/.lock")
    assert not isinstance(caught.value, FolderInUse)


class TestKept:
    """Descriptors that slices keep while they wait: a share of all, each closed once the last has let it go."""

    @pytest.fixture
    def files(self, tmp_path):
        storage = RealStorage(max_open_files=8)
        files = [storage.create(f"{tmp_path}/{n}") for n in range(3)]
        for n, file in enumerate(files):
            file.pwritev([b"%d" % n], 0)
        yield files
        for file in files:
            file.close()

    def test_so_many_are_kept_and_the_others_are_read_by_their_names(self, files):
        kept = [file.keep() for file in files]
        assert kept == [files[0].descriptor(), files[1].descriptor(), -1]
        assert files[0].keep() == kept[0], "one that is kept already takes no more room"
        assert [file.read_kept(one, 1, 0) for file, one in zip(files, kept, strict=True)] == [b"0", b"1", b"2"]
        for one in (kept[0], kept[0], kept[1]):
            files[0].let_go(one)
        assert files[2].keep() == files[2].descriptor(), "there is room again"
        files[2].let_go(files[2].descriptor())
        assert all(is_open(file.descriptor()) for file in files), "the files go on using them"

    def test_a_file_that_is_closed_leaves_its_descriptor_to_who_keeps_it(self, files):
        file = files[0]
        kept = file.keep()
        file.close()
        os.unlink(file.path)  # noqa: PTH108
        assert file.read_kept(kept, 1, 0) == b"0"
        file.let_go(kept)
        assert not is_open(kept)
        with pytest.raises(FileMissing):
            file.keep()

    def test_a_file_that_is_closed_is_opened_to_be_kept(self, files):
        files[0].close()
        kept = files[0].keep()
        assert files[0].read_kept(kept, 1, 0) == b"0"
        files[0].let_go(kept)

    def test_a_fault_of_the_disk_is_one_there(self, files, monkeypatch):
        def fails(*_):
            raise OSError(errno.EIO, "the disk is gone")

        kept = files[0].keep()
        monkeypatch.setattr(os, "pread", fails)
        with pytest.raises(StorageFault, match="read"):
            files[0].read_kept(kept, 1, 0)
        files[0].let_go(kept)


def test_a_file_whose_mode_cannot_be_set_is_not_left_open(tmp_path, monkeypatch):
    opened = []

    def fails(descriptor, _):
        opened.append(descriptor)
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(storage_module.modes, "narrow", fails)
    with pytest.raises(StorageFault, match=f"create {tmp_path}/a"):
        RealStorage().create(f"{tmp_path}/a")
    assert not is_open(*opened)
