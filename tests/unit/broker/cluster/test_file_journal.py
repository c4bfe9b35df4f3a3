"""The journal that workers share: whoever is first has the number, and the others read what he has written."""

from dataclasses import replace

import pytest

from horolog.broker.base.own_thread import AtOnce
from horolog.broker.cluster import file_journal, found_journals, settling
from horolog.broker.cluster.cluster_state import (
    ClusterState,
    ProducerIdsReserved,
    RulesChanged,
    TopicsDeleted,
)
from horolog.broker.cluster.entry_lines import Head, Whole, encode_entry, encode_head, head_of_one
from horolog.broker.cluster.file_journal import FellBehind, FileJournal
from horolog.broker.cluster.found_journals import find, take_up
from horolog.broker.cluster.journal import AppendOutcome
from horolog.broker.cluster.journal_beside import JournalBeside, KeptBySettling
from horolog.broker.log.storage import DataFolderError, FolderInUse, MemoryStorage, StorageFault
from horolog.broker.log.storage.memory_disk import PowerCut
from horolog.broker.on_record import cluster_file
from horolog.broker.on_record.cluster_file import JOURNAL
from horolog.broker.on_record.stored_rules import StoredRule
from tests.support.journal_writers import (
    EVERYTHING,
    HEAD,
    Writer,
    append,
    begun_in_memory,
    begun_in_place,
    journal_in,
    journal_path,
)

ONE, TWO, THREE = ProducerIdsReserved(0), TopicsDeleted(("t",)), ProducerIdsReserved(2000)


@pytest.fixture(params=["real", "memory"])
def place(request, tmp_path):
    return begun_in_place(request.param, tmp_path)


def test_what_one_has_written_the_other_reads(place):
    one, other = journal_in(place), journal_in(place)
    assert append(one, ONE, 1) is AppendOutcome.WRITTEN
    assert append(one, TWO, 2) is AppendOutcome.WRITTEN
    assert list(other.tail(0)) == [ONE, TWO]
    assert list(other.tail(2)) == []
    assert list(one.tail(2)) == []
    assert find(place[0], [place[1]]).read.entries == [ONE, TWO]
    assert (one.written_count, other.written_count) == (2, 0)
    assert repr(other).endswith("horolog-journal at 2>")


def test_whoever_comes_second_is_told_and_reads(place):
    one, other = journal_in(place), journal_in(place)
    append(one, ONE, 1)
    assert append(other, TWO, 1) is AppendOutcome.TAKEN
    assert list(other.tail(0)) == [ONE]
    assert append(other, TWO, 2) is AppendOutcome.WRITTEN
    assert list(one.tail(1)) == [TWO]


def test_a_successor_goes_on_where_the_journal_ends(place):
    append(journal_in(place), ONE, 1)
    assert append(journal_in(place), TWO, 2) is AppendOutcome.WRITTEN
    assert find(place[0], [place[1]]).read.entries == [ONE, TWO]


@pytest.mark.parametrize("cut", [1, 10, 25])
def test_a_tail_that_was_not_written_whole_is_cut_by_the_next_writer(place, cut, caplog):
    storage, _ = place
    one, other = journal_in(place), journal_in(place)
    append(one, ONE, 1)
    file = storage.open(journal_path(place))
    size = file.size()
    file.pwritev([encode_entry(2, THREE)[:-cut]], size)
    assert list(other.tail(0)) == [ONE]
    assert find(storage, [place[1]]).read.entries == [ONE]
    assert append(other, TWO, 2) is AppendOutcome.WRITTEN
    assert "of an incomplete entry" in caplog.text
    assert list(one.tail(1)) == [TWO]
    assert storage.read_all(journal_path(place)) == encode_head(HEAD) + encode_entry(1, ONE) + encode_entry(2, TWO)


@pytest.mark.parametrize(
    "read",
    [
        lambda storage, other: other.tail(0),
        lambda storage, _: found_journals.take_up(storage, ["/data"]).read.entries,
    ],
    ids=["the new ones", "all of them"],
)
def test_an_entry_that_was_read_is_on_the_disk_though_its_writer_could_not_sync_it_and_was_killed(read, monkeypatch):
    monkeypatch.setattr(file_journal, "_take_back", lambda *_: None)
    storage = MemoryStorage()
    storage.make_dir("/data")
    storage.sync_dir("/")
    found_journals.begin(storage, "/data", HEAD)
    one, other = journal_in((storage, "/data")), journal_in((storage, "/data"))
    storage.fail("sync", "horolog-journal")
    assert append(one, ONE, 1) is AppendOutcome.FAILED
    assert list(read(storage, other)) == [ONE]
    storage.crash()
    assert find(storage, ["/data"]).read.entries == [ONE]


