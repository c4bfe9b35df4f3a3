"""What a run reads out of the brokers' logs and processes."""

import subprocess
import sys

import pytest

from tests.chaos.brokers import Brokers, tracebacks_in
from tests.chaos.clients import SOUGHT
from tests.chaos.plan import Event
from tests.chaos.run import standing_still

LOG = """12:00 node 1 WARNING broker 2 is gone
12:01 node 1 ERROR a request failed
Traceback (most recent call last):
  File "a.py", line 3, in f
    g()
KeyError: 5
12:02 node 1 WARNING on it goes"""

SLEEPS = "import time; print('ready', flush=True); time.sleep(60)"
STUBBORN = (
    "import signal, time; signal.signal(signal.SIGTERM, lambda *_: exit(3)); print('ready', flush=True); time.sleep(60)"
)


class Sleepers(Brokers):
    """Processes that only sleep, and end with an error when they are asked to end."""

    def start(self, node):
        self.place(node).mkdir(exist_ok=True)
        started = subprocess.Popen([sys.executable, "-c", STUBBORN if node == 3 else SLEEPS], stdout=subprocess.PIPE)
        assert started.stdout.readline() == b"ready\n"
        self.processes[node] = started


@pytest.fixture
def sleepers(tmp_path):
    them = Sleepers(tmp_path)
    them.start_all()
    yield them
    for process in them.processes.values():
        process.kill()
        process.wait(20)
        process.stdout.close()


def test_tracebacks_are_found_with_what_they_are_about():
    assert tracebacks_in(LOG) == ["traceback: 12:01 node 1 ERROR a request failed: KeyError: 5"]
    assert tracebacks_in(LOG.replace("Traceback", "traceback")) == []


def test_a_fault_is_over_when_the_broker_runs_again(sleepers):
    (sleepers.place(1) / "kept").touch()
    (sleepers.place(2) / "lost").touch()
    before = dict(sleepers.processes)
    for kind, node in (("kill", 1), ("empty", 2), ("pause", 3)):
        sleepers.befall(Event(0, kind, node, 0.01))
    assert before[1].poll() is not None
    assert sleepers.processes[1].poll() is None
    assert (sleepers.place(1) / "kept").exists()
    assert list(sleepers.place(2).iterdir()) == []
    assert sleepers.processes[3] is before[3]
    assert sleepers.problems == []
    for one in before.values():
        one.stdout.close()


def test_a_broker_that_ends_by_itself_or_with_an_error_is_a_problem(sleepers):
    first = sleepers.processes[1]
    first.kill()
    first.communicate()
    sleepers.befall(Event(0, "kill", 1, 0))
    stubborn = sleepers.processes[3]
    sleepers.befall(Event(0, "end", 3, 0))
    stubborn.stdout.close()
    assert sleepers.problems == ["broker 1 had ended by itself with -9", "broker 3 ended with 3"]


def test_work_that_stands_still_is_named():
    before = dict.fromkeys(SOUGHT, 5)
    assert standing_still(before, dict.fromkeys(SOUGHT, 6)) == []
    assert standing_still(before, before | {"timed": 6}) == [one for one in SOUGHT if one != "timed"]
