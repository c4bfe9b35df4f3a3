"""Who has a folder is refused at once or waited for: a broker that lives, or workers whose supervisor was killed."""

import contextlib
import fcntl
import os
import subprocess
import sys
import time

import pytest

from horolog.broker.log.storage import FolderInUse, RealStorage, file_locks

HELD = """
import fcntl, os, sys, time
descriptor = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
for lock in sys.argv[2:]:
    getattr(fcntl, lock)(descriptor, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@contextlib.contextmanager
def held(path, *locks):
    """A process that has these locks until it is let go; it is given a way to be."""
    process = subprocess.Popen(
        [sys.executable, "-c", HELD, path, *locks], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.stdin.close()


@pytest.fixture
def path(tmp_path):
    return f"{tmp_path}/.lock"


@pytest.mark.parametrize("locks", [("flock", "lockf"), ("lockf",)])
def test_who_lives_is_refused_at_once(path, locks, monkeypatch):
    monkeypatch.setattr(file_locks.time, "sleep", None)
    with held(path, *locks), pytest.raises(FolderInUse, match="another broker"):
        RealStorage().lock(path)
    RealStorage().lock(path).release()


def test_workers_without_a_supervisor_are_waited_for(path, monkeypatch):
    pauses = []
    with held(path, "flock") as worker:

        def pause(seconds):
            pauses.append(seconds)
            worker.stdin.close()
            time.sleep(0)

        monkeypatch.setattr(file_locks, "time", type("Clock", (), {"sleep": staticmethod(pause)}))
        monkeypatch.setattr(file_locks, "LOOKS", 1_000_000)
        RealStorage().lock(path).release()
    assert pauses


def test_workers_that_do_not_end_are_not_waited_for_in_vain(path, monkeypatch):
    monkeypatch.setattr(file_locks, "LOOKS", 3)
    with held(path, "flock"), pytest.raises(FolderInUse, match="another broker"):
        RealStorage().lock(path)


def test_who_only_reads_shares_the_file(path):
    RealStorage().lock(path).release()
    with open(path) as one, open(path) as other:  # noqa: PTH123 - two descriptors of one path
        file_locks.take(one.fileno(), fcntl.LOCK_SH)
        file_locks.take(other.fileno(), fcntl.LOCK_SH)


def test_the_owner_is_told_of_this_process_too(path):
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
    try:
        assert not file_locks.has_owner(descriptor)
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert file_locks.has_owner(descriptor)
    finally:
        os.close(descriptor)


def test_where_the_system_cannot_tell_there_is_an_owner(path, monkeypatch):
    monkeypatch.setattr(file_locks, "_CAN_ASK", False)
    monkeypatch.setattr(file_locks.time, "sleep", None)
    with held(path, "flock"), pytest.raises(FolderInUse):
        RealStorage().lock(path)
