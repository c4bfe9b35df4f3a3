"""An overlay reads like a disk on which everything was done, and does nothing to the disk."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horolog.broker.log.storage import FileMissing, OverlayStorage, ReadOnlyStorage, RealStorage, StorageFault

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
