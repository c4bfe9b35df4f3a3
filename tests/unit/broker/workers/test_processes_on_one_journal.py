"""Processes that write one journal on a real disk: every number is had once, and nothing that was told is lost to a kill."""

import subprocess
import sys

import pytest

from horolog.broker.log.storage import RealStorage
from horolog.broker.workers import file_journal
from horolog.broker.workers.entry_lines import Head

WRITER = """
import sys
from horolog.broker.changes import Changes
from horolog.broker.cluster_state import ClusterState, ProducerIdsReserved
from horolog.broker.log.storage import RealStorage
from horolog.broker.workers import file_journal

class Company:
    def journal_is_at(self, number, done):
        done()
    def follow(self, steps):
        pass

storage = RealStorage()
found = file_journal.find(storage, [sys.argv[1]])
changes = Changes(file_journal.FileJournal(storage, found), 1, lambda steps: {}, Company())
state = ClusterState()
for entry in found.read.entries:
    state = state.apply(entry)
changes.begin(state, is_news=False)
print("began", flush=True)
for _ in range(int(sys.argv[2])):
    firsts = []
    def decide(state):
        firsts[:] = [state.next_producer_id]
        return ProducerIdsReserved(firsts[0])
    changes.make(decide, lambda outcome: print(firsts[0], flush=True))
"""


def writer(folder, count):
    command = [sys.executable, "-c", WRITER, str(folder), str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def folder(tmp_path):
    file_journal.begin(RealStorage(), str(tmp_path), Head(0, (1, 2)))
    return tmp_path


def entries(folder):
    found = file_journal.find(RealStorage(), [str(folder)])
    assert found.read.damages == []
    return [entry.first for entry in found.read.entries]


def test_two_processes_never_have_the_same_block(folder):
    processes = [writer(folder, 60) for _ in range(2)]
    told = [process.communicate(timeout=60)[0].split()[1:] for process in processes]
    firsts = [int(first) for one in told for first in one]
    assert sorted(firsts) == entries(folder) == [1000 * number for number in range(120)]


def test_what_a_process_was_told_outlives_its_kill(folder):
    told = []
    for _ in range(3):
        processes = [writer(folder, 100_000) for _ in range(2)]
        for process in processes:
            for _ in range(15):
                process.stdout.readline()
        for process in processes:
            process.kill()
        for process in processes:
            rest = process.communicate(timeout=60)[0].split("\n")[:-1]
            told += [int(line) for line in rest if line.isdigit()]
    found = entries(folder)
    assert set(told) <= set(found)
    assert found == [1000 * number for number in range(len(found))]
    assert len(found) > 60
