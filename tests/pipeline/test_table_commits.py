"""Commits that cannot overwrite each other and a lock that dies with its owner: real processes at once, killed at any moment."""

import json
import multiprocessing
import os
import random
import subprocess
import sys
import threading
import time

import pytest

from horolog.client.values.types import TopicPartition
from horolog.pipeline.stores.store import LocalStore
from horolog.pipeline.tables import lock as lock_module
from horolog.pipeline.tables.commits import Commit, CommitLog
from horolog.pipeline.tables.layout import Folders
from horolog.pipeline.tables.lock import Lock, LockHeld
from horolog.pipeline.tables.table import CommitLost, TableError
from tests.support.style import PROJECT

PLACE = TopicPartition("t", 0)
SEED = int(os.environ.get("HOROLOG_SEED", "1"))


def commit(number, offset=0, **more):
    return Commit(number, {PLACE: offset}, {"t": "id"}, **more)


# -- the store


def test_a_file_is_made_once(tmp_path):
    store = LocalStore(tmp_path)
    assert store.create("a/b.json", b"one")
    assert not store.create("a/b.json", b"two")
    assert (store.read("a/b.json"), store.read("a/c.json"), store.names("a"), store.names("x")) == (
        b"one",
        None,
        ["b.json"],
        [],
    )
    store.replace("a/b.json", b"three")
    assert store.read("a/b.json") == b"three"
    store.remove("a/b.json")
    store.remove("a/b.json")
    assert list((tmp_path / "a").iterdir()) == []


def test_of_many_that_make_a_file_at_once_one_does(tmp_path):
    store = LocalStore(tmp_path)
    for number in range(30):
        ready, made = threading.Barrier(6), []

        def make(who, name=f"f/{number}", ready=ready, made=made):
            ready.wait()
            if store.create(name, b"%d" % who):
                made.append(who)

        makers = [threading.Thread(target=make, args=(who,)) for who in range(6)]
        for each in makers:
            each.start()
        for each in makers:
            each.join()
        assert [b"%d" % who for who in made] == [store.read(f"f/{number}")]


# -- commits


def test_a_commit_says_what_it_was_told(tmp_path):
    log = CommitLog(LocalStore(tmp_path))
    folders = Folders("hour", "Europe/Berlin")
    made = commit(1, 17, add=["date=1/a"], remove=["date=1/b"], staging="s", records=5, folders=folders)
    log.add(made)
    assert (log.newest, log.read(1)) == (1, made)
    with pytest.raises(CommitLost, match="nothing of this step was added"):
        log.add(commit(1, 18))
    assert log.read(1).offsets == {PLACE: 17}


def test_a_commit_keeps_decoded_columns_and_readers_of_former_versions_do_not_take_it(tmp_path):
    log, columns = CommitLog(LocalStore(tmp_path)), [{"name": "value_decoded", "type": "string", "nullable": True}]
    log.add(commit(1, folders=Folders("hour", "UTC"), columns=columns))
    assert (log.read(1).columns, log.read(1).folders) == (columns, Folders("hour", "UTC"))
    assert json.loads((tmp_path / "commits/00000001.json").read_bytes())["version"] == 3


def test_commits_of_former_versions_are_read(tmp_path):
    old = {"version": 1, "offsets": {"t": {"0": 3}}, "add": ["date=1/a"], "remove": [], "records": 3}
    LocalStore(tmp_path).create("commits/00000001.json", json.dumps(old).encode())
    assert CommitLog(LocalStore(tmp_path)).read(1) == Commit(1, {PLACE: 3}, {}, ["date=1/a"], [], "00000001", 3)


@pytest.mark.parametrize("damage", [b"", b"[]", b'{"version": 4}', b"{"])
def test_what_is_no_commit_is_told(tmp_path, damage):
    LocalStore(tmp_path).create("commits/00000001.json", damage)
    with pytest.raises(TableError, match="is no commit"):
        CommitLog(LocalStore(tmp_path)).read(1)


def test_the_files_of_a_table_are_found_without_reading_every_commit(tmp_path, monkeypatch):
    log = CommitLog(LocalStore(tmp_path))
    expected = {}
    for number in range(1, 200):
        gone = [f"f{number - 2}"] if number % 3 == 0 else []
        log.add(commit(number, add=[f"f{number}"], remove=gone))
        before = expected.get(number - 1, set())
        expected[number] = (before - set(gone)) | {f"f{number}"}
    read = []
    monkeypatch.setattr(
        CommitLog, "read", lambda log, number, real=CommitLog.read: read.append(number) or real(log, number)
    )
    for number in (1, 63, 64, 65, 127, 128, 199):
        read.clear()
        assert log.files(number) == expected[number]
        assert len(read) <= 64


def chain(folder, seed, steps):
    """A job without its rows: from where the newest commit ends, a step further; what it lost to others it begins again."""
    rng = random.Random(seed)
    log = CommitLog(LocalStore(folder))
    for _ in range(steps):
        seen = log.newest
        start = log.read(seen).offsets[PLACE] if seen else 0
        time.sleep(rng.random() * 0.004)
        try:
            log.add(commit(seen + 1, start + 10, add=[f"{start}-{start + 10}"]))
        except CommitLost:
            continue