class TestFaults:
    @pytest.fixture
    def storage(self):
        return begun_in_memory()

    def test_what_can_neither_be_synced_nor_cut_is_no_entry(self, storage):
        """It is in the page cache, and may not outlive it: whoever went on from it would be lost with it."""
        one, other = journal_in((storage, "/data")), journal_in((storage, "/data"))
        storage.fail("sync", "journal")
        storage.fail("truncate", "journal")
        assert append(one, ONE, 1) is AppendOutcome.FAILED
        assert list(other.tail(0)) == []
        assert append(other, TWO, 1) is AppendOutcome.WRITTEN
        storage.crash()
        assert find(storage, ["/data"]).read.entries == [TWO]

    @pytest.mark.parametrize("operation", ["write", "sync"])
    def test_what_the_disk_does_not_take_has_not_happened(self, storage, operation):
        one, other = journal_in((storage, "/data")), journal_in((storage, "/data"))
        storage.fail(operation, "journal", torn_bytes=20)
        assert append(one, ONE, 1) is AppendOutcome.FAILED
        assert list(other.tail(0)) == []
        assert storage.read_all("/data/horolog-journal") == encode_head(HEAD)
        assert append(other, TWO, 1) is AppendOutcome.WRITTEN
        assert append(one, ONE, 1) is AppendOutcome.TAKEN

    def test_a_journal_that_another_holds_for_too_long_is_not_written(self, storage, caplog):
        journal = journal_in((storage, "/data"))
        held = storage.lock("/data/horolog-journal")
        assert append(journal, ONE, 1) is AppendOutcome.FAILED
        assert "could not write" in caplog.text
        held.release()
        assert append(journal, ONE, 1) is AppendOutcome.WRITTEN

    def test_who_cannot_read_tries_again(self, storage, caplog):
        one, other = journal_in((storage, "/data")), journal_in((storage, "/data"))
        append(one, ONE, 1)
        storage.fail("read", "journal")
        assert list(other.tail(0)) == []
        assert "could not read" in caplog.text
        assert list(other.tail(0)) == [ONE]

    def test_who_reads_has_it_on_the_disk(self, storage):
        """A writer that was killed before its sync has left a whole line."""
        reader = journal_in((storage, "/data"))
        file = storage.open("/data/horolog-journal")
        file.pwritev([encode_entry(1, ONE)], file.size())
        assert list(reader.tail(0)) == [ONE]
        storage.crash()
        assert find(storage, ["/data"]).read.entries == [ONE]

    def test_the_record_is_left_to_the_settling(self, storage):
        before = storage.read_all("/data/horolog-journal")
        journal = JournalBeside(journal_in((storage, "/data")), AtOnce(), KeptBySettling())
        assert journal.begin(ClusterState(), is_news=True)
        journal.close(ClusterState())
        assert (storage.read_all("/data/horolog-journal"), storage.exists("/data/horolog-cluster")) == (before, False)

    @pytest.mark.parametrize("last_bytes", [None, 0, 17])
    def test_after_a_power_cut_an_entry_is_there_or_not(self, storage, last_bytes):
        """What was told as written is there at every point at which the power can go."""
        changes = 0
        while True:
            changes += 1
            storage = MemoryStorage()
            storage.make_dir("/data")
            storage.sync_dir("/")
            found_journals.begin(storage, "/data", HEAD)
            written = []
            storage.power_off_after(changes, last_write_bytes=last_bytes)
            try:
                journal = journal_in((storage, "/data"))
                for number, entry in enumerate((ONE, TWO, THREE), 1):
                    if append(journal, entry, number) is AppendOutcome.WRITTEN:
                        written.append(entry)
            except PowerCut:
                pass
            storage.crash()
            found = find(storage, ["/data"]).read.entries
            assert found[: len(written)] == written
            assert len(found) <= len(written) + 1
            journal = journal_in((storage, "/data"))
            assert append(journal, TWO, len(found) + 1) is AppendOutcome.WRITTEN
            assert find(storage, ["/data"]).read.entries == [*found, TWO]
            if len(written) == 3:
                break
        assert changes > 5


