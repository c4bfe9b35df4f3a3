"""Workers on one journal, in any interleaving, with faults of the disk, kills and power cuts: all of them come to the same state.

The journal is shortened again and again on the way.
"""

import random
from unittest.mock import patch

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from horolog.broker.base.own_thread import AtOnce
from horolog.broker.cluster import file_journal, found_journals, settling
from horolog.broker.cluster.change_driver import ChangeDriver
from horolog.broker.cluster.cluster_state import (
    BrokerConfigsChanged,
    ClusterState,
    FoldersRemoved,
    ProducerIdsReserved,
    TopicsCreated,
    TopicsDeleted,
)
from horolog.broker.cluster.entry_lines import Head
from horolog.broker.cluster.file_journal import FileJournal
from horolog.broker.cluster.journal_beside import JournalBeside, KeptBySettling
from horolog.broker.log.storage import MemoryStorage
from horolog.broker.log.storage.memory_disk import PowerCut
from horolog.broker.on_record.cluster_errors import ClusterError
from horolog.broker.on_record.cluster_file import StoredTopic
from horolog.protocol.errors import ErrorCode

WORKERS = st.integers(0, 2)
NAMES = st.sampled_from(["a", "b", "c"])
GROWTH_BYTES = 300
TAKEN = ClusterError(ErrorCode.TOPIC_ALREADY_EXISTS, "there is one")


class Worker:
    """One writer, with what it was told to do and has been told."""

    def __init__(self, storage, applied_by_all):
        found = found_journals.find(storage, ["/data"])
        state = settling.beginning(ClusterState(nodes=(1,)), found)
        for entry in found.read.entries:
            state = state.apply(entry)
        self.waiting = []
        self.steps = []
        journal = JournalBeside(FileJournal(storage, found, applied_by_all), AtOnce(), KeptBySettling())
        self.changes = ChangeDriver(journal, 1, self.carry_out, self.announce, is_shared=True)
        self.changes.begin(state, is_news=False)

    def carry_out(self, steps):
        self.steps += steps
        return {}

    def announce(self, number, done):
        self.waiting.append((number, done))


class Journals(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.storage = MemoryStorage()
        self.storage.make_dir("/data")
        self.storage.sync_dir("/")
        found_journals.begin(self.storage, "/data", Head(0, (1, 2, 3)))
        self.begin_all()
        self.ids = 0
        self.acknowledged = set()
        self.blocks = []
        self.bound = patch.object(file_journal, "GROWTH_BYTES", GROWTH_BYTES)
        self.bound.start()

    def begin_all(self):
        self.workers = []
        self.workers += [Worker(self.storage, self.applied_by_all) for _ in range(3)]

    def applied_by_all(self):
        return min(worker.changes.state.number for worker in self.workers)

    def made(self, worker, decide, then):
        """Have a worker change something; the power may go."""
        told = []
        try:
            self.workers[worker].changes.make(decide, told.append)
        except PowerCut:
            self.restart()
            return
        for number, done in self.workers[worker].waiting:
            done()
            assert number <= self.workers[worker].changes.state.number
        self.workers[worker].waiting.clear()
        (outcome,) = told
        if not isinstance(outcome, ClusterError):
            then()

    def restart(self):
        self.storage.crash(random.Random(self.ids))
        self.begin_all()

    @rule(worker=WORKERS, name=NAMES)
    def create(self, worker, name):
        self.ids += 1
        topic = StoredTopic(name, self.ids.to_bytes(16), 1, {})
        self.made(
            worker,
            lambda state: TAKEN if name in state.topics else TopicsCreated((topic,)),
            lambda: self.acknowledged.add(topic.id),
        )

    @rule(worker=WORKERS, name=NAMES)
    def delete(self, worker, name):
        gone = []

        def decide(state):
            gone[:] = [state.topics[name].id] if name in state.topics else []
            return TopicsDeleted((name,)) if gone else TAKEN

        self.made(worker, decide, lambda: None)
        self.acknowledged -= set(gone)

    @rule(worker=WORKERS)
    def reserve(self, worker):
        first = []

        def decide(state):
            first[:] = [state.next_producer_id]
            return ProducerIdsReserved(first[0])

        self.made(worker, decide, lambda: self.blocks.extend(first))

    @rule(worker=WORKERS, name=NAMES)
    def note(self, worker, name):
        try:
            self.workers[worker].changes.note(FoldersRemoved(frozenset([(name, bytes(16))])))
        except PowerCut:
            self.restart()

    @rule(worker=WORKERS, value=NAMES)
    def configure(self, worker, value):
        self.made(worker, lambda _: BrokerConfigsChanged("", {"x": value}), lambda: None)

    @rule(worker=WORKERS)
    def read_on(self, worker):
        try:
            self.workers[worker].changes.catch_up()
        except PowerCut:
            self.restart()

    @rule(
        operation=st.sampled_from(["write", "sync", "truncate", "read", "open", "rename", "sync_dir"]),
        torn=st.integers(0, 60),
    )
    def hurt(self, operation, torn):
        self.storage.fail(operation, "horolog-journal", torn_bytes=torn)

    @rule()
    def heal(self):
        self.storage.heal()

    @rule(worker=WORKERS)
    def kill(self, worker):
        """Its successor reads everything again."""
        self.storage.heal()
        self.workers[worker] = Worker(self.storage, self.applied_by_all)

    @rule(changes=st.integers(1, 6), last_bytes=st.none() | st.integers(0, 40))
    def cut_power_soon(self, changes, last_bytes):
        self.storage.power_off_after(changes, last_write_bytes=last_bytes)

    def teardown(self):
        self.storage.crash()
        self.storage.heal()
        self.workers.append(Worker(self.storage, self.applied_by_all))
        for worker in self.workers:
            worker.changes.catch_up()
        one, *others = [worker.changes.state for worker in self.workers]
        for other in others:
            assert other == one
        assert self.acknowledged <= {topic.id for topic in one.topics.values()}
        assert len(self.blocks) == len(set(self.blocks))
        self.bound.stop()
        super().teardown()


TestWorkerJournal = Journals.TestCase
