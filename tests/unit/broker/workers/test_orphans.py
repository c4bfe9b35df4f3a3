"""A worker whose supervisor has gone ends before it does anything."""

import ctypes
import socket
import subprocess
import sys

from horolog.broker.workers import orphans

PROGRAM = """
import sys
from horolog.broker.workers.orphans import end_with_supervisor
end_with_supervisor(int(sys.argv[1]))
print("goes on")
"""


def outcome(link):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(link.fileno())],
        pass_fds=[link.fileno()],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout


def test_a_link_that_somebody_holds_is_gone_on_with():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert outcome(theirs) == (0, "goes on\n")


def test_a_link_whose_other_end_is_closed_ends_it_whatever_lies_in_it():
    ours, theirs = socket.socketpair()
    with theirs:
        with ours:
            ours.sendall(b'["begin", {}]\n')
            assert not orphans.is_hung_up(theirs.fileno())
        assert orphans.is_hung_up(theirs.fileno())
        assert outcome(theirs) == (orphans.EXIT_ORPHANED, "")


def test_the_system_is_asked_to_kill_it_where_it_can(monkeypatch):
    class System:
        def __init__(self):
            self.asked = []

        def prctl(self, *asked):
            self.asked.append(asked)

    system = System()
    ended = []
    monkeypatch.setattr(ctypes, "CDLL", lambda _: system)
    monkeypatch.setattr(orphans.os, "_exit", ended.append)
    ours, theirs = socket.socketpair()
    with theirs:
        with ours:
            orphans.end_with_supervisor(theirs.fileno())
        assert system.asked == [(orphans.PR_SET_PDEATHSIG, 9)]
        assert ended == []
        monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
        orphans.end_with_supervisor(theirs.fileno())
        assert ended == [orphans.EXIT_ORPHANED]