def test_nothing_is_appended_while_another_holds_the_file(place, monkeypatch):
    monkeypatch.setattr("horolog.broker.log.storage.storage.TURN_LOOKS", 3)
    storage, folder = place
    journal = journal_in(place)
    lock = storage.lock_in_turn(journal_path(place))
    assert append(journal, ONE, 1) is AppendOutcome.FAILED
    assert find(storage, [folder]).read.entries == []
    lock.release()
    assert append(journal, ONE, 1) is AppendOutcome.WRITTEN


def test_a_lock_in_turn_is_waited_for_and_given_up(place, monkeypatch):
    storage, _ = place
    monkeypatch.setattr("horolog.broker.log.storage.storage.TURN_LOOKS", 3)
    lock = storage.lock_in_turn(journal_path(place))
    with pytest.raises(FolderInUse):
        storage.lock_in_turn(journal_path(place))
    lock.release()
    storage.lock_in_turn(journal_path(place)).release()
    with pytest.raises(StorageFault):
        storage.lock_in_turn(journal_path(place) + "-that-is-not-there")


class TestShortening:
    @pytest.fixture(autouse=True)
    def bound(self, monkeypatch):
        monkeypatch.setattr(file_journal, "GROWTH_BYTES", 500)

    @pytest.fixture
    def writers(self, place):
        storage, folder = place
        return storage, folder, [Writer(storage, folder) for _ in range(2)]

    def head(self, storage, folder):
        return find(storage, [folder]).head

    def test_what_all_have_applied_becomes_a_state(self, writers):
        storage, folder, (one, other) = writers
        one.append(*EVERYTHING).reserve()
        other.read_on()
        one.applied = other.state.number - 1
        one.reserve(60)
        found = find(storage, [folder])
        assert found.head.whole.after == one.applied
        assert found.number == one.state.number
        assert len(storage.read_all(journal_path((storage, folder)))) < 6000
        assert other.read_on().state == one.state
        assert Writer(storage, folder).state == one.state
        other.applied = other.state.number
        for _ in range(50):
            other.reserve()
            assert one.read_on().state == other.state
            other.applied = one.applied = one.state.number
        assert self.head(storage, folder).whole.number > found.head.whole.number
        assert Writer(storage, folder).state == other.state

    def test_a_worker_that_is_late_is_waited_for(self, writers):
        storage, folder, (one, other) = writers
        one.reserve(100)
        assert self.head(storage, folder).whole is None
        assert other.read_on().state == one.state
        one.applied = one.state.number
        one.reserve(10)
        assert self.head(storage, folder).whole.number > 100
        assert other.read_on().state == one.state

    def test_whoever_fell_behind_does_not_go_on(self, writers):
        storage, folder, (one, other) = writers
        one.applied = 1000  # which is not so
        one.reserve(40)
        with pytest.raises(FellBehind):
            other.journal.tail(0)
        with pytest.raises(FellBehind):
            other.reserve()
        assert Writer(storage, folder).state == one.state

    def test_a_reader_notices_another_file_of_the_same_size(self, writers):
        storage, folder, (one, other) = writers
        one.reserve(3)
        other.read_on()
        found = find(storage, [folder])
        whole = file_journal.encode_whole(one.state)
        head = encode_head(HEAD._replace(whole=Whole(3, 3, len(whole))))
        storage.write_atomically(journal_path((storage, folder)), head + whole)
        one.reserve()
        other.journal._end = storage.stat(found.path)[0]
        assert other.read_on().state == one.state

    def test_rules_outlive_the_lines_that_they_came_with(self, writers):
        storage, folder, (one, other) = writers
        gone, *kept = (StoredRule(kind, kind, {"x": 1}) for kind in ("user", "user", "acl", "quota"))
        user, acl, quota = kept
        changed = StoredRule("acl", "acl", {"x": 2})
        one.append(RulesChanged((gone,)), RulesChanged((acl, quota)), RulesChanged((changed, user)))
        one.append(
            RulesChanged((StoredRule("user", "nobody", {}),)), RulesChanged(removed=frozenset([("user", "nobody")]))
        )
        one.applied = other.read_on().state.number
        one.reserve(60)
        assert find(storage, [folder]).head.whole.after == one.applied
        assert b"RulesChanged" not in storage.read_all(journal_path((storage, folder)))
        assert other.read_on().state.rules == one.state.rules
        assert Writer(storage, folder).state.rules == {rule.id: rule for rule in (user, changed, quota)}

    def test_a_change_of_rules_that_is_not_applied_everywhere_stays_as_a_line(self, writers):
        storage, folder, (one, other) = writers
        first, second = StoredRule("acl", "a", {"x": 1}), StoredRule("acl", "b", {"x": 2})
        one.append(RulesChanged((first,))).reserve(40)
        one.applied = other.read_on().state.number
        one.append(RulesChanged((second,), frozenset([first.id]))).reserve(20)
        assert find(storage, [folder]).head.whole.after < one.state.number
        assert other.read_on().state.rules == Writer(storage, folder).state.rules == {second.id: second}

    def test_how_many_rules_are_lost_is_known_as_well(self, writers):
        """Whoever shortens the journal does not make them forgotten."""
        storage, folder, (one, _) = writers
        kept = StoredRule("user", "kept", {})
        one.append(RulesChanged((kept,)))
        start = len(storage.read_all(journal_path((storage, folder))))
        one.append(RulesChanged((StoredRule("acl", "lost", {}),))).reserve()
        storage.open(journal_path((storage, folder))).pwritev([b"00000000"], start)
        state = ClusterState()
        for entry in find(storage, [folder]).read.entries:
            state = state.apply(entry)
        assert (list(state.rules), state.lost_rules) == ([kept.id], 1)
        whole = cluster_file.parse(file_journal.encode_whole(replace(state, rules_in_doubt=True)))
        assert (whole.lost_rules, whole.rules_in_doubt) == (1, True)

    def test_without_the_head_of_the_state_no_worker_takes_it_up(self, writers):
        """Who leads which partition may have been in it; the next settling goes on without."""
        storage, folder, (one, _) = writers
        one.append(*EVERYTHING)
        one.applied = one.state.number
        one.reserve(20)
        found = find(storage, [folder])
        storage.open(found.path).pwritev([b"00000000"], len(found.head_lines))
        with pytest.raises(DataFolderError, match="the leaders of partitions are unknown"):
            take_up(storage, [folder])
        left = find(storage, [folder])
        assert list(left.whole.topics) == ["t"]
        assert left.damages == left.whole.damages != []
        assert settling.beginning(ClusterState(), left).number == found.head.whole.number


