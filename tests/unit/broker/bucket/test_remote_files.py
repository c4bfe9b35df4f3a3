"""The files of segments in the bucket: found by their names, renamed and forgotten here, and never changed."""

from types import SimpleNamespace

import pytest

from horolog.broker.bucket.remote_files import RemoteFiles
from horolog.broker.log.integrity import Contents
from horolog.broker.log.storage import FileMissing, NotHere, StorageFault

PARTS = SimpleNamespace(offset_index=b"12345678", time_index=b"t", transaction_index=b"")
LOG, OFFSETS = "/d/t-0/00000000000000000005.log", "/d/t-0/00000000000000000005.index"


class Remote:
    """A segment whose `.meta` may be missing."""

    def __init__(self):
        self.described = SimpleNamespace(base_offset=5, contents=Contents(99, 9, 1_000), created_ms=700)
        self.log = SimpleNamespace(size_bytes=99, path=LOG)
        self.is_here = True

    def parts(self):
        if not self.is_here:
            raise NotHere("on its way")
        return PARTS


@pytest.fixture
def remote():
    return Remote()


@pytest.fixture
def files(remote):
    files = RemoteFiles(lambda: 0)
    files.add("/d/t-0", remote)
    return files


def test_each_file_has_its_bytes(files, remote):
    assert files.open(LOG) is remote.log
    assert files.read_all(OFFSETS) == b"12345678"
    part = files.open_apart(OFFSETS)
    assert (part.pread(3, 2), part.size(), part.unread(1, 0)) == (b"345", 8, None)
    with pytest.raises(StorageFault, match="ends at 8"):
        part.pread(3, 6)
    assert "index" in repr(part)


def test_names_and_sizes_are_known(files):
    assert files.list_dir("/d/t-0") == [f"{5:020d}{kind}" for kind in (".index", ".log", ".timeindex", ".txnindex")]
    assert (files.is_dir("/d/t-0"), files.is_dir("/d"), files.exists(LOG), files.exists("/x")) == (
        True,
        False,
        True,
        False,
    )
    assert (files.stat(LOG), files.stat(OFFSETS)) == ((99, 1_000_000_000), (8, 1_000_000_000))
    assert repr(files) == "<RemoteFiles: 4 files>"


def test_only_what_needs_the_meta_object_waits_for_it(files, remote):
    remote.is_here = False
    assert files.stat(LOG)[0] == 99
    assert files.exists(OFFSETS)
    for ask in (lambda: files.stat(OFFSETS), lambda: files.read_all(OFFSETS)):
        with pytest.raises(NotHere):
            ask()


def test_names_change_and_go_here_alone(files):
    files.rename(LOG, f"{LOG}.deleted")
    assert (files.exists(LOG), files.exists(f"{LOG}.deleted")) == (False, True)
    files.remove(f"{LOG}.deleted")
    for ask in (lambda: files.open(LOG), lambda: files.remove(LOG), lambda: files.rename(LOG, "x")):
        with pytest.raises(FileMissing):
            ask()


def test_nothing_else_changes(files):
    files.sync_dir("/d")
    part = files.open(OFFSETS)
    part.withdraw()
    part.check_in_place()
    part.close()
    part.datasync()
    changes = [
        lambda: files.create("/d/x"),
        lambda: files.set_mtime_ms(LOG, 0),
        lambda: files.make_dir("/d"),
        lambda: files.remove_dir("/d"),
        lambda: files.write_atomically("/d/x", b""),
        lambda: files.disk_space("/d"),
        lambda: files.check_writable("/d"),
        lambda: files.lock("/d"),
        lambda: files.lock_in_turn("/d"),
        lambda: part.pwritev([b"x"], 0),
        lambda: part.truncate(0),
        lambda: part.allocate(1),
    ]
    for change in changes:
        with pytest.raises(StorageFault, match="only read"):
            change()
