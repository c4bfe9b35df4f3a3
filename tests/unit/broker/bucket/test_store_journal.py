"""The journal in a store that loses answers and repeats requests: one sequence for all, and each acknowledged entry in it once."""

import logging
from functools import partial

import pytest

from horolog.broker.base.answers import Answer
from horolog.broker.bucket import store_journal
from horolog.broker.bucket.bucket_state import BucketState
from horolog.broker.bucket.names import LOG, SNAPSHOTS, key
from horolog.broker.bucket.store_access import StoreAccess
from horolog.broker.bucket.store_journal import StoreJournal
from horolog.broker.cluster.cluster_state import ProducerIdsReserved
from horolog.broker.cluster.journal import AppendOutcome
from horolog.stores.object_store import Outcome
from tests.support.simulated_store import CALM, Schedule, SimulatedStore, Weather

ROUNDS = 8


class Writer:
    """A broker that appends entries, each of which says its own name; it reads what others have written when it has lost a race."""

    def __init__(self, index, schedule, store, *, crashes_at=None):
        self.index, self.schedule = index, schedule
        self.access = StoreAccess(store, self.pause)
        self.nonces = 0
        self.journal = StoreJournal(self.access, self.nonce)
        self.state, self.entries, self.acknowledged = BucketState(), [], []
        self.proposed, self.is_dead = 0, False
        if crashes_at is not None:
            schedule.later(crashes_at, self.die)

    def pause(self, seconds, done):
        self.schedule.later(seconds, lambda: None if self.is_dead else done(None))

    def nonce(self):
        self.nonces += 1
        return b"%8d%8d" % (self.index, self.nonces)

    def die(self):
        self.is_dead = True
        self.journal.close(None)

    def begin(self):
        self.proposed += 1
        self.propose(ProducerIdsReserved(self.index * 1_000_000 + self.proposed))

    def propose(self, entry):
        def done(outcome):
            if self.is_dead:
                return
            if outcome is AppendOutcome.WRITTEN:
                self.acknowledged.append((becomes.number, entry))
                self.take([entry])
                if self.proposed < ROUNDS:
                    self.schedule.later(0.01, self.begin)
            else:
                assert outcome is AppendOutcome.TAKEN
                self.journal.follow(self.state.number, heard)

        def heard(entries):
            if not self.is_dead:
                assert entries, "a number was taken, so there is an entry"
                self.take(entries)
                self.propose(entry)

        becomes = self.state.apply(entry)
        self.journal.append(entry, becomes, done)

    def take(self, entries):
        for entry in entries:
            self.state = self.state.apply(entry)
            self.entries.append(entry)


def simulated(seed, weather=None):
    schedule = Schedule()
    store = SimulatedStore(schedule, seed, weather)
    writers = [
        Writer(index, schedule, store, crashes_at=2.0 + seed % 7 if index == 2 and seed % 2 else None)
        for index in range(3)
    ]
    for writer in writers:
        schedule.later(store.chance.random(), writer.begin)
    schedule.run()
    return schedule, store, writers


def check(schedule, store, writers):
    """Every promise of the journal."""
    read = []
    StoreJournal(StoreAccess(store, schedule.pause), bytes).follow(0, read.extend)
    schedule.run()
    for writer in writers:
        assert writer.entries == read[: len(writer.entries)], "every reader sees the same sequence"
        if not writer.is_dead:
            assert len(writer.acknowledged) == ROUNDS, "every append ends"
    acknowledged = [one for writer in writers for one in writer.acknowledged]
    assert len({number for number, _ in acknowledged}) == len(acknowledged), "two writers never win one number"
    for number, entry in acknowledged:
        assert read[number - 1] == entry
    assert len({entry.first for entry in read}) == len(read), "an entry is there once"
    return read


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_one_sequence_for_all_whatever_the_store_does(first):
    met = {"late": 0, "unknown": 0, "taken": 0}
    for seed in range(first, first + 50):
        schedule, store, writers = simulated(seed)
        check(schedule, store, writers)
        met["late"] += store.late_count
        for outcome, count in store.outcomes.items():
            met[outcome.value] = met.get(outcome.value, 0) + count
    assert min(met.values()) > 50, met


