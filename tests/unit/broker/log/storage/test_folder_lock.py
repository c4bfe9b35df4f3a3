"""A data folder is made and locked, or the owner reads why not."""

import errno

import pytest

from horolog.broker.log.storage import (
    LOCK_FILE,
    FolderInUse,
    MemoryStorage,
    RealStorage,
    StorageFault,
    lock_folder,
    make_folder,
)


class _Refusing(RealStorage):
    """A disk that says the same to whatever is asked of it."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self._code = code

    def make_dir(self, path: str) -> None:
        raise StorageFault("make_dir", path=path, code=self._code)

    def check_writable(self, path: str) -> None:
        raise StorageFault("check", path=path, code=self._code)


def test_a_folder_is_made_with_those_above_it(tmp_path):
    make_folder(RealStorage(), f"{tmp_path}/a/b/c")
    assert (tmp_path / "a" / "b" / "c").is_dir()
    make_folder(RealStorage(), f"{tmp_path}/a/b/c")


def test_what_was_made_is_there_after_a_power_cut():
    storage = MemoryStorage()
    make_folder(storage, "/data/a/b")
    storage.crash()
    assert storage.is_dir("/data/a/b")


def test_a_folder_that_cannot_be_made_says_so(tmp_path):
    with pytest.raises(StorageFault, match="the data folder cannot be created: make_dir") as told:
        make_folder(_Refusing(errno.ENOSPC), f"{tmp_path}/a")
    assert (told.value.path, told.value.code) == (f"{tmp_path}/a", errno.ENOSPC)


def test_a_locked_folder_is_refused_until_it_is_let_go(tmp_path):
    storage = RealStorage()
    first = lock_folder(storage, str(tmp_path), storage.lock)
    assert (tmp_path / LOCK_FILE).exists()
    with pytest.raises(FolderInUse, match="is in use by another broker: "):
        lock_folder(storage, str(tmp_path), storage.lock)
    first.release()
    lock_folder(storage, str(tmp_path), storage.lock).release()


def test_the_lock_is_whatever_its_taker_takes(tmp_path):
    assert lock_folder(RealStorage(), str(tmp_path), lambda path: path) == f"{tmp_path}/{LOCK_FILE}"


@pytest.mark.parametrize(("code", "is_advised"), [(errno.EROFS, True), (errno.EIO, False)])
def test_a_folder_that_may_only_be_read_comes_with_advice(tmp_path, code, is_advised):
    with pytest.raises(StorageFault, match=f"{tmp_path} cannot be used: check") as told:
        lock_folder(_Refusing(code), str(tmp_path), lambda path: path)
    assert ("horolog.read.only=true serves its partitions" in str(told.value)) is is_advised
