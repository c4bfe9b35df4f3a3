"""Folders that workers have left are merged, on the disk or in memory, and folders of a broker alone are let be."""

import socket
import subprocess
import sys

import pytest

from horolog.broker.base.unix_sockets import SOCKETS, reachable
from horolog.broker.cluster.left_folders import (
    NoRoomToMerge,
    as_left,
    merge_what_workers_left,
    merged_for_one,
    remove_sockets,
    topics_left,
)
from horolog.broker.cluster.new_topics import NewTopic
from horolog.broker.log.storage import MemoryStorage, RealStorage, StorageFault
from horolog.broker.on_record.cluster_file import FILE_NAME, JOURNAL, parse
from tests.support.at_once import at_once
from tests.support.crew import Crew
from tests.support.crew_records import Alone
from tests.support.style import PROJECT


@pytest.fixture
def crew():
    """Workers that have made a topic and were killed."""
    crew = Crew((1, 2), folders=("/disks/a", "/disks/b")).start()
    at_once(crew.clusters[2].create_topics, [NewTopic("orders", 2)])
    crew.kill()
    return crew


def files(crew):
    return {name for folder in crew.folders for name in crew.storage.list_dir(folder)}


def topics_in(storage, folder):
    path = f"{folder}/{FILE_NAME}"
    return set(parse(storage.read_all(path)).topics) if storage.exists(path) else set()


def test_what_only_looks_sees_the_folders_merged_and_changes_nothing(crew):
    before = files(crew)
    assert JOURNAL in before
    left = as_left(crew.storage, crew.folders)
    for folder in crew.folders:
        assert topics_in(left, folder) == {"orders"}
        assert not left.exists(f"{folder}/{JOURNAL}")
        assert topics_in(crew.storage, folder) == set()
    assert files(crew) == before


def test_the_topics_of_the_folder_with_the_journal_are_told_before_a_merge(crew):
    with_journal = [folder for folder in crew.folders if crew.storage.exists(f"{folder}/{JOURNAL}")]
    assert [set(topics_left(crew.storage, folder)) for folder in with_journal] == [{"orders"}]


def test_a_merge_leaves_nothing_for_the_next(crew):
    assert merge_what_workers_left(crew.storage, crew.folders)
    assert [topics_in(crew.storage, folder) for folder in crew.folders] == [{"orders"}, {"orders"}]
    assert JOURNAL not in files(crew)
    assert not merge_what_workers_left(crew.storage, crew.folders)


def test_a_full_disk_is_told_from_one_that_fails_and_neither_loses_anything(crew, monkeypatch):
    crew.storage.capacity_bytes = crew.storage.used_bytes()
    with pytest.raises(NoRoomToMerge):
        merge_what_workers_left(crew.storage, crew.folders)
    crew.storage.capacity_bytes = None

    def fail(*_):
        raise StorageFault("an error of the disk")

    with monkeypatch.context() as failing:
        failing.setattr(crew.storage, "write_atomically", fail)
        with pytest.raises(StorageFault) as raised:
            merge_what_workers_left(crew.storage, crew.folders)
    assert not isinstance(raised.value, NoRoomToMerge)
    assert merge_what_workers_left(crew.storage, crew.folders)
    assert [topics_in(crew.storage, folder) for folder in crew.folders] == [{"orders"}, {"orders"}]


@pytest.mark.parametrize("says_so", ["the record", "a checkpoint"])
def test_a_journal_that_was_lost_is_missed(crew, says_so, caplog):
    """Whoever took the record for whole would know nothing of what workers have changed."""
    for folder in crew.folders:
        for name in crew.storage.list_dir(folder):
            if name == JOURNAL or (says_so == "a checkpoint" and name == FILE_NAME):
                crew.storage.remove(f"{folder}/{name}")
    if says_so == "a checkpoint":
        crew.storage.write_atomically("/disks/b/horolog-checkpoint.2", b"")
    assert merge_what_workers_left(crew.storage, crew.folders)
    assert "horolog-journal is damaged: it is missing" in caplog.text
    assert parse(crew.storage.read_all(f"/disks/a/{FILE_NAME}")).rules_in_doubt


def test_a_folder_that_is_not_there_has_nothing_of_workers():
    assert not merge_what_workers_left(MemoryStorage(), ["/nowhere"])


def test_a_journal_in_any_of_the_folders_is_found(crew):
    assert merge_what_workers_left(crew.storage, crew.folders[::-1])
    assert JOURNAL not in files(crew)


def test_folders_of_a_broker_alone_are_read_as_they_are():
    storage = MemoryStorage()
    storage.make_dir("/data")
    assert as_left(storage, ["/data"]) is storage
    assert not merge_what_workers_left(storage, ["/data", "/missing"])
    assert topics_left(storage, "/data") == {}
    assert storage.list_dir("/data") == []


def test_nothing_of_workers_is_imported_where_none_were():
    code = (
        "import sys; from horolog.broker.cluster import left_folders; from horolog.broker.log.storage import MemoryStorage;"
        "left_folders.as_left(MemoryStorage(), ['/data']);"
        "sys.exit('horolog.broker.cluster.settling' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=PROJECT, check=False, timeout=60).returncode == 0


def test_sockets_that_killed_workers_left_are_removed(tmp_path, caplog):
    data = tmp_path / "data"
    (data / SOCKETS).mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as left, reachable(f"{data}/{SOCKETS}/1") as path:
        left.bind(path)
    remove_sockets(RealStorage(), [str(tmp_path / "none"), str(data)])
    assert list(data.iterdir()) == []
    assert caplog.text == ""
    (data / SOCKETS / "somebody's").mkdir(parents=True)
    remove_sockets(RealStorage(), [str(data)])
    assert "the sockets of workers could not be removed: " in caplog.text


class TestForOneBroker:
    @pytest.fixture
    def alone(self):
        """What a broker alone has left that was killed."""
        crew = Crew((1,))
        one = Alone(crew)
        one.cluster.create_topic("orders", 2, {})
        one.logs.abandon()
        return crew

    def test_folders_are_merged_on_the_disk(self, alone):
        assert merged_for_one(alone.storage, alone.folders) is alone.storage
        assert JOURNAL not in files(alone)
        assert topics_in(alone.storage, "/data") == {"orders"}

    def test_or_in_memory_where_the_disk_takes_nothing(self, alone, caplog):
        alone.storage.fail("create", FILE_NAME, times=100)
        merged = merged_for_one(alone.storage, alone.folders)
        assert topics_in(merged, "/data") == {"orders"}
        assert JOURNAL in files(alone)
        assert "could not be saved" in caplog.text

    def test_what_workers_have_left_is_theirs_to_serve_then(self, crew):
        crew.storage.capacity_bytes = crew.storage.used_bytes()
        with pytest.raises(NoRoomToMerge):
            merged_for_one(crew.storage, crew.folders)