OTHER = b"of another broker"
PLANTED = {
    "taken is never one's own": {Outcome.MADE: None, Outcome.TAKEN: OTHER},
    "unknown is taken": {Outcome.MADE: None, Outcome.TAKEN: OTHER, Outcome.UNKNOWN: OTHER},
    "unknown is made": {Outcome.MADE: None, Outcome.TAKEN: OTHER, Outcome.UNKNOWN: None},
    "taken is made": {Outcome.MADE: None, Outcome.TAKEN: None},
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_bugs_are_found(monkeypatch, name):
    """The check can fail: these brokers decide too early what became of a create."""
    decided = PLANTED[name]

    async def create(self, key, data):
        while (created := await Answer(partial(self._store.create, key, data))).outcome not in decided:
            await Answer(partial(self._pause, 0.1))
        return decided[created.outcome]

    monkeypatch.setattr(StoreAccess, "create", create)

    def breaks(seed):
        try:
            check(*simulated(seed))
        except AssertionError:
            return True
        return False

    assert any(breaks(seed) for seed in range(100))


# -- one journal in a calm store


def calm(seed=0):
    schedule = Schedule()
    store = SimulatedStore(schedule, seed, CALM)
    return schedule, store, StoreJournal(StoreAccess(store, schedule.pause), lambda: bytes(16))


def appended(schedule, journal, state, entry):
    outcomes = []
    journal.append(entry, state.apply(entry), outcomes.append)
    schedule.run()
    return outcomes


def test_a_snapshot_is_written_with_every_so_many_entries_and_loaded(monkeypatch):
    monkeypatch.setattr(store_journal, "SNAPSHOT_EVERY", 3)
    schedule, store, journal = calm()
    loaded = []
    journal.load(loaded.append)
    schedule.run()
    assert loaded == [None]
    state = BucketState()
    for number in range(1, 8):
        entry = ProducerIdsReserved(number * 1_000)
        assert appended(schedule, journal, state, entry) == [AppendOutcome.WRITTEN]
        state = state.apply(entry)
    assert [one for one in store.objects if one.startswith(SNAPSHOTS)] == [key(SNAPSHOTS, 3), key(SNAPSHOTS, 6)]
    assert journal.written_count == 7
    journal.load(loaded.append)
    schedule.run()
    assert (loaded[1].number, loaded[1].next_producer_id) == (6, 7_000)
    read = []
    journal.follow(6, read.extend)
    schedule.run()
    assert read == [ProducerIdsReserved(7_000)]


def test_damaged_snapshots_are_passed_over_and_a_damaged_entry_stops_the_follower(monkeypatch, caplog):
    monkeypatch.setattr(store_journal, "SNAPSHOT_EVERY", 1)
    schedule, store, journal = calm()
    state = BucketState()
    for number in (1, 2):
        appended(schedule, journal, state, ProducerIdsReserved(number * 1_000))
        state = state.apply(ProducerIdsReserved(number * 1_000))
    store.objects[key(SNAPSHOTS, 2)] = b"damaged"
    store.objects[f"{SNAPSHOTS}/other"] = b""
    loaded, read = [], []
    with caplog.at_level(logging.ERROR):
        journal.load(loaded.append)
        schedule.run()
        store.objects[key(LOG, 2)] = b"damaged"
        journal.follow(0, read.append)
        schedule.run()
    assert [one.number for one in loaded] == [1]
    assert read == [], "nothing is said to be all that there is"
    assert [one.levelname for one in caplog.records] == ["ERROR", "ERROR"]


def test_a_snapshot_that_goes_while_it_is_read():
    schedule, store, journal = calm()
    loaded = []
    store.objects[key(SNAPSHOTS, 2)] = b""
    schedule.later(0, lambda: None)
    journal.load(loaded.append)
    schedule.later(0.11, store.objects.clear)
    store.get = lambda key, done: done(None)
    schedule.run()
    assert loaded == [None]


def test_a_closed_journal_sends_nothing_again():
    schedule = Schedule()
    store = SimulatedStore(schedule, 0, Weather(refused=1, unanswered=0, late=0, twice=0, slow=0, storms=0))
    journal = StoreJournal(StoreAccess(store, schedule.pause), lambda: bytes(16))
    outcomes = []
    journal.append(ProducerIdsReserved(1), BucketState(number=1), outcomes.append)
    schedule.run(until=10)
    assert outcomes == []
    assert "503" in repr(journal)
    journal.close(None)
    schedule.run()
    assert outcomes == []
    assert journal.begin(BucketState(), is_news=True)
    journal.check(BucketState())