class TestMending:
    """The rest of it is in `test_hurt_journals`."""

    @pytest.fixture
    def writers(self, place):
        storage, folder = place
        one, other = (Writer(storage, folder) for _ in range(2))
        one.append(*EVERYTHING).reserve(2)
        other.read_on()
        return storage, folder, (one, other)

    @pytest.mark.parametrize("left", [b"", None])
    def test_who_looks_writes_it_anew(self, writers, left):
        storage, folder, (one, other) = writers
        if left is None:
            storage.remove(journal_path(writers))
        else:
            storage.write_atomically(journal_path(writers), left)
        one.check()
        one.check()
        assert storage.read_all(journal_path(writers) + ".damaged") == b""
        assert Writer(storage, folder).state == one.state == other.read_on().state

    def test_who_appends_writes_it_anew(self, writers):
        storage, folder, (one, other) = writers
        storage.write_atomically(journal_path(writers), b"")
        other.reserve()
        assert one.read_on().state == other.state == Writer(storage, folder).state

    def test_news_that_cannot_be_read_wait_for_who_knows_them(self, writers):
        storage, folder, (one, other) = writers
        one.reserve()
        data = storage.read_all(journal_path(writers))
        storage.write_atomically(journal_path(writers), data[:-9] + b"x" + data[-8:])
        other.read_on().check()
        assert append(other.journal, ONE, other.state.number + 1) is AppendOutcome.FAILED
        one.check()
        assert other.read_on().state == Writer(storage, folder).state == one.state

    def test_a_disk_that_does_not_work_is_asked_again(self, caplog):
        storage = begun_in_memory()
        one = Writer(storage).reserve(2)
        storage.write_atomically("/data/horolog-journal", b"")
        storage.fail("rename", "journal", times=2)
        one.check()
        assert "could not be compared" in caplog.text
        storage.heal()
        storage.write_atomically("/data/horolog-journal", encode_head(HEAD) + encode_entry(9, ONE))
        assert append(one.journal, ONE, 3) is AppendOutcome.FAILED


