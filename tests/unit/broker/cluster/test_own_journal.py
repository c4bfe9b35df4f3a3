"""The journal of a broker alone: what it has acknowledged is there after a crash, in every folder that works, and a clean stop removes it."""

import logging

import pytest

from horolog.broker.cluster import cluster_state, file_journal, found_journals, settling
from horolog.broker.cluster.cluster_state import ClusterState, ProducerIdsReserved, TopicsCreated, TopicsFound
from horolog.broker.cluster.entry_lines import Head, encode_head
from horolog.broker.cluster.journal import AppendOutcome
from horolog.broker.cluster.own_journal import OwnJournal
from horolog.broker.log.files import log_starts
from horolog.broker.log.storage import MemoryStorage
from horolog.broker.log.storage.memory_disk import PowerCut
from horolog.broker.on_record.cluster_file import ClusterFile, StoredTopic

A, B = "/a", "/b"
T = StoredTopic("t", b"t" * 16, 2, {"retention.ms": "5"})
UNSURE = StoredTopic("unsure", b"u" * 16, 1, {})


class Broker:
    """A broker's journal and the state that it has reached."""

    def __init__(self, storage=None, folders=(A,), state=None, *, is_news=False):
        self.storage = storage or with_folders(*folders)
        self.folders = list(folders)
        self.record = ClusterFile(self.storage, folders[0], lambda: self.folders)
        self.record.load()
        self.journal = OwnJournal(self.storage, self.record, lambda: self.folders)
        self.state = state or ClusterState()
        self.is_kept = self.journal.begin(self.state, is_news=is_news)

    def append(self, entry):
        becomes = self.state.apply(entry)
        outcome = self.journal.append(entry, becomes)
        if outcome is AppendOutcome.WRITTEN:
            self.state = becomes
        return outcome

    def reserve(self, count=1):
        for _ in range(count):
            assert self.append(ProducerIdsReserved(self.state.next_producer_id)) is AppendOutcome.WRITTEN

    def end(self):
        self.journal.end(self.state)


def with_folders(*folders):
    storage = MemoryStorage()
    for folder in folders:
        storage.make_dir(folder)
    storage.sync_dir("/")
    return storage


def merged(storage, folders=(A,)):
    """What the next start finds."""
    settling.merge(storage, list(folders))
    for folder in folders:
        assert not storage.exists(f"{folder}/horolog-journal")
    return ClusterFile(storage, folders[0], lambda: list(folders)).load()


def test_nothing_is_written_before_the_first_change():
    broker = Broker()
    broker.journal.check(broker.state)
    broker.end()
    assert broker.storage.list_dir(A) == []
    assert (list(broker.journal.tail(0)), repr(broker.journal)) == (
        [],
        "<OwnJournal of ClusterFile('/a/horolog-cluster') at 0>",
    )


def test_what_was_changed_is_there_after_a_crash():
    broker = Broker()
    broker.append(TopicsCreated((T,)))
    broker.reserve(3)
    assert (broker.journal.written_count, broker.journal.record_number()) == (4, 1 + 4)
    assert ClusterFile(broker.storage, A).load().has_journal
    broker.storage.crash()
    stored = merged(broker.storage)
    assert (stored.topics, stored.next_producer_id, stored.damages) == ({"t": T}, 3000, [])
    assert (stored.has_journal, stored.number) == (False, 1 + 4 + 1)


def test_a_change_is_a_line(monkeypatch):
    broker = Broker(state=ClusterState.of([T]))
    broker.reserve()
    monkeypatch.setattr(file_journal, "encode_whole", None)
    monkeypatch.setattr(cluster_state, "encode_lines", None)
    before = len(broker.storage.read_all("/a/horolog-journal"))
    broker.reserve(5)
    assert 0 < len(broker.storage.read_all("/a/horolog-journal")) - before < 1000


@pytest.mark.parametrize("folders", [(A,), (A, B)])
def test_the_first_change_encodes_the_state_once_for_every_file_that_has_it(folders, monkeypatch):
    encoded, encode = [], cluster_state.encode_lines
    broker = Broker(folders=folders, state=ClusterState.of([T]))
    monkeypatch.setattr(cluster_state, "encode_lines", lambda *a: (encoded.append(1), encode(*a))[1])
    broker.reserve(3)
    assert len(encoded) == 1
    broker.storage.crash()
    stored = merged(broker.storage, folders)
    assert (stored.topics, stored.next_producer_id) == ({"t": T}, 3000)


