"""What the kernel says of a process, and ending one."""

import os
import subprocess
import sys
import time

import pytest

from benchmarks import process


@pytest.fixture
def sleeper():
    started = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield started
    started.kill()
    started.wait(10)


def test_cpu_grows_with_work_and_both_clocks_agree():
    before, fine = process.cpu_seconds(os.getpid()), process.fine_cpu_seconds(os.getpid())
    end = time.process_time() + 0.2
    while time.process_time() < end:
        pass
    grown, fine_grown = process.cpu_seconds(os.getpid()) - before, process.fine_cpu_seconds(os.getpid()) - fine
    assert grown >= 0.15
    assert abs(grown - fine_grown) < 0.1


def test_memory_is_told_of_the_living_only(sleeper):
    assert process.resident_kib(os.getpid()) > 1000
    assert process.is_alive(sleeper.pid)
    assert process.end(sleeper.pid, sleeper, 10)
    assert not process.is_alive(sleeper.pid)
    with pytest.raises((ProcessLookupError, FileNotFoundError)):
        process.resident_kib(sleeper.pid)


def test_waiting_ends_when_the_process_does(sleeper):
    process.end(sleeper.pid, sleeper, 10)
    with pytest.raises(process.StartError, match="why it ended"):
        process.wait_until(lambda: False, sleeper.pid, 30, lambda: "why it ended")


def test_waiting_ends_with_its_time(sleeper):
    with pytest.raises(process.StartError, match="not ready"):
        process.wait_until(lambda: False, sleeper.pid, 0.05, lambda: "")


def test_free_ports_differ():
    assert len(set(process.free_ports(20))) == 20
