"""No event loop waits for the journal: neither for its own writes, nor for what others write, on a disk whose syncs take long."""

import asyncio
import os
import threading
import time
from pathlib import Path

import pytest

from horolog.broker.base import own_thread
from horolog.broker.base.own_thread import AtOnce, OwnThread
from horolog.broker.cluster import cluster_state
from horolog.broker.cluster.change_driver import ChangeDriver
from horolog.broker.cluster.cluster_state import ClusterState, TopicsCreated
from horolog.broker.cluster.journal_beside import JournalBeside, KeptBySettling
from horolog.broker.cluster.new_topics import NewTopic
from horolog.broker.cluster.own_journal import OwnJournal
from horolog.broker.log.storage import RealStorage
from horolog.broker.on_record import cluster_file
from horolog.broker.on_record.cluster_file import ClusterFile, StoredTopic
from tests.support.crew import Crew
from tests.support.waiting import until

NODES = tuple(range(1, 9))
CHANGES = 5
SYNC_S = 0.02


class SlowSyncs:
    """Which threads have synced which files, each for a while."""

    def __init__(self, monkeypatch):
        self.seen = []
        for name in ("fsync", "fdatasync"):
            monkeypatch.setattr(os, name, self._slow(getattr(os, name)))

    def _slow(self, sync):
        def slow(descriptor):
            self.seen.append((threading.current_thread(), Path(f"/proc/self/fd/{descriptor}").readlink().name))
            time.sleep(SYNC_S)
            sync(descriptor)

        return slow

    def of(self, thread):
        return [name for one, name in self.seen if one is thread]


@pytest.fixture
async def crew(tmp_path):
    loop = asyncio.get_running_loop()
    crew = Crew(NODES, RealStorage(), [str(tmp_path)], beside=lambda: OwnThread(loop, "journal")).start()
    made = loop.create_future()
    crew.clusters[1].create_topics([NewTopic("t", len(NODES))], made.set_result)
    await asyncio.wait_for(made, 60)
    yield crew
    for cluster in crew.clusters.values():
        cluster.changes.close()
    crew.stop()


def all_have(crew, number):
    return all(one.state.number >= number for one in crew.clusters.values())


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="names of open files come from /proc")
async def test_changes_by_any_worker_are_written_and_followed_in_other_threads(crew, monkeypatch):
    before = crew.clusters[1].state.number
    await until(lambda: all_have(crew, before))
    disk = SlowSyncs(monkeypatch)
    for number in range(CHANGES):
        done = asyncio.get_running_loop().create_future()
        cluster = crew.clusters[NODES[number]]
        cluster.alter_topic_configs({"t": {"retention.ms": str(1000 + number)}}, done.set_result)
        assert await asyncio.wait_for(done, 60) is None
    await until(lambda: all_have(crew, before + CHANGES))
    assert {one.topics["t"].config.retention_ms for one in crew.clusters.values()} == {1000 + CHANGES - 1}
    assert disk.of(threading.current_thread()) == []
    assert {name for _, name in disk.seen} == {"horolog-journal"}


async def test_a_follower_trusts_what_its_writer_has_announced(crew, monkeypatch):
    before = crew.clusters[1].state.number
    await until(lambda: all_have(crew, before))
    disk = SlowSyncs(monkeypatch)
    done = asyncio.get_running_loop().create_future()
    crew.clusters[1].alter_topic_configs({"t": {"retention.ms": "5"}}, done.set_result)
    await asyncio.wait_for(done, 60)
    await until(lambda: all_have(crew, before + 1))
    assert len(disk.seen) == 1, "the writer's sync"


MANY = 20_000


async def test_a_broker_alone_with_many_topics_writes_them_in_another_thread_and_in_pieces(tmp_path, monkeypatch):
    """No event loop stands for longer than a piece takes, whether it is a line or the whole state that is written."""
    loop, storage = asyncio.get_running_loop(), RealStorage()
    record = ClusterFile(storage, str(tmp_path))
    files = OwnJournal(storage, record, lambda: [str(tmp_path)])
    changes = ChangeDriver(
        JournalBeside(files, OwnThread(loop, "journal"), files),
        1,
        lambda _: {},
        lambda _, done: done(),
        is_shared=False,
    )
    topics = [StoredTopic(f"topic-{number}", number.to_bytes(16), 1, {}) for number in range(MANY)]
    changes.begin(ClusterState.of(topics, nodes=(1,)), is_news=True)
    disk, encoders, pauses = SlowSyncs(monkeypatch), [], []
    encode, pause = cluster_state.encode_lines, time.sleep
    monkeypatch.setattr(
        cluster_state, "encode_lines", lambda *a: (encoders.append(threading.current_thread()), encode(*a))[1]
    )
    monkeypatch.setattr(own_thread.time, "sleep", lambda seconds: (pauses.append(seconds), pause(seconds)))
    for number in range(3):
        made, new = loop.create_future(), StoredTopic(f"new-{number}", (MANY + number).to_bytes(16), 1, {})
        changes.make(lambda _, new=new: TopicsCreated((new,)), made.set_result)
        assert await asyncio.wait_for(made, 60) == {}
    assert (disk.of(threading.current_thread()), threading.current_thread() in encoders) == ([], False)
    assert len(encoders) == 1, "the journal and the record begin with the same lines"
    pieces = MANY // cluster_file.TOPICS_AT_ONCE
    assert pauses.count(own_thread.PAUSE_S) == 2 * pieces, (
        "lines are collected and joined, and nothing else goes through them"
    )
    changes.close()
    assert len(ClusterFile(storage, str(tmp_path)).load().topics) == MANY + 3


class Files:
    """The files of a journal, and who keeps the record."""

    written_count = 3

    def __init__(self):
        self.done = []

    def begin(self, state, *, is_news):
        self.done.append(("begin", state, is_news))
        return False

    def check(self, state):
        self.done.append(("check", state))

    def end(self, state):
        self.done.append(("end", state))


def test_the_start_and_the_stop_wait_for_the_record():
    files, state = Files(), ClusterState()
    journal = JournalBeside(files, AtOnce(), files)
    assert not journal.begin(state, is_news=True)
    journal.check(state)
    journal.close(None)
    assert files.done == [("begin", state, True), ("check", state)], "a start that failed leaves the disk as it is"
    journal.close(state)
    assert files.done[2:] == [("end", state)]
    assert (journal.written_count, repr(journal).startswith("<JournalBeside of ")) == (3, True)


def test_the_record_of_workers_is_the_settlings():
    files = Files()
    journal = JournalBeside(files, AtOnce(), KeptBySettling())
    assert journal.begin(ClusterState(), is_news=True)
    journal.close(ClusterState())
    assert files.done == []
