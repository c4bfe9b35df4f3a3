"""Processes that write one journal on a real disk: every number is had once, and nothing that was told is lost to a kill.

They shorten it again and again: each keeps how far it has applied it in a file of its own, which stands for their links.
"""

import subprocess
import sys

import pytest

from horolog.broker.cluster import found_journals, settling
from horolog.broker.cluster.cluster_state import ClusterState
from horolog.broker.cluster.entry_lines import Head
from horolog.broker.log.storage import RealStorage
from horolog.broker.on_record.cluster_file import StoredCluster

WRITER = """
import sys
from pathlib import Path
from horolog.broker.base.own_thread import AtOnce
from horolog.broker.cluster.journal_beside import JournalBeside, KeptBySettling
from horolog.broker.cluster.change_driver import ChangeDriver
from horolog.broker.cluster.cluster_state import ClusterState, ProducerIdsReserved
from horolog.broker.log.storage import RealStorage
from horolog.broker.cluster import file_journal, found_journals, settling

file_journal.GROWTH_BYTES = 500
folder, count, mine = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]

storage = RealStorage()
found = found_journals.take_up(storage, [str(folder)])

def applied_by_all():
    return min(int(one.read_text() or 0) for one in folder.glob("applied.*"))

journal = JournalBeside(file_journal.FileJournal(storage, found, applied_by_all), AtOnce(), KeptBySettling())
changes = ChangeDriver(journal, 1, lambda steps: {}, lambda number, done: done(), is_shared=True)
state = settling.beginning(ClusterState(), found)
for entry in found.read.entries:
    state = state.apply(entry)
changes.begin(state, is_news=False)
print("began", flush=True)
for _ in range(count):
    (folder / f"applied.{mine}").write_text(str(changes.state.number))
    firsts = []
    def decide(state):
        firsts[:] = [state.next_producer_id]
        return ProducerIdsReserved(firsts[0])
    changes.make(decide, lambda outcome: print(firsts[0], flush=True))
"""


def writers(folder, count):
    for one in "12":
        (folder / f"applied.{one}").write_text("0")
    commands = [[sys.executable, "-c", WRITER, str(folder), str(count), one] for one in "12"]
    return [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]


@pytest.fixture
def folder(tmp_path):
    found_journals.begin(RealStorage(), str(tmp_path), Head(0, (1, 2)))
    return tmp_path


def next_block(folder):
    """As whoever looks at the journal now sees it; it was shortened, and nothing is damaged."""
    found = found_journals.find(RealStorage(), [str(folder)])
    assert found.read.damages == found.whole.damages == []
    state = settling.replayed(ClusterState(), found, StoredCluster())
    assert state.next_producer_id == 1000 * state.number
    return state.number


def test_two_processes_never_have_the_same_block(folder):
    processes = writers(folder, 60)
    told = [process.communicate(timeout=60)[0].split()[1:] for process in processes]
    firsts = [int(first) for one in told for first in one]
    assert sorted(firsts) == [1000 * number for number in range(120)]
    assert next_block(folder) == 120


def test_what_a_process_was_told_outlives_its_kill(folder):
    lines = []
    for _ in range(3):
        processes = writers(folder, 100_000)
        for process in processes:
            lines += [process.stdout.readline().rstrip() for _ in range(15)]
        for process in processes:
            process.kill()
        for process in processes:
            lines += process.communicate(timeout=60)[0].split("\n")[:-1]
    told = [int(line) for line in lines if line.isdigit()]
    assert len(told) == len(set(told)) > 60
    assert max(told) < 1000 * next_block(folder)
