"""A journal that is hurt while workers run is rewritten by those who know it."""

from typing import ClassVar

import pytest

from horolog.broker.cluster import file_journal
from horolog.broker.cluster.cluster_state import ProducerIdsReserved
from horolog.broker.cluster.entry_lines import encode_entry
from horolog.broker.cluster.found_journals import find
from horolog.broker.cluster.journal import AppendOutcome
from tests.support.journal_writers import (
    EVERYTHING,
    Writer,
    append,
    begun_in_memory,
    begun_in_place,
    journal_path,
)

ONE = ProducerIdsReserved(0)


@pytest.fixture(params=["real", "memory"])
def place(request, tmp_path):
    return begun_in_place(request.param, tmp_path)


class TestMending:
    """Workers that run know everything: whatever happens to the file, it is rewritten, and nothing is lost."""

    @pytest.fixture
    def writers(self, place):
        storage, folder = place
        one, other = (Writer(storage, folder) for _ in range(2))
        one.append(*EVERYTHING).reserve(2)
        other.read_on()
        return storage, folder, (one, other)

    HURTS: ClassVar = {
        "emptied": lambda data: b"",
        "zeros": lambda data: bytes(len(data)),
        "cut in the last line": lambda data: data[:-9],
        "cut in the middle": lambda data: data[: len(data) // 2],
        "without its last line": lambda data: data[: data.rfind(b"\n", 0, -1) + 1],
        "both heads": lambda data: data.replace(b"base", b"bose"),
        "in one head": lambda data: b"x" + data[1:],
        "in the middle": lambda data: data[: len(data) // 2] + b"\0" + data[len(data) // 2 + 1 :],
        "in the last line": lambda data: data[:-9] + b"\0" + data[-8:],
        "the last newline": lambda data: data[:-1] + b"\x0b",
    }

    @pytest.mark.parametrize("hurt", HURTS.values(), ids=HURTS)
    def test_what_a_worker_knows_is_written_anew(self, writers, hurt, caplog):
        storage, folder, (one, other) = writers
        data = storage.read_all(journal_path(writers))
        storage.write_atomically(journal_path(writers), hurt(data))
        one.check()
        assert "is rewritten" in caplog.text
        assert storage.read_all(journal_path(writers) + ".damaged") == hurt(data)
        assert find(storage, [folder]).damages == []
        assert Writer(storage, folder).state == one.state == other.read_on().state
        other.reserve()
        assert one.read_on().state == Writer(storage, folder).state == other.state

    @pytest.mark.parametrize("hurt", ["emptied", "both heads", "in one head", "cut in the middle"])
    def test_whoever_appends_does_not_wait_for_that(self, writers, hurt):
        storage, folder, (one, other) = writers
        storage.write_atomically(journal_path(writers), self.HURTS[hurt](storage.read_all(journal_path(writers))))
        other.applied = one.state.number
        other.reserve()
        assert one.read_on().state == other.state == Writer(storage, folder).state

    def test_a_file_that_was_removed(self, writers):
        storage, folder, (one, other) = writers
        storage.remove(journal_path(writers))
        one.check()
        assert Writer(storage, folder).state == one.state
        other.read_on().reserve()
        assert one.read_on().state == other.state

    def test_an_older_copy(self, writers, monkeypatch):
        storage, folder, (one, other) = writers
        old = storage.read_all(journal_path(writers))
        monkeypatch.setattr(file_journal, "GROWTH_BYTES", 1)
        one.applied = other.applied = one.state.number
        one.reserve()
        other.read_on()
        storage.write_atomically(journal_path(writers), old)
        one.check()
        assert Writer(storage, folder).state == one.state == other.read_on().state

    def test_nothing_is_written_where_nothing_is_wrong(self, writers):
        storage, _, (one, other) = writers
        data = storage.read_all(journal_path(writers))
        one.reserve()
        for writer in (one, other):
            writer.check()
        assert storage.read_all(journal_path(writers)).startswith(data)
        assert not storage.exists(journal_path(writers) + ".damaged")

    def test_whoever_knows_less_leaves_it_to_the_others(self, writers):
        storage, folder, (one, other) = writers
        one.reserve()
        data = storage.read_all(journal_path(writers))
        hurt = data.replace(b'"kind": "TopicsDeleted"', b'"kind": "TopicsDeletee"')
        storage.write_atomically(journal_path(writers), hurt)
        other.check()
        assert storage.read_all(journal_path(writers)) == hurt
        one.check()
        assert other.read_on().state == Writer(storage, folder).state == one.state

    def test_news_that_cannot_be_read_are_those_of_who_has_written_them(self, writers):
        storage, folder, (one, other) = writers
        one.reserve()
        hurt = self.HURTS["in the last line"](storage.read_all(journal_path(writers)))
        storage.write_atomically(journal_path(writers), hurt)
        other.told = one.state.number
        for _ in range(3):
            other.read_on().check()
        assert storage.read_all(journal_path(writers)) == hurt
        assert append(other.journal, ONE, other.state.number + 1) is AppendOutcome.FAILED
        one.check()
        assert other.read_on().state == Writer(storage, folder).state == one.state

    def test_news_that_nobody_has_told_of_are_none(self, writers):
        """Whoever wrote them has ended before it told anybody, and so has acknowledged nothing."""
        storage, folder, (one, other) = writers
        file = storage.open(journal_path(writers))
        file.pwritev([b"x" + encode_entry(one.state.number + 1, ONE)[1:]], file.size())
        one.read_on().check()
        assert find(storage, [folder]).damages != []
        one.check()
        assert Writer(storage, folder).state == one.state
        one.reserve()
        assert other.read_on().state == one.state

    def test_one_that_does_not_know_the_last_entries_finds_them_there(self, writers):
        storage, folder, (one, other) = writers
        one.reserve(3)
        storage.write_atomically(journal_path(writers), b"")
        one.check()
        assert other.read_on().state == one.state == Writer(storage, folder).state

    def test_the_whole_state_is_written_where_what_it_goes_on_from_was_hurt(self, writers):
        storage, folder, (one, other) = writers
        one.base_is_hurt = True
        one.check()
        found = find(storage, [folder])
        assert found.head.whole.number == one.state.number
        assert other.read_on().state == Writer(storage, folder).state == one.state
        data = storage.read_all(journal_path(writers))
        one.check()
        assert storage.read_all(journal_path(writers)) == data

    @pytest.mark.parametrize("operation", ["read", "create", "rename"])
    def test_a_disk_that_does_not_work_is_asked_again(self, operation, caplog):
        storage = begun_in_memory()
        one = Writer(storage).reserve(2)
        storage.write_atomically("/data/horolog-journal", b"")
        storage.fail(operation, "journal", times=2)
        one.check()
        assert "could not be" in caplog.text
        storage.heal()
        one.check()
        assert Writer(storage).state == one.state
