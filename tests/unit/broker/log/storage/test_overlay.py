"""An overlay reads like a disk on which everything was done, and does nothing to the disk."""

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.broker.log.storage import (
    FileMissing,
    FolderInUse,
    MemoryStorage,
    OverlayStorage,
    ReadOnlyStorage,
    RealStorage,
    StorageFault,
)

NAMES = st.sampled_from(["a.log", "b.index", "c"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), NAMES, st.binary(min_size=1, max_size=20), st.integers(0, 40)),
        st.tuples(st.just("truncate"), NAMES, st.integers(0, 60)),
        st.tuples(st.just("create"), NAMES),
        st.tuples(st.just("remove"), NAMES),
        st.tuples(st.just("rename"), NAMES, NAMES),
        st.tuples(st.just("replace"), NAMES, st.binary(max_size=20)),
    ),
    max_size=12,
)


def apply(storage, folder, step):
    kind, name, *rest = step
    path = f"{folder}/{name}"
    if kind == "write":
        storage.open(path).pwritev([rest[0]], rest[1])
    elif kind == "truncate":
        storage.open(path).truncate(rest[0])
    elif kind == "create":
        storage.create(path)
    elif kind == "remove":
        storage.remove(path)
    elif kind == "rename":
        storage.rename(path, f"{folder}/{rest[0]}")
    else:
        storage.write_atomically(path, rest[0])


def contents(storage, folder):
    return {name: bytes(storage.read_all(f"{folder}/{name}")) for name in sorted(storage.list_dir(folder))}


def fill(folder):
    folder.mkdir()
    (folder / "a.log").write_bytes(bytes(range(50)))
    (folder / "b.index").write_bytes(b"index")
    return str(folder)


@given(STEPS)
def test_an_overlay_reads_as_the_disk_would(tmp_path_factory, steps):
    root = tmp_path_factory.mktemp("overlay")
    shown, real = fill(root / "shown"), fill(root / "real")
    overlay, disk = OverlayStorage(ReadOnlyStorage()), RealStorage()
    untouched = contents(disk, shown)
    for step in steps:
        if step[1] not in disk.list_dir(real) and step[0] not in {"create", "replace"}:
            continue
        apply(overlay, shown, step)
        apply(disk, real, step)
    assert contents(overlay, shown) == contents(disk, real)
    assert contents(disk, shown) == untouched
    changed = {path.rpartition("/")[2] for path, _ in overlay.differences()}
    assert {name for name, data in contents(disk, real).items() if untouched.get(name) != data} <= changed


def test_what_was_removed_is_missing(tmp_path):
    folder = fill(tmp_path / "x")
    overlay = OverlayStorage(ReadOnlyStorage())
    overlay.remove(f"{folder}/a.log")
    assert not overlay.exists(f"{folder}/a.log")
    with pytest.raises(FileMissing):
        overlay.open(f"{folder}/a.log").pread(1, 0)
    with pytest.raises(FileMissing):
        overlay.stat(f"{folder}/a.log")


def test_what_is_set_aside_takes_no_memory(tmp_path):
    folder = fill(tmp_path / "x")
    overlay = OverlayStorage(ReadOnlyStorage())
    path = f"{folder}/{0:020}.log.7.3-4.0000beef.damaged"
    file = overlay.create(path + ".tmp")
    file.pwritev([bytes(1_000_000)], 0)
    overlay.rename(path + ".tmp", path)
    assert overlay.stat(path)[0] == 1_000_000
    assert overlay.changed[path].patches == []


@pytest.mark.parametrize(
    "change",
    [
        lambda storage, path: storage.create(path),
        lambda storage, path: storage.remove(path),
        lambda storage, path: storage.rename(path, path + "x"),
        lambda storage, path: storage.write_atomically(path, b""),
        lambda storage, path: storage.make_dir(path + "dir"),
        lambda storage, path: storage.lock(path),
        lambda storage, path: storage.open(path).pwritev([b"x"], 0),
        lambda storage, path: storage.open(path).truncate(0),
    ],
)
def test_the_storage_of_tools_that_look_changes_nothing(tmp_path, change):
    folder = fill(tmp_path / "x")
    with pytest.raises(StorageFault, match="only read"):
        change(ReadOnlyStorage(), f"{folder}/a.log")
    assert (tmp_path / "x" / "a.log").read_bytes() == bytes(range(50))


def test_it_counts_what_is_read(tmp_path):
    folder = fill(tmp_path / "x")
    storage = ReadOnlyStorage()
    file = storage.open(f"{folder}/a.log")
    assert file.pread(5, 3) == bytes(range(3, 8))
    storage.read_all(f"{folder}/b.index")
    file.close()
    assert storage.bytes_read == {f"{folder}/a.log": 5, f"{folder}/b.index": 5}
    with pytest.raises(StorageFault, match="ends 3 bytes before 53"):
        storage.open(f"{folder}/a.log").pread(5, 48)


@pytest.fixture
def below():
    """A disk in memory with a folder and a file in it."""
    storage = MemoryStorage(lambda: 7_000_000)
    storage.make_dir("/d")
    storage.write_atomically("/d/a", b"below")
    return storage


