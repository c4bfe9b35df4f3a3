"""The supervisor takes the locks of data folders as a broker does, and whoever inherits them holds them."""

import subprocess
import sys
from pathlib import Path

import pytest

from horolog.base.clock import SystemClock
from horolog.broker.log.manager import DataFolder, whole
from horolog.broker.log.storage import LOCK_FILE, DataFolderError, FolderInUse, RealStorage, StorageFault, file_locks
from horolog.broker.workers.folder_locks import FolderLocks


def test_folders_are_made_and_locked(tmp_path):
    paths = [f"{tmp_path}/a/b", f"{tmp_path}/c"]
    locks = FolderLocks(paths)
    assert locks.paths == paths
    assert all(Path(path, LOCK_FILE).exists() for path in paths)
    assert repr(locks) == "<FolderLocks: 2 held>"
    locks.release()
    FolderLocks(paths).release()


def test_a_folder_that_a_broker_has_is_refused_in_its_words(tmp_path):
    folder = DataFolder(str(tmp_path), RealStorage(), SystemClock(), whole(1))
    folder.claim(1)
    with pytest.raises(FolderInUse) as refused:
        FolderLocks([f"{tmp_path}/other", str(tmp_path)])
    folder.release()
    FolderLocks([f"{tmp_path}/other"]).release()

    locks = FolderLocks([str(tmp_path)])
    with pytest.raises(DataFolderError) as told:
        DataFolder(str(tmp_path), RealStorage(), SystemClock(), whole(1)).claim(1)
    locks.release()
    assert str(refused.value) == str(told.value)


def test_whoever_inherits_the_descriptor_holds_the_lock(tmp_path, monkeypatch):
    monkeypatch.setattr(file_locks, "LOOKS", 3)
    locks = FolderLocks([str(tmp_path)])
    (descriptor,) = locks.descriptors
    holder = subprocess.Popen(
        [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()"],
        pass_fds=(descriptor,),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        holder.stdout.readline()
        locks.release()
        with pytest.raises(FolderInUse):
            FolderLocks([str(tmp_path)])
    finally:
        holder.communicate(timeout=30)
    FolderLocks([str(tmp_path)]).release()


class TestFoldersThatDoNotWork:
    @pytest.fixture
    def blocked(self, tmp_path):
        (tmp_path / "file").touch()
        return f"{tmp_path}/file/folder"

    def test_one_of_several_is_left_aside(self, blocked, tmp_path, caplog):
        locks = FolderLocks([blocked, f"{tmp_path}/works"])
        locks.release()
        assert locks.paths == [f"{tmp_path}/works"]
        assert "the data folder cannot be created" in caplog.text

    def test_the_last_is_not(self, blocked):
        with pytest.raises(StorageFault, match="the data folder cannot be created: make"):
            FolderLocks([blocked])

    def test_one_that_cannot_be_written_is_told_with_what_helps(self, tmp_path, monkeypatch):
        def refuse(storage, path):
            raise StorageFault(f"write {path}: no", code=13)

        monkeypatch.setattr(RealStorage, "check_writable", refuse)
        with pytest.raises(StorageFault, match=r"cannot be used: write .*; horolog\.read\.only=true serves"):
            FolderLocks([str(tmp_path)])

    def test_another_fault_is_told_without_advice(self, tmp_path, monkeypatch):
        def refuse(storage, path):
            raise StorageFault(f"write {path}: no", code=5)

        monkeypatch.setattr(RealStorage, "check_writable", refuse)
        with pytest.raises(StorageFault, match=r"cannot be used: write .*: no$"):
            FolderLocks([str(tmp_path)])
