"""Writers of one journal, each like a worker's: their appends, and their views of the cluster."""

from horolog.broker.cluster import found_journals, settling
from horolog.broker.cluster.cluster_state import (
    BrokerConfigsChanged,
    ClusterState,
    EpochsTold,
    Lead,
    LeadsChanged,
    ProducerIdsReserved,
    RulesChanged,
    TopicsCreated,
    TopicsDeleted,
)
from horolog.broker.cluster.entry_lines import Head
from horolog.broker.cluster.file_journal import FileJournal
from horolog.broker.cluster.found_journals import find, take_up
from horolog.broker.cluster.journal import AppendOutcome
from horolog.broker.log.storage import MemoryStorage, RealStorage
from horolog.broker.on_record.cluster_file import StoredTopic
from horolog.broker.on_record.stored_rules import StoredRule

HEAD = Head(3, (1, 2))

EVERYTHING = (
    TopicsCreated((StoredTopic("t", b"t" * 16, 3, {"retention.ms": "1"}), StoredTopic("gone", b"g" * 16, 1, {}))),
    TopicsDeleted(("gone",)),
    LeadsChanged((((b"t" * 16, 1), Lead(2, 1)),)),
    EpochsTold((((b"t" * 16, 2), 4),)),
    BrokerConfigsChanged("", {"log.retention.ms": "5"}),
    RulesChanged((StoredRule("user", "u", {"x": 1}),)),
)


class Writer:
    """A worker that appends; `applied` is how far it reports all workers to be."""

    def __init__(self, storage, folder="/data"):
        found = take_up(storage, [folder])
        self.state = settling.beginning(ClusterState(), found)
        self.applied = 0
        self.told = 0
        self.base_is_hurt = False
        self.journal = FileJournal(
            storage, found, lambda: self.applied, told_of=lambda: self.told, base_is_hurt=lambda: self.base_is_hurt
        )
        self.follow(found.read.entries)

    def follow(self, entries):
        for entry in entries:
            self.state = self.state.apply(entry)

    def append(self, *entries):
        for entry in entries:
            becomes = self.state.apply(entry)
            assert self.journal.append(entry, becomes) is AppendOutcome.WRITTEN
            self.state = becomes
        return self

    def check(self):
        self.journal.check(self.state)

    def read_on(self):
        self.follow(self.journal.tail(self.state.number))
        return self

    def reserve(self, count=1):
        for _ in range(count):
            self.append(ProducerIdsReserved(self.state.next_producer_id))
        return self


def append(journal, entry, number):
    """Append an entry; returns the outcome."""
    return journal.append(entry, ClusterState(number=number))


def begun_in_memory():
    storage = MemoryStorage()
    storage.make_dir("/data")
    storage.sync_dir("/")
    found_journals.begin(storage, "/data", HEAD)
    return storage


def begun_in_place(kind, tmp_path):
    """A storage, real or in memory, and a folder in it with the head of a journal."""
    if kind == "memory":
        return begun_in_memory(), "/data"
    storage, folder = RealStorage(), str(tmp_path)
    found_journals.begin(storage, folder, HEAD)
    return storage, folder


def journal_in(place):
    storage, folder = place
    return FileJournal(storage, find(storage, [folder]))


def journal_path(place):
    return f"{place[1]}/horolog-journal"