class TestNames:
    def test_folders_are_made_in_memory_and_go_again(self, below):
        overlay = OverlayStorage(below)
        overlay.make_dir("/d/new")
        overlay.create("/d/new/file")
        assert (overlay.is_dir("/d/new"), overlay.exists("/d/new")) == (True, True)
        assert (overlay.list_dir("/d"), overlay.list_dir("/d/new")) == (["a", "new"], ["file"])
        with pytest.raises(StorageFault, match="it is there"):
            overlay.make_dir("/d/new")
        overlay.remove_dir("/d/new")
        assert not overlay.is_dir("/d/new")
        assert below.list_dir("/d") == ["a"]

    def test_folders_below_stay_where_they_are(self, below):
        overlay = OverlayStorage(below)
        for change in (lambda: overlay.remove_dir("/d"), lambda: overlay.rename("/d", "/e")):
            with pytest.raises(StorageFault):
                change()

    def test_what_was_removed_cannot_be_changed(self, below):
        overlay = OverlayStorage(below)
        file = overlay.open("/d/a")
        overlay.remove("/d/a")
        with pytest.raises(FileMissing):
            overlay.changing("/d/a")
        with pytest.raises(FileMissing):
            file.check_in_place()
        assert list(overlay.differences()) == [("/d/a", None)]

    def test_a_file_that_came_and_went_is_no_difference(self, below):
        overlay = OverlayStorage(below)
        overlay.create("/d/b")
        overlay.remove("/d/b")
        assert list(overlay.differences()) == []


class TestFiles:
    def test_reading_beyond_the_end_is_a_fault(self, below):
        overlay = OverlayStorage(below)
        overlay.write_atomically("/d/a", b"new")
        with pytest.raises(FileMissing, match="does not reach so far"):
            overlay.open("/d/a").pread(4, 0)

    def test_what_is_written_again_as_it_is_takes_no_memory(self, below):
        overlay = OverlayStorage(below)
        overlay.open("/d/a").pwritev([b"be", b"low"], 0)
        overlay.open("/d/a").truncate(5)
        assert overlay.changed == {}
        assert "0 files changed" in repr(overlay)

    def test_room_taken_in_advance_reads_as_zeros(self, below):
        file = OverlayStorage(below).open_apart("/d/a")
        file.allocate(8)
        file.allocate(3)
        assert not file.reserve(8, 100)
        assert (file.size(), file.pread(8, 0)) == (8, b"below\0\0\0")
        file.datasync()
        file.check_in_place()
        file.close()
        file.close()

    def test_a_file_that_is_created_apart_is_in_memory_alone(self, below):
        overlay = OverlayStorage(below)
        overlay.open_apart("/d/a", create=True).pwritev([b"new"], 0)
        assert (overlay.read_all("/d/a"), below.read_all("/d/a")) == (b"new", b"below")

    def test_a_file_that_was_opened_before_a_rename_reads_what_has_its_name(self, below):
        overlay = OverlayStorage(below)
        file = overlay.open("/d/b")
        overlay.rename("/d/a", "/d/b")
        file.pwritev([b"B"], 0)
        assert file.pread(5, 0) == b"Below"
        assert below.read_all("/d/a") == b"below"

    def test_times_are_set_in_memory(self, below):
        overlay = OverlayStorage(below)
        overlay.set_mtime_ms("/d/a", 5)
        assert (overlay.stat("/d/a"), below.stat("/d/a")) == ((5, 5_000_000), (5, 7_000_000))

    def test_another_overlay_over_the_same_changes_sees_them(self, below):
        overlay = OverlayStorage(below)
        other = overlay.over(below)
        overlay.write_atomically("/d/a", b"new")
        other.make_dir("/d/x")
        assert other.read_all("/d/a") == b"new"
        assert overlay.is_dir("/d/x")


class TestWhereRoomMayBeFreed:
    def test_removals_and_renames_are_made_below(self, below):
        below.write_atomically("/d/b", b"b")
        overlay = OverlayStorage(below, frees=True)
        overlay.rename("/d/a", "/d/a.deleted")
        overlay.remove("/d/b")
        assert below.list_dir("/d") == ["a.deleted"]
        assert overlay.changed == {}

    def test_what_has_changed_in_memory_goes_in_memory(self, below):
        overlay = OverlayStorage(below, frees=True)
        overlay.open("/d/a").truncate(1)
        overlay.remove("/d/a")
        assert (overlay.exists("/d/a"), below.list_dir("/d")) == (False, ["a"])

    def test_where_that_is_forbidden_it_is_done_in_memory(self, below):
        overlay = OverlayStorage(below, frees=True)
        below.unwritable["/d/"] = errno.EACCES
        overlay.rename("/d/a", "/d/b")
        overlay.remove("/d/b")
        assert (overlay.list_dir("/d"), below.list_dir("/d")) == ([], ["a"])

    def test_other_faults_of_the_disk_are_told(self, below):
        overlay = OverlayStorage(below, frees=True)
        below.fail("remove")
        with pytest.raises(StorageFault):
            overlay.remove("/d/a")
        with pytest.raises(FileMissing):
            overlay.remove("/d/none")


class TestTheDiskBelow:
    def test_its_lock_is_held_and_kept(self, below):
        overlay = OverlayStorage(below)
        lock = overlay.lock("/d/.lock")
        with pytest.raises(FolderInUse):
            overlay.lock("/d/.lock")
        lock.release()

    def test_nobody_else_has_what_is_kept_in_memory(self, below):
        overlay = OverlayStorage(below)
        first, second = overlay.lock_in_turn("/d/a"), overlay.lock_in_turn("/d/a")
        first.release()
        second.release()

    def test_where_nothing_can_be_locked_nobody_is_kept_out(self, below, caplog):
        below.unwritable["/d/"] = errno.EROFS
        overlay = OverlayStorage(below)
        overlay.lock("/d/.lock").release()
        assert "read without a lock" in caplog.text

    def test_memory_takes_everything_and_nothing_survives(self, below):
        overlay = OverlayStorage(below)
        overlay.check_writable("/d/a")
        overlay.sync_dir("/d")
        assert overlay.disk_space("/d") == below.disk_space("/d")
