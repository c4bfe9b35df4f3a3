"""A process is told from a later one of the same pid, and from none."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from horolog.base import processes
from horolog.base.processes import beginning_of, this_place


def test_a_process_has_one_beginning_and_one_that_has_ended_has_none():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        first = beginning_of(child.pid)
        assert first
        assert first == beginning_of(child.pid)
        child.stdin.close()
        child.wait()
    assert beginning_of(child.pid) == ""
    assert beginning_of(os.getpid()) != ""


def test_a_place_is_the_same_while_the_system_runs():
    assert this_place() == this_place()
    assert this_place().strip()


@pytest.mark.parametrize(("said", "expected"), [(None, "7"), (PermissionError, "7"), (ProcessLookupError, "")])
def test_where_there_is_no_proc_a_pid_has_to_do(monkeypatch, said, expected):
    def kill(_pid, _signal):
        if said is not None:
            raise said

    def missing(_path):
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", missing)
    monkeypatch.setattr(Path, "exists", lambda _path: False)
    monkeypatch.setattr(processes.os, "kill", kill)
    assert beginning_of(7) == expected
