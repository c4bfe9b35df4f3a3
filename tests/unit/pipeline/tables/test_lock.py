"""A lock that dies with its owner: real processes at once, killed at any moment."""

import json
import os
import random
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from horolog.pipeline.stores.store import LocalStore
from horolog.pipeline.tables import lock as lock_module
from horolog.pipeline.tables.lock import Generation, Lock, LockHeld, writing
from horolog.pipeline.tables.table import TableError
from horolog.stores.faults import StoreError
from tests.support.style import PROJECT


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
    with pytest.raises(LockHeld, match=rf" on .*, pid {job.pid} has been writing to the table for \d+"), lock.held():
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


def test_a_beat_that_cannot_be_written_is_tried_again(tmp_path, monkeypatch):
    """Disks are full for a while, and stores do not answer."""
    monkeypatch.setattr(lock_module, "BEAT_SECONDS", 0.001)
    failures = [OSError("no space left on device"), StoreError("no answer")]
    written = threading.Event()

    class Failing(LocalStore):
        def replace(self, name, data):
            if failures:
                raise failures.pop()
            super().replace(name, data)
            written.set()

    with Lock(Failing(tmp_path)).held():
        assert written.wait(30)


@pytest.mark.parametrize("damage", [b"", b"{}", b"[]", b'{"version": 1}', b'{"version": 1, "owner": {"user": "u"}}'])
def test_a_damaged_lock_is_told(tmp_path, damage):
    store = LocalStore(tmp_path)
    store.create("lock/00000001.json", damage)
    with pytest.raises(TableError, match=r"lock/00000001\.json is not a lock"):
        Lock(store).take()


def test_a_lock_of_a_later_version_is_not_taken(tmp_path):
    LocalStore(tmp_path).create("lock/00000001.json", b'{"version": 2}')
    with pytest.raises(TableError, match="is not a lock of version 1"):
        Lock(LocalStore(tmp_path)).take()


def test_a_job_that_was_quicker_has_it(tmp_path):
    """Another job makes the generation between the look and the attempt."""

    class Late(LocalStore):
        first = True

        def create(self, name, data):
            if self.first:
                self.first = False
                assert Lock(LocalStore(tmp_path)).take() is None
            return super().create(name, data)

    late = Lock(Late(tmp_path))
    held_by = late.take()
    assert held_by is not None
    assert held_by.owner.pid == os.getpid()
    late.release()  # has nothing to release
    assert isinstance(Lock(LocalStore(tmp_path)).take(), Generation)


def test_whoever_writes_recovers_first_and_says_whose_lock_it_had(tmp_path):
    with held_elsewhere(tmp_path) as job:
        job.kill()
    said, recovered = [], []
    table = SimpleNamespace(lock=Lock(LocalStore(tmp_path)), recover=lambda: recovered.append(1))
    with writing(table, tell=said.append):
        assert recovered == [1]
    assert [f"pid {job.pid}, which has died, was taken over" in line for line in said] == [True]
    with writing(table, tell=said.append):
        assert len(said) == 1


def test_a_user_without_a_name_has_a_number(tmp_path, monkeypatch):
    def nameless():
        raise KeyError("no such uid")

    monkeypatch.setattr(lock_module.getpass, "getuser", nameless)
    with Lock(LocalStore(tmp_path)).held():
        owner = json.loads((tmp_path / "lock" / "00000001.json").read_text())["owner"]
    assert owner["user"] == f"uid {os.getuid()}"