def test_a_journal_that_has_grown_is_shortened(monkeypatch):
    monkeypatch.setattr(file_journal, "GROWTH_BYTES", 500)
    broker = Broker()
    broker.reserve(30)
    assert len(broker.storage.read_all("/a/horolog-journal")) < 2000
    broker.storage.crash()
    assert merged(broker.storage).next_producer_id == 30_000


def test_a_clean_stop_leaves_the_record_alone():
    broker = Broker(folders=(A, B))
    broker.append(TopicsCreated((T,)))
    broker.end()
    broker.storage.crash()
    for folder in (A, B):
        assert broker.storage.list_dir(folder) == ["horolog-cluster"]
    assert (broker.record.number, broker.journal.record_number()) == (3, 3)
    stored = broker.record.load()
    assert (stored.topics, stored.has_journal) == ({"t": T}, False)


@pytest.mark.parametrize("last_bytes", [None, 0, 17])
def test_after_a_power_cut_a_change_is_there_or_not(last_bytes):
    """What was told as written is there at every point at which the power can go."""
    changes = 0
    while True:
        changes += 1
        broker = Broker(folders=(A, B))
        broker.storage.power_off_after(changes, last_write_bytes=last_bytes)
        try:
            broker.append(TopicsCreated((T,)))
            broker.reserve(2)
            broker.end()
        except PowerCut:
            broker.storage.crash()
        else:
            break
        stored = merged(broker.storage, (A, B))
        written = broker.state.number
        assert stored.next_producer_id or 0 in {max(0, written + more - 1) * 1000 for more in (0, 1)}
        assert ("t" in stored.topics) >= (written > 0)
        assert not stored.rules_in_doubt
    assert changes > 20


class TestFolders:
    def test_every_folder_has_all_changes(self):
        broker = Broker(folders=(A, B))
        broker.append(TopicsCreated((T,)))
        broker.reserve(2)
        for lost in (A, B):
            one = Broker(folders=(A, B))
            one.append(TopicsCreated((T,)))
            one.reserve(2)
            left = (A, B)[lost == A]
            assert merged(one.storage, (left,)).next_producer_id == 2000

    def test_one_that_fails_gets_what_it_has_missed(self, caplog):
        broker = Broker(folders=(A, B))
        broker.reserve()
        broker.storage.fail("write", "/a/horolog-journal", times=2)
        broker.reserve()
        assert "could not write" in caplog.text
        broker.reserve()
        assert merged(broker.storage, (A,)).next_producer_id == 3000

    def test_the_newest_copy_counts(self):
        broker = Broker(folders=(A, B))
        broker.reserve()
        broker.folders = [B]
        broker.reserve()
        assert merged(broker.storage, (A, B)).next_producer_id == 2000

    def test_a_copy_that_can_be_read_counts(self):
        broker = Broker(folders=(A, B))
        broker.reserve(2)
        broker.storage.write_atomically("/a/horolog-journal", b"nonsense")
        stored = merged(broker.storage, (A, B))
        assert (stored.next_producer_id, stored.rules_in_doubt) == (2000, False)

    def test_where_none_takes_it_a_change_has_not_happened(self, caplog):
        broker = Broker(folders=(A, B))
        broker.reserve()
        broker.storage.fail("write", "horolog-journal", times=100)
        assert broker.append(ProducerIdsReserved(1000)) is AppendOutcome.FAILED
        assert broker.journal.written_count == 1
        broker.storage.heal()
        broker.reserve()
        assert merged(broker.storage, (A, B)).next_producer_id == 2000

    def test_a_copy_from_before_the_record_does_not_stand_for_the_one_that_is_missing(self):
        broker = Broker(folders=(A, B))
        broker.reserve()
        old = broker.storage.read_all("/b/horolog-journal")
        broker.end()
        again = Broker(broker.storage, (A,), broker.state)
        again.reserve()
        again.storage.remove("/a/horolog-journal")
        again.storage.write_atomically("/b/horolog-journal", old)
        assert merged(again.storage, (A, B)).rules_in_doubt


def test_an_old_copy_is_not_taken_for_the_journal_of_workers():
    """It lies in a folder that was away."""
    broker = Broker(folders=(A, B))
    broker.reserve()
    old = broker.storage.read_all("/b/horolog-journal")
    broker.end()
    broker.storage.write_atomically("/b/horolog-journal", old)
    for left in (encode_head(Head(broker.record.next_number, (1, 2))), b"nonsense"):
        broker.storage.write_atomically("/a/horolog-journal", left)
        found = found_journals.find(broker.storage, [A, B])
        assert found.path == "/a/horolog-journal"
        stored = broker.record.load()
        assert (
            found_journals.continuing(found_journals.find_all(broker.storage, [A, B]), stored.number).path == found.path
        )