class TestShorteningAndFaults:
    @pytest.fixture(autouse=True)
    def bound(self, monkeypatch):
        monkeypatch.setattr(file_journal, "GROWTH_BYTES", 300)

    @staticmethod
    def made():
        return begun_in_memory()

    @pytest.mark.parametrize("operation", ["create", "write", "sync", "rename", "sync_dir"])
    def test_what_the_disk_does_not_take_stays_as_it_was(self, operation, caplog):
        storage = self.made()
        one, other = Writer(storage), Writer(storage)
        one.reserve(4)
        other.read_on()
        storage.fail(operation, ".tmp" if operation in ("create", "write", "sync", "rename") else "")
        one.applied = 4
        one.reserve()
        assert "could not be shortened" in caplog.text
        assert other.read_on().state == one.state
        one.applied = other.applied = 5
        other.reserve(30)
        assert one.read_on().state == other.state
        storage.crash()
        assert Writer(storage).state == one.state

    def test_whoever_appends_to_another_file_has_it_keep_its_name(self, caplog):
        """A power cut may bring the old one back while the folder is not synced."""
        storage = self.made()
        one, other = Writer(storage), Writer(storage)
        one.reserve(4)
        other.read_on()
        storage.fail("sync_dir")
        one.applied = 4
        one.reserve()
        other.read_on()
        storage.fail("sync_dir")
        assert append(other.journal, ONE, 6) is AppendOutcome.FAILED
        assert "could not write" in caplog.text
        other.reserve()
        storage.crash()
        assert Writer(storage).state == other.state

    @pytest.mark.parametrize("last_bytes", [None, 0, 17])
    def test_after_a_power_cut_nothing_that_was_told_is_lost(self, last_bytes):
        changes, is_over = 0, False
        while not is_over:
            changes += 1
            storage = self.made()
            one, other = Writer(storage), Writer(storage)
            storage.power_off_after(changes, last_write_bytes=last_bytes)
            try:
                for _ in range(12):
                    one.reserve()
                    other.read_on().reserve()
                    one.read_on()
                    one.applied = other.applied = other.state.number
                is_over = True
            except PowerCut:
                pass
            last = max(one.state.number, other.state.number)
            storage.crash()
            found = Writer(storage)
            assert last <= found.state.number <= last + 1
            assert found.state.next_producer_id == 1000 * found.state.number
        assert changes > 50
        assert find(storage, ["/data"]).head.whole is not None


class TestBegunLate:
    """There was no room for it; meanwhile the journal of a broker alone may have its name."""

    HEAD = Head(9, (1, 2))

    @pytest.fixture(params=[False, True])
    def storage(self, request):
        storage = MemoryStorage()
        storage.make_dir("/data")
        if request.param:
            found_journals.begin(storage, "/data", head_of_one(3))
        return storage

    def journal(self, storage, put_on_record=None):
        found = found_journals.not_begun("/data", self.HEAD)
        return FileJournal(storage, found, is_begun=False, put_on_record=put_on_record)

    def test_nothing_is_written_or_read_before(self, storage, caplog):
        journal, before = self.journal(storage), storage.files()
        assert append(journal, ONE, 1) is AppendOutcome.FAILED
        assert "there was no room to begin it" in caplog.text
        assert list(journal.tail(0)) == []
        journal.check(ClusterState())
        assert storage.files() == before

    def test_a_disk_that_cannot_be_read_is_asked_again(self, storage):
        self.journal(storage, lambda _: None).check(ClusterState())
        journal = self.journal(storage)
        storage.fail("read", JOURNAL)
        assert append(journal, ONE, 1) is AppendOutcome.FAILED
        assert append(journal, ONE, 1) is AppendOutcome.WRITTEN

    def test_one_worker_begins_it_and_the_others_notice(self, storage, caplog):
        recorded = []
        first, other = self.journal(storage, recorded.append), self.journal(storage)
        storage.fail("create", JOURNAL)
        first.check(ClusterState())
        assert recorded == []
        first.check(ClusterState())
        assert (recorded, find(storage, ["/data"]).head.base) == ([ClusterState()], 9)
        assert append(first, ONE, 1) is AppendOutcome.WRITTEN
        assert list(other.tail(0)) == [ONE]
        assert append(other, TWO, 2) is AppendOutcome.WRITTEN

    def test_the_record_may_lack_a_word_of_it(self, storage, caplog):
        def fail(_state):
            raise StorageFault("full again")

        journal = self.journal(storage, fail)
        journal.check(ClusterState())
        assert "could not record that there is a journal" in caplog.text
        assert append(journal, ONE, 1) is AppendOutcome.WRITTEN
