"""What the kernel says of a process, and ending one."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import process


@pytest.fixture
def sleeper():
    started = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield started
    started.kill()
    started.wait(60)


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


def test_free_ports_differ_and_are_none_that_a_connection_may_be_given():
    ports = process.free_ports(20)
    assert len(set(ports)) == 20
    given_from = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert max(ports) < min(given_from, process.FIRST_PORT_OF_CONNECTIONS)


def test_a_port_that_is_taken_is_passed_over(monkeypatch):
    with socket.create_server(("127.0.0.1", process.free_ports(1)[0])) as other:
        taken = other.getsockname()[1]
        wanted = iter([taken, taken + 1, taken])
        monkeypatch.setattr(process, "_RANDOM", SimpleNamespace(randrange=lambda *_: next(wanted)))
        assert process.free_ports(1) == [taken + 1]
        with pytest.raises(process.StartError, match="in a row"):
            process.free_range(2, tries=1)


def test_a_range_of_ports_is_free_from_its_first_to_its_last():
    first = process.free_range(3)
    held = [socket.create_server(("127.0.0.1", first + place)) for place in range(3)]
    for one in held:
        one.close()


def test_no_range_is_longer_than_there_are_ports():
    with pytest.raises(process.StartError, match="in a row"):
        process.free_range(70_000, tries=0)


def test_children_are_those_that_a_process_has_started(sleeper):
    assert sleeper.pid in process.children(os.getpid())
    assert process.children(sleeper.pid) == []


def test_a_process_that_is_gone_has_no_children(sleeper):
    sleeper.kill()
    sleeper.wait(60)
    assert process.children(sleeper.pid) == []