def test_a_fact_that_could_not_be_written_is_there_with_the_next_change():
    broker = Broker()
    broker.reserve()
    broker.state = broker.state.apply(TopicsCreated((T,)))
    broker.reserve()
    assert set(merged(broker.storage).topics) == {"t"}


def test_a_topic_whose_id_is_not_known_is_not_on_record_until_it_is():
    broker = Broker(state=ClusterState.of([T, UNSURE], unidentified=frozenset(["unsure"])))
    broker.reserve(2)
    assert set(found_journals.find(broker.storage, [A]).whole.topics) == {"t"}
    broker.append(TopicsFound((UNSURE,)))
    broker.reserve()
    stored = merged(broker.storage)
    assert (set(stored.topics), stored.next_producer_id) == ({"t", "unsure"}, 3000)


def test_a_start_whose_news_could_not_be_kept_keeps_them_with_the_first_change_or_at_the_end():
    for is_changed in (True, False):
        storage = with_folders(A)
        storage.fail("create", "horolog-cluster")
        broker = Broker(storage, state=ClusterState.of([T]), is_news=True)
        assert not broker.is_kept
        if is_changed:
            broker.reserve()
            storage.crash()
        else:
            broker.end()
        assert set(merged(storage).topics) == {"t"}


class TestDamage:
    @pytest.mark.parametrize("left", [b"", b"nonsense\n", None])
    @pytest.mark.parametrize("is_checked", [False, True])
    def test_what_is_not_what_was_written_is_written_anew(self, left, is_checked):
        broker = Broker()
        broker.append(TopicsCreated((T,)))
        if left is None:
            broker.storage.remove("/a/horolog-journal")
        else:
            broker.storage.write_atomically("/a/horolog-journal", left)
        if is_checked:
            broker.journal.check(broker.state)
        else:
            broker.reserve()
        assert set(merged(broker.storage).topics) == {"t"}

    @pytest.mark.parametrize("left", [b"", b"nonsense", None])
    def test_so_is_a_record_without_changes(self, left, caplog):
        broker = Broker(state=ClusterState.of([T]), is_news=True)
        if left is None:
            broker.storage.remove("/a/horolog-cluster")
        else:
            broker.storage.write_atomically("/a/horolog-cluster", left)
        broker.end()
        assert "it is rewritten" in caplog.text
        assert set(broker.record.load().topics) == {"t"}

    def test_a_line_that_cannot_be_read_is_no_hindrance(self):
        broker = Broker()
        broker.append(TopicsCreated((T,)))
        end = len(broker.storage.read_all("/a/horolog-journal"))
        broker.storage.file_node("/a/horolog-journal").data[end:] = b"nonsense\n"
        broker.reserve()
        stored = merged(broker.storage)
        assert (set(stored.topics), stored.next_producer_id) == ({"t"}, 1000)

    @pytest.mark.parametrize("how", ["missing", "older", "cut"])
    def test_changes_that_are_gone_are_missed(self, how):
        broker = Broker()
        broker.append(TopicsCreated((T,)))
        older = broker.storage.read_all("/a/horolog-journal")
        broker.reserve(2)
        data = broker.storage.read_all("/a/horolog-journal")
        broker.storage.write_atomically(
            f"{A}/{log_starts.LOG_STARTS}", log_starts.encode({}, broker.journal.record_number())
        )
        if how == "missing":
            broker.storage.remove("/a/horolog-journal")
        else:
            broker.storage.write_atomically("/a/horolog-journal", older if how == "older" else data[:-20])
        stored = merged(broker.storage)
        assert stored.rules_in_doubt
        assert stored.next_producer_id >= 2000


def test_a_disk_that_fails_at_the_end_leaves_it_to_the_next_start(caplog):
    for operation, file in (("create", "horolog-cluster"), ("remove", "horolog-journal")):
        broker = Broker()
        broker.append(TopicsCreated((T,)))
        broker.storage.fail(operation, file)
        broker.end()
        broker.storage.heal()
        assert set(merged(broker.storage).topics) == {"t"}
    assert [one.levelno for one in caplog.records if "could not be" in one.message] >= [logging.ERROR]
