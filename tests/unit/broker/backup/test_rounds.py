"""Rounds go on where the last one ended, and two backups never mix."""

import pytest

from horolog.broker.backup import rounds
from horolog.broker.backup.looking import FoldersChanged
from horolog.broker.backup.rounds import BackupTaken, RoundFailed, moment_at, moments_in
from horolog.broker.log.files import MetaProperties, meta_properties
from horolog.stores.faults import StoreError
from horolog.stores.object_store import Created, Outcome
from tests.support.backed_up import BackedUp
from tests.support.log_model import NOW_MS


@pytest.fixture
def made():
    return BackedUp()


def test_each_round_makes_a_moment(made):
    first = made.round()
    assert first.shipped_bytes == first.moment.size_bytes > 0
    assert made.round().shipped_bytes == 0
    made.source.fill("events", 1)
    third = made.round()
    assert 0 < third.shipped_bytes < first.shipped_bytes
    assert [one.number for one in moments_in(made.store)] == [2, 1, 0]
    assert [one.time_ms for one in moments_in(made.store)] == [NOW_MS + 3_000, NOW_MS + 2_000, NOW_MS + 1_000]


def test_the_moment_of_a_time(made):
    for _ in range(3):
        made.round()
    assert moment_at(made.store).number == 2
    assert moment_at(made.store, NOW_MS + 2_500).number == 1
    assert moment_at(made.store, NOW_MS) is None


def test_another_process_goes_on(made):
    first = made.round()
    made.source.fill("table", 1)
    made.rounds = made.new_rounds()
    done = made.round()
    assert (done.moment.number, done.shipped_bytes < first.shipped_bytes) == (1, True)


def test_a_damaged_moment_is_passed_over(made):
    made.round()
    made.store.create("moment/00000000000000000001", b"damaged")
    made.rounds = made.new_rounds()
    assert [one.number for one in moments_in(made.store)] == [0]
    done = made.round()
    assert (done.moment.number, done.shipped_bytes) == (2, 0)


@pytest.mark.parametrize("begun", [True, False])
def test_the_backup_of_another_broker_is_refused(made, begun):
    other = BackedUp()
    meta_properties.save(other.storage, "/data", MetaProperties(1, 2, "c" * 22, "d" * 22), NOW_MS)
    other.store = made.store
    other.rounds = other.new_rounds()
    made.round()
    if not begun:
        made.store.delete("moment/00000000000000000000")
    with pytest.raises(BackupTaken, match="broker 1 of cluster"):
        other.round()


def test_two_processes_at_once(made):
    made.round()
    other = made.new_rounds()
    other.run()
    made.clock.advance(5)
    made.source.fill("events", 1)
    with pytest.raises(BackupTaken, match="another process"):
        made.round()


def test_folders_that_change_are_looked_at_again(made, monkeypatch):
    calls = []
    look = rounds.SourceFolders.look

    def changing(folders, take_ends):
        calls.append(take_ends)
        if len(calls) < 3:
            raise FoldersChanged("it changed")
        return look(folders, take_ends)

    monkeypatch.setattr(rounds.SourceFolders, "look", changing)
    assert made.round().moment.is_exact
    assert len(calls) == 3
    monkeypatch.setattr(rounds, "ATTEMPTS", 2)
    calls.clear()
    with pytest.raises(RoundFailed, match="it changed"):
        made.round()


def test_long_rounds_make_unfinished_moments(made, monkeypatch):
    monkeypatch.setattr(rounds, "UNFINISHED_EVERY_BYTES", 1)
    monkeypatch.setattr("horolog.broker.backup.objects.OBJECT_BYTES", 500)
    failing = made.new_rounds(store=Failing(made.store, allowed=6))
    with pytest.raises(StoreError):
        failing.run()
    unfinished = list(made.store.list("unfinished"))
    assert unfinished
    assert moment_at(made.store) is None
    all_bytes = sum(map(len, [*made.log_of("events").values(), *made.log_of("table").values()]))
    done = made.round()
    assert done.shipped_bytes < all_bytes == done.moment.size_bytes
    assert not list(made.store.list("unfinished"))


class Failing:
    """A store that takes so many objects."""

    def __init__(self, store, allowed):
        self._store = store
        self._allowed = allowed

    def __getattr__(self, name):
        return getattr(self._store, name)

    def create(self, key, data):
        if not self._allowed:
            return Created(Outcome.UNKNOWN, "full", True)
        self._allowed -= 1
        return self._store.create(key, data)


def test_a_round_that_failed_is_made_again(made):
    failing = made.new_rounds(store=Failing(made.store, allowed=1))
    for _ in range(2):
        with pytest.raises(StoreError, match="full"):
            failing.run()
    assert made.round().moment.number == 0