def test_jobs_at_once_that_are_killed_at_any_moment_leave_a_chain_without_gaps(tmp_path):
    """No lock is held here: commits alone see to it that no row is lost or repeated."""
    context = multiprocessing.get_context(
        "forkserver"
    )  # not of this process, which has threads of Spark and others by now
    context.set_forkserver_preload([__name__])
    rng = random.Random(SEED)
    for round_number in range(3):
        jobs = [context.Process(target=chain, args=(tmp_path, f"{SEED} {round_number} {n}", 60)) for n in range(4)]
        for job in jobs:
            job.start()
        time.sleep(rng.random() * 0.3)
        for job in jobs[:2]:
            job.kill()
        for job in jobs:
            job.join()
    log = CommitLog(LocalStore(tmp_path))
    ranges = [name for number in range(1, log.newest + 1) for name in log.read(number).add]
    assert ranges == [f"{10 * n}-{10 * n + 10}" for n in range(len(ranges))]
    assert log.files(log.newest) == set(ranges)
    assert len(ranges) > 100


# -- the lock


def held_elsewhere(folder, seconds=60):
    """A process that holds the lock, once it does."""
    script = (
        "import sys, time; from pathlib import Path; from horolog.pipeline.tables.lock import Lock;"
        "from horolog.pipeline.stores.store import LocalStore\n"
        "with Lock(LocalStore(Path(sys.argv[1]))).held(30_000): print('held', flush=True); time.sleep(float(sys.argv[2]))"
    )
    job = subprocess.Popen([sys.executable, "-c", script, folder, str(seconds)], cwd=PROJECT, stdout=subprocess.PIPE)
    assert job.stdout.readline() == b"held\n"
    return job


def test_who_holds_it_is_told_and_waited_for(tmp_path):
    job = held_elsewhere(tmp_path, 1.5)
    lock = Lock(LocalStore(tmp_path))
    with pytest.raises(LockHeld, match=rf" on .*, pid {job.pid} is writing to the table, for \d+"), lock.held():
        pass
    with lock.held(30_000):
        assert job.wait(10) == 0
        assert lock.taken_from is None
        with pytest.raises(LockHeld, match=f"pid {os.getpid()} "), Lock(LocalStore(tmp_path)).held(100):
            pass
    with Lock(LocalStore(tmp_path)).held():
        pass
    job.stdout.close()


def test_it_is_taken_over_from_an_owner_that_was_killed(tmp_path):
    job = held_elsewhere(tmp_path)
    job.kill()  # and not waited for yet: a process that has died and still has its pid
    deadline = time.monotonic() + 10
    lock = Lock(LocalStore(tmp_path))
    with lock.held(10_000):
        assert time.monotonic() < deadline
        assert f"pid {job.pid}" in lock.taken_from
    job.wait()
    job.stdout.close()


def test_a_pid_that_another_process_has_by_now_holds_nothing(tmp_path, monkeypatch):
    lock = Lock(LocalStore(tmp_path))
    assert lock.take() is None
    assert Lock(LocalStore(tmp_path)).take().owner.pid == os.getpid()
    monkeypatch.setattr(lock_module, "_process", lambda pid: f"another {pid}")
    assert Lock(LocalStore(tmp_path)).take() is None


def test_elsewhere_an_owner_is_dead_when_its_beat_has_grown_old(tmp_path, monkeypatch):
    now = [1_000_000]
    lock = Lock(LocalStore(tmp_path), now_ms=lambda: now[0])
    assert lock.take() is None
    monkeypatch.setattr(lock_module, "_this_place", lambda: "another host")
    other = Lock(LocalStore(tmp_path), now_ms=lambda: now[0])
    now[0] += lock_module.DEAD_AFTER_MS - 1
    assert other.take() is not None
    now[0] += 1
    assert other.take() is None
    assert f"pid {os.getpid()}" in other.taken_from


def test_an_owner_beats(tmp_path, monkeypatch):
    monkeypatch.setattr(lock_module, "BEAT_SECONDS", 0.01)
    now = [1000]
    with Lock(LocalStore(tmp_path), now_ms=lambda: now[0]).held():
        now[0] = 5000
        deadline = time.monotonic() + 10
        while json.loads((tmp_path / "lock" / "00000001.json").read_text())["beat_ms"] != 5000:
            assert time.monotonic() < deadline
            time.sleep(0.005)


def test_of_many_that_want_it_one_has_it_at_a_time(tmp_path):
    inside, most, times = [], [], []

    def want(seed):
        rng = random.Random(seed)
        for _ in range(5):
            with Lock(LocalStore(tmp_path)).held(60_000):
                inside.append(seed)
                most.append(len(inside))
                time.sleep(rng.random() * 0.01)
                times.append(seed)
                inside.remove(seed)

    wanting = [threading.Thread(target=want, args=(seed,)) for seed in range(4)]
    for each in wanting:
        each.start()
    for each in wanting:
        each.join()
    assert (max(most), len(times)) == (1, 20)
    assert len(list((tmp_path / "lock").glob("*.json"))) <= 3
